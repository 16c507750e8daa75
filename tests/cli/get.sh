#!/bin/sh
# get.sh - `data get` against a server that misbehaves (tests/http_server.py). Prints TAP.
#
# It checks that a download that breaks off continues, in the same command or a repeated one. A file
# that cannot be fetched or is not a table gives one line and leaves nothing. An output that cannot be
# written is refused before anything is fetched. The manifest says where the events came from.
#
# usage: FULLRANK_SOURCE=REPOSITORY get.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: get.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
python=${FULLRANK_PYTHON:-python3}
cd "$scratch" || exit 1
if ! "$python" -c 'import http.server' 2>/dev/null; then
    skip "data get" "python3 is not installed"
    finish
fi

mkdir served work tmp
export TMPDIR="$scratch/tmp"
awk 'BEGIN { print "user,item,ts,label,f1"
    while (n++ < 20000) print n % 97 "," n * 7 % 1009 "," n ",0," n % 11 }' >served/set.csv
gzip -c served/set.csv >served/set.csv.gz
sha=$(sha256sum served/set.csv.gz | cut -d ' ' -f 1)
size=$(wc -c <served/set.csv.gz | tr -d ' ')
mkfifo hold
"$python" "$FULLRANK_SOURCE/tests/http_server.py" served/set.csv.gz --log log --seconds 1500 \
    <hold >port &
exec 9>hold # the server ends when this closes
tries=0
while [ ! -s port ] && [ $((tries += 1)) -le 200 ]; do sleep 0.3; done
server=http://127.0.0.1:$(cat port)
cd work || exit 1

get() { "$fullrank" data get "$@"; }
left() { ls -A . "$TMPDIR"; }
requests() { cut -d ' ' -f 1,2 ../log | tr '\n' ';'; }

# refused NAME CODE MESSAGE ARGUMENT...: exit code, MESSAGE in the only line on stderr (apart from notes), nothing on
# stdout, and the same files as before.
refused() {
    name=$1 want=$2 message=$3
    shift 3
    before=$(left)
    code=0
    get "$@" >../out 2>../err 9>&- </dev/null || code=$?
    said=$(grep -v '^fullrank: note: ' ../err)
    case $said in "fullrank: "*"$message"*) right=yes ;; *) right=no ;; esac
    if [ $code = "$want" ] && [ "$(printf '%s\n' "$said" | wc -l)" -eq 1 ] && [ $right = yes ] &&
        [ ! -s ../out ] && [ "$before" = "$(left)" ]; then
        pass "$name"
    else
        miss "$name" "exit code $code, said:" "$said" "expected exit code $want and:" "$message" \
            "files before:" "$before" "files after:" "$(left)"
    fi
}

"$fullrank" data import ../served/set.csv.gz -o ../reference >/dev/null 2>&1
# same NAME DIRECTORY: it has the columns of the served file.
same() {
    wrong=
    for file in ../reference/*.npy; do cmp -s "$file" "$2/${file##*/}" || wrong="$wrong $file"; done
    is "$1" "$wrong" ""
}

# ---- success ----

runs "a set by address" 0 get mine --url "$server/set.csv.gz" -o plain
same "a set by address has its columns" plain
manifest=$(cat plain/manifest.json)
has "the manifest has the address" "$manifest" "\"url\": \"$server/set.csv.gz\""
has "the manifest has the hash of the file" "$manifest" "\"sha256\": \"$sha\""
has "the manifest has the size of the file" "$manifest" "\"bytes\": $size"
has "the manifest has the name of the file" "$manifest" '"name": "set.csv.gz"'
is "nothing but the set is left" "$(ls -A)" "plain"
runs "a file:// address" 0 get mine --url "file://$scratch/served/set.csv" -o file
same "a file:// address gives the same columns" file
runs "a redirect" 0 get mine --url "$server/a?hops=2" -o hops
same "a redirect gives the same columns" hops
runs "chunks without a length" 0 get mine --url "$server/b?chunked=1" -o chunks
same "chunks give the same columns" chunks
rm -rf file hops chunks

: >../log
runs "breaks off once" 0 get mine --url "$server/c?after=20000&times=1" -o broken
same "breaks off once and has its columns" broken
is "breaks off once and goes on" "$(requests)" "200 -;206 bytes=20000-;"
has "breaks off once and says so" "$stderr" "broken off at byte 20000"
has "breaks off once and has the right hash" "$(cat broken/manifest.json)" "$sha"
: >../log
runs "another file after breaking off" 1 \
    get mine --url "$server/d?after=20000&change=1&times=1" -o other
is "another file after breaking off is fetched whole" "$(requests)" "200 -;200 bytes=20000-;"
has "another file after breaking off is no table" "$stderr" "$server/d"
is "what is no table leaves nothing" "$(ls -A)" "$(printf 'broken\nplain')"
runs "--force replaces a set" 0 get mine --url "$server/e" -o broken --force
same "--force has replaced it" broken
rm -rf broken

# Ctrl-C keeps the downloaded bytes, and the same command continues from there.
cat >../interrupt.py <<'PYTHON'
import os, signal, subprocess, sys, time
process = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL)
end = time.monotonic() + 120
while time.monotonic() < end:
    if os.path.exists("cut.download.part") and os.path.getsize("cut.download.part") >= 20000:
        break
    time.sleep(0.02)
process.send_signal(signal.SIGINT)
print(process.wait())
PYTHON
: >../log
is "Ctrl-C is exit 130" "$("$python" ../interrupt.py "$fullrank" data get mine \
    --url "$server/f?slow=20000&times=1" -o cut 9>&-)" 130
is "Ctrl-C makes no set" "$(ls -d cut 2>/dev/null)" ""
runs "the command is repeated" 0 get mine --url "$server/f?slow=20000&times=1" -o cut
same "the command is repeated and has its columns" cut
case $(requests) in
"200 -;206 bytes="[1-9]*) pass "the command is repeated and goes on" ;;
*) miss "the command is repeated and goes on" "$(requests)" ;;
esac
is "nothing of the download is left" "$(ls -A)" "$(printf 'cut\nplain')"
rm -rf cut

# ---- failure ----

refused "an HTML page" 1 "$server/g?html=1: " mine --url "$server/g?html=1" -o out
has "an HTML page is called one" "$(cat ../err)" "looks like an HTML or XML page"
refused "404" 1 "$server/h?status=404: the server answered 404" \
    mine --url "$server/h?status=404" -o out
refused "no server" 1 "http://127.0.0.1:1/x: " mine --url http://127.0.0.1:1/x -o out
refused "a missing file://" 1 "file:///none/x.csv: " mine --url file:///none/x.csv -o out
refused "another kind of address" 2 "expected a URL with http://" \
    mine --url ftp://127.0.0.1/x -o out
refused "an unknown set" 2 "unknown set wikipdia, expected one of wikipedia, reddit, mooc, lastfm" \
    wikipdia -o out
refused "no output" 2 "option --output DIR is missing" wikipedia
: >../log
refused "an output that exists" 1 "plain: exists; --force replaces it" \
    mine --url "$server/i" -o plain
refused "no parent directory" 1 "none/out: directory cannot be made" \
    mine --url "$server/i" -o none/out
mkdir theirs && echo thesis >theirs/thesis.txt
refused "a directory of others" 1 "theirs: contains no imported stream" \
    mine --url "$server/i" -o theirs --force
is "all of these are refused before fetching" "$(requests)" ""
refused "wrong columns" 2 "there is no column" mine --url "$server/j" -o out --columns source=nobody
runs "a public name with other contents" 0 get wikipedia --url "$server/k" -o named
has "a public name with other contents is a warning" "$stderr" \
    "warning: wikipedia: 20000 events, but the public set had 157474"
is "nothing is left in TMPDIR" "$(ls -A "$TMPDIR")" ""
exec 9>&-
wait
finish
