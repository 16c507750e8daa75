#!/bin/sh
# examples/ as an outside project: built against an installed fullrank, with only its header. Their
# records equal ours byte for byte. Then files that are not plug-ins.
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=$1
build=$(dirname "$fullrank")
cd "$scratch" || exit 1

"$fullrank" data synth --preset tiny -o data >/dev/null 2>&1 || exit 1
"$fullrank" data export data -o data.csv >/dev/null 2>&1 || exit 1
rank() { "$fullrank" rank --data data --seed 1 --quiet "$@" >/dev/null; } # with --scorer and -o

runs "an installation" 0 cmake --install "$build" --prefix "$scratch/usr"
PKG_CONFIG_PATH=$(dirname "$(find usr -name fullrank.pc)")
PKG_CONFIG_PATH=$scratch/$PKG_CONFIG_PATH
export PKG_CONFIG_PATH
cp -r "$FULLRANK_SOURCE/examples" examples
flags=$(sed -n 's/^FULLRANK_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
flags=${flags:+-fsanitize=$flags}
runs "the examples are configured" 0 cmake -S examples -B out -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror $flags" "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror $flags"
runs "and built" 0 cmake --build out

# ---- programs ----

rank --scorer baseline:recency -o recency.npy
rank --scorer baseline:popularity -o popularity.npy
runs "rank_file" 0 out/rank_file data.csv baseline:recency
has "prints the MRR" "$stdout" "MRR 0."
runs "rank_file without a file" 1 out/rank_file nowhere.csv baseline:recency
has "says why" "$stderr" "nowhere.csv"
for kind in stateless stateful; do
    for threads in 1 2 8; do
        runs "$kind recency with $threads threads" 0 out/own_scorer data $kind $threads own.npy
        runs "has our records" 0 cmp own.npy recency.npy
    done
done
runs "feed, one by one" 0 out/feed data 1 fed.npy
runs "has our records" 0 cmp fed.npy popularity.npy
has "RANKS.json tells the batch" "$(cat fed.json)" '"largest_batch": 1'
runs "feed of 200" 0 out/feed data 200 fed.npy
runs "has others" 1 cmp -s fed.npy popularity.npy
has "RANKS.json tells the batch" "$(cat fed.json)" '"largest_batch": 200'
runs "it can be compared with ours" 0 "$fullrank" compare fed.npy popularity.npy

# ---- plug-ins ----

edgebank=$(find out -name 'libedgebank.*')
for options in "" ",memory=window" ",memory=window,share=0.05"; do
    rank --scorer "baseline:edgebank$options" -o ours.npy --force
    for threads in 1 2 8; do
        runs "plug-in edgebank$options with $threads threads" 0 rank \
            --scorer "plugin:$edgebank$options" -o theirs.npy --threads $threads --force
        runs "has our records" 0 cmp theirs.npy ours.npy
    done
done
is "its hash is in RANKS.json" \
    "$(sed -n 's/.*"scorer_sha256": "\(.*\)".*/\1/p' theirs.json)" "$(sha256sum "$edgebank" | cut -d' ' -f1)"
recency=$(find out -name 'librecency.*')
if [ -n "$recency" ]; then
    for threads in 1 2 8; do
        runs "plug-in in C++ with $threads threads" 0 rank --scorer "plugin:$recency" -o theirs.npy \
            --threads $threads --force
        runs "has our records" 0 cmp theirs.npy recency.npy
    done
else
    skip "a plug-in in C++" "no C++ compiler"
fi
cat >study.json <<END
{"name": "plugged", "data": {"mine": "data"}, "protocol": {"window": 0}, "baselines": ["edgebank"],
 "models": [], "scorers": {"my bank": "plugin:$edgebank,memory=window", "my recency": "plugin:${recency:-$edgebank}"}}
END
runs "a study with plug-ins" 0 "$fullrank" study run study.json -o study
rank --scorer baseline:edgebank,memory=window --window 0 -o ours.npy --force
has "has the numbers of our own" "$(grep '^mine,my bank,' study/tables/main.csv)" \
    ",$("$fullrank" metrics ours.npy -m mrr --json | sed -n 's/^  "mrr": \(.*\),/\1/p'),"
cp "$edgebank" here.so
runs "a name without a folder" 0 rank --scorer plugin:here.so -o theirs.npy --force
runs "its help" 0 "$fullrank" plugin here.so
has "has the definition" "$stdout" "edgebank: 1 if the pair is in memory, else 0"
has "and the options" "$stdout" "memory=unlimited|window: which pairs are remembered"
runs "as JSON" 0 "$fullrank" plugin here.so --json
has "with defaults" "$stdout" '"share": "0.15"'
if command -v bash >/dev/null; then
    "$fullrank" completions bash >complete
    # shellcheck disable=SC2016 # bash's
    is "bash completes its options" "$(bash -c '. ./complete
        COMP_WORDS=("$1" rank --scorer plugin : here.so,sh) COMP_CWORD=5
        _fullrank && echo "${COMPREPLY[*]}"' bash "$fullrank")" "here.so,share="
else
    skip "bash completes its options" "bash is not installed"
fi
refused() { # NAME MESSAGE SCORER
    rm -f no.npy no.json
    code=0
    message=$("$fullrank" rank --data data --scorer "$3" -o no.npy --quiet 2>&1 >/dev/null) || code=$?
    is "$1" "$code $(echo "$message" | wc -l) $(ls no.* 2>/dev/null)" "${4-2} 1 "
    has "says why" "$message" "$2"
}
refused "an unknown option" "plug-in edgebank: unknown option memry, did you mean memory?" plugin:here.so,memry=window
refused "a bad value" "option share: found \"2\"" plugin:here.so,share=2
refused "no value" "found \"share\", expected option=value" plugin:here.so,share

# ---- files that are not plug-ins ----

: >empty.so
cp data.csv text.so
refused "an empty file" "is no shared object" plugin:empty.so 1
refused "a text" "is no shared object" plugin:text.so 1
refused "no file" "cannot be read" plugin:nowhere.so 1
refused "a directory" "data" plugin:data 1
refused "no name" "" plugin: 2
size=$(wc -c <here.so)
cut=0
for part in 1 4 16 63 64 200 1000 4000 8000 12000 $((size / 2)) $((size - 1000)) $((size - 1)); do
    [ "$part" -lt "$size" ] || continue
    head -c "$part" here.so >cut.so
    code=0
    "$fullrank" plugin cut.so >/dev/null 2>message || code=$?
    [ "$code $(wc -l <message)" = "1 1" ] || miss "cut off at $part bytes" "$code" "$(cat message)"
    cut=$((cut + 1))
done
is "$cut files cut off are refused" "$((cut > 8))" 1
cp "$(find usr -name 'libfullrank.so' | head -n 1)" other.so
refused "a library that is not a plug-in" "no function fullrank_plugin" plugin:other.so 1
plugin() { # NAME BODY: a plug-in that says BODY of itself
    printf '#include <fullrank.h>\n#include <stddef.h>\nFR_PLUGIN const fr_plugin *fullrank_plugin(void);\n%s\n' "$2" >"$1.c"
    # shellcheck disable=SC2046,SC2086 # words
    cc -shared -fPIC $flags $(pkg-config --cflags fullrank) "$1.c" -o "$1.so" || miss "$1 is built"
}
open='static fr_status open(const fr_window *w, const void *s, int64_t seed, fr_scorer_definition *out, fr_error *err) {
    (void)w, (void)s, (void)seed, (void)out; return fr_fail(err, FR_EINPUT, "not today"); }'
plugin nothing 'const fr_plugin *fullrank_plugin(void) { return NULL; }'
refused "a plug-in that returns nothing" "fullrank_plugin returned NULL" plugin:nothing.so 1
plugin later 'static const fr_plugin p = {.abi = 99}; const fr_plugin *fullrank_plugin(void) { return &p; }'
refused "one for another interface" "made for version 99 of the plug-in interface, expected 1" plugin:later.so 1
plugin unnamed 'static const fr_plugin p = {.abi = FR_PLUGIN_ABI}; const fr_plugin *fullrank_plugin(void) { return &p; }'
refused "one without a name" "no name, summary, text or open" plugin:unnamed.so 1
plugin outside "$open
static const fr_option o[] = {{\"x\", FR_OPTION_INT, \"1\", \"N\", 0, 9, 8, \"x\"}, {0}};
static const fr_plugin p = {FR_PLUGIN_ABI, {\"p\", \"s\", \"t\", o, 8, open}}; const fr_plugin *fullrank_plugin(void) { return &p; }"
refused "an option outside its settings" "option x is not in its settings of 8 bytes" plugin:outside.so 1
plugin fails "$open
static const fr_plugin p = {FR_PLUGIN_ABI, {\"p\", \"s\", \"t\", NULL, 0, open}}; const fr_plugin *fullrank_plugin(void) { return &p; }"
refused "one that fails to open" "not today" plugin:fails.so 1
finish
