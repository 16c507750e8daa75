#!/bin/sh
# study.sh - `study`: the whole grid, killed, shared and continued. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY study.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: study.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1
study() { "$fullrank" study "$@"; }
count() { echo $#; }

# A study that takes seconds: a synthetic stream, a set of the user, and one that does not exist.
kills=20
[ -z "$sanitized" ] || kills=5
"$fullrank" data synth --preset tiny --seed 3 --events 1500 -o mine >/dev/null 2>&1
write() { # FILE EPOCHS
    cat >"$1" <<END
{"name": "small",
 "data": {"drawn": {"synth": "tiny", "events": 1500}, "mine": "mine", "lastfm": "lastfm"},
 "protocol": {"window": 0}, "diagnostic-window": 0, "oracle": true,
 "baselines": ["recency", "popularity"], "models": ["craft", "craft-r"], "seeds": [7, 17],
 "gain": ["craft", "craft-r"], "minimal": true, "membership": {"bce": ["craft-r"]},
 "projection": ["craft-r"], "settings": {"epochs": $2, "dim": 8, "history": 8}}
END
}
write small.json 2
cp small.json plain.json

# Without interruption.
runs "a study runs" 0 study run --verbose small.json -o straight
has "a missing set is skipped" "$stderr" "lastfm skipped: ./lastfm is not there; \`fullrank data get lastfm -o ./lastfm\`"
units=$(printf '%s\n' "$stderr" | sed -n 's/.*small: \([0-9]*\) of \([0-9]*\) units to do.*/\1 \2/p')
is "and its units do not count" "${units% *}" "${units#* }"
is "others do" "$([ "${units% *}" -gt 20 ] && echo yes)" yes
has "the rest is done" "$stderr" "mine/craft-r/bce/17/diagnostic-project"
has "the main table is shown" "$stdout" "CRAFT-R"
has "and where the report is" "$stdout" "straight/report.html"
runs "status" 0 study status straight
has "says what is done" "$stdout" "0 running, 0 failed, 0 left"
runs "status as JSON" 0 study status straight --json
has "has every unit" "$stdout" '"key": "mine/craft/bce/7/rank"'
before=$(ls -l straight/runs/*/model.safetensors)
runs "again" 0 study run --verbose small.json -o straight
is "nothing is done twice" "$(ls -l straight/runs/*/model.safetensors)" "$before"

# Killed at random moments and continued: the same tables, byte for byte. This is not in a function: the shell that
# runs it would be killed, and the study would continue.
seed=$$
for _ in $(seq $kills); do
    "$fullrank" study run small.json -o killed -q >/dev/null 2>&1 &
    child=$!
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    sleep "0.$(printf %03d $((seed / 65536 % 700)))"
    kill -9 $child 2>/dev/null
    wait $child 2>/dev/null
done
runs "a killed study goes on" 0 study run small.json -o killed -q
is "and ends with the same tables" "$(diff -r straight/tables killed/tables 2>&1)" ""

# A study that was begun in one place continues in another, even without its data.
sed 's/"seeds": \[7, 17\]/"seeds": [7]/' small.json >begun.json
study run begun.json -o begun -q >/dev/null 2>&1
mkdir -p else/where && mv begun else/where/study
rm -rf else/where/study/data
cd else || exit 1
runs "a study that was moved goes on" 0 study run --verbose ../small.json -o where/study/
has "says what is done, of how much" "$stderr" "/$(study status where/study --json | grep -c '"key": "[dm]') mine/craft/bce/17/rank: "
lacks "one line for each unit" "$stderr" "epoch"
cd ..
is "and gives the same tables, too" "$(diff -r straight/tables else/where/study/tables 2>&1)" ""

# Two processes share one study.
study run --verbose small.json -o shared >first.log 2>&1 &
first=$!
study run --verbose small.json -o shared >second.log 2>&1
wait $first
units() { sed -n 's/^fullrank: note: [0-9]*\/[0-9]* \(.*\/[a-z-]*\): [0-9.]* s$/\1/p' "$@"; }
is "no unit is done twice" "$(units first.log second.log | sort | uniq -d)" ""
is "every unit is done once" "$(units first.log second.log | wc -l)" \
    "$(study status shared --json | grep -c '"status": "done"')"
is "two processes give the same tables" "$(diff -r straight/tables shared/tables 2>&1)" ""

# Tables depend only on the ledger.
cp -r straight ledger
rm -rf ledger/runs ledger/ranks ledger/data ledger/tables ledger/figures ledger/report.html
runs "report from the ledger alone" 0 study report ledger
is "gives the same tables" "$(diff -r straight/tables ledger/tables 2>&1)" ""

# Only units with changed inputs are done again.
write small.json 1
runs "with other settings" 0 study run --verbose small.json -o straight
has "models are trained again" "$stderr" "mine/craft/bce/7/train"
lacks "baselines are left alone" "$stderr" "recency/rank"
cp plain.json small.json
rm straight/runs/mine+craft+bce+7+train/model.safetensors
runs "a model that is gone is trained again when it is needed" 0 study run --verbose small.json -o straight
is "and gives the same tables" "$(diff -r straight/tables killed/tables 2>&1)" ""

# A failed unit is recorded, and stops only the units that need it.
cat >wrong.json <<'END'
{"data": {"drawn": {"synth": "tiny", "events": 1500}}, "protocol": {"window": 0}, "baselines": ["recency"],
 "models": ["craft", "graphmixer"], "seeds": [7, 17], "settings": {"epochs": 1, "dim": 9}}
END
runs "a study with units that fail" 1 study run --verbose wrong.json -o wrong
has "says so" "$stderr" "2 units failed; \`fullrank study status wrong\` says why"
runs "its status" 0 study status wrong
has "gives the reason" "$stdout" "failed   drawn/craft/bce/17/train: dim 9 is not a multiple of heads 2"
has "the rest was done, but what needs them" "$stdout" "7 of 11 units done, 0 running, 2 failed, 2 left"

# A study needs its own directory.
runs "a folder with data" 1 study run --verbose plain.json -o mine
has "is refused" "$stderr" "mine: contains other files but no study; choose another directory"
is "and left alone" "$(find mine -name '*study*')" ""
mkdir notes && echo mine >notes/room
runs "a folder with anything" 1 study run --verbose plain.json -o notes
is "is left alone, too" "$(ls notes):$(cat notes/room)" "room:mine"

# Names that differ in one character have different files.
echo '{"data": {"a:b": {"synth": "tiny", "events": 300}, "a-b": {"synth": "tiny", "events": 300, "seed": 5},
 "a+b": {"synth": "tiny", "events": 300, "seed": 6}}, "protocol": {"window": 0}, "baselines": ["recency"]}' >names.json
runs "names that look alike" 0 study run names.json -o names -q
is "have files of their own" "$(count names/data/*) $(count names/ranks/*.npy)" "3 3"
runs "and again" 0 study run --verbose names.json -o names
lacks "nothing is made twice" "$stderr" "missing or changed"
long=$(printf '%0230d' 0)
echo "{\"data\": {\"${long}x\": {\"synth\": \"tiny\", \"events\": 300}, \"${long}y\": {\"synth\": \"tiny\", \"events\": 300}},
 \"protocol\": {\"window\": 0}, \"baselines\": [\"recency\"]}" >long.json
runs "names that are long" 0 study run long.json -o long -q
is "have files of their own" "$(count long/data/*) $(count long/ranks/*.npy)" "2 2"

# A user's files next to the study's files stay, and links are not followed.
kept=straight/runs/mine+craft+bce+7+train
echo "my notes" >$kept/notes.txt
mkdir outside && mv straight/runs/mine+craft+bce+17+train outside/run && echo precious >outside/run/state.safetensors
ln -s "$PWD/outside/run" straight/runs/mine+craft+bce+17+train
write small.json 1
runs "with a link among the runs" 1 study run --verbose small.json -o straight
has "the unit fails" "$stderr" "mine+craft+bce+17+train: a symbolic link, expected what the study made"
is "and nothing is written through it" "$(cat outside/run/state.safetensors)" "precious"
is "a user's file is kept" "$(cat $kept/notes.txt)" "my notes"
rm straight/runs/mine+craft+bce+17+train
runs "without it the study goes on" 0 study run plain.json -o straight -q
is "and gives the same tables" "$(diff -r straight/tables killed/tables 2>&1)" ""

# All K and all seeds are shown.
seeds=$(seq -s , 1 66)
echo "{\"data\": {\"d\": {\"synth\": \"tiny\", \"events\": 300}}, \"protocol\": {\"window\": 0}, \"models\": [\"craft\"], \"seeds\": [$seeds],
 \"k\": [$(seq -s , 1 40)], \"settings\": {\"epochs\": 1, \"dim\": 8, \"history\": 4}}" >many.json
runs "66 seeds and 40 K" 0 study run many.json -o many -q
has "have a column for each K" "$(head -n 1 many/tables/expected.csv)" "K = 40"
mean=$(printf "import csv, sqlite3
rows = sqlite3.connect('many/study.db').execute(\"SELECT avg(value), count(*) FROM run JOIN metric ON run = id WHERE kind = 'rank' AND name = 'mrr'\")
print('%%.4f %%d' %% rows.fetchone())")
if command -v python3 >/dev/null; then
    is "and count in every mean" "$(awk -F , 'END { printf "%.4f", $(NF - 1) }' many/tables/expected.csv) 66" "$(python3 -c "$mean")"
else
    skip "and count in every mean" "python3 not found"
fi

# The membership table and the full MRR without a direction on both windows. A study without them is continued.
cat >windows.json <<'END'
{"name": "windows", "data": {"drawn": {"synth": "tiny", "events": 2400}}, "protocol": {"window": 1500},
 "diagnostic-window": 0, "baselines": ["recency"], "models": ["craft-r"], "seeds": [7],
 "membership": {"bce": ["craft-r"]}, "projection": ["craft-r"],
 "settings": {"epochs": 1, "dim": 8, "history": 8}}
END
runs "a study with diagnostics" 0 study run windows.json -o windows -q
lacks "without a column for one window" "$(cat windows/tables/membership.csv windows/tables/projection.csv)" window
sed 's/"settings"/"membership-windows": ["ranking", "diagnostic"], "projection-windows": ["diagnostic", "ranking"], "settings"/' \
    windows.json >both.json
runs "the same on both windows" 0 study run --verbose both.json -o windows
is "does only what is new" "$(printf '%s\n' "$stderr" | sed -n 's/.* \(drawn[^ :]*\):.*/\1/p' | sort | tr '\n' ' ')" \
    "drawn/baseline drawn/craft-r/bce/7/diagnostic-project drawn/craft-r/bce/7/membership "
first() { printf '%s\n' "$stdout" | sed -n "s/.*\"$1\": \([0-9.e-]*\),\{0,1\}/\1/p" | head -1; }
data=windows/data/drawn trained=windows/runs/drawn+craft-r+bce+7
runs "the ranking window by hand" 0 "$fullrank" diagnose membership --data $data --window 1500 \
    --scorer $trained+train/model.safetensors --json -q
has "has the table's cell" "$(grep 'CRAFT-R,bce,ranking' windows/tables/membership.csv)" ",$(first mrr),"
runs "the diagnostic window by hand" 0 "$fullrank" diagnose project --data $data --window 0 \
    --scorer $trained+diagnostic-train/model.safetensors --json -q
has "has the table's full MRR" "$(grep 'CRAFT-R,diagnostic' windows/tables/projection.csv)" ",$(first mrr),"
is "and its number of events" "$(sed -n 's/.*CRAFT-R,diagnostic,.*,//p' windows/tables/projection.csv)" "$(first ranked)"

# Documents that are not studies.
bad() { # NAME TEXT MESSAGE
    printf '%s\n' "$2" >bad.json
    runs "$1" 1 study run --verbose bad.json -o bad
    has "$1: the reason" "$stderr" "$3"
    if [ -e bad ]; then miss "$1: nothing is left behind"; else pass "$1: nothing is left behind"; fi
}
bad "no JSON" '{"data": ' 'bad.json:2'
bad "unknown entry" '{"modles": []}' 'unknown entry "modles", did you mean models?'
bad "no data" '{"models": ["craft"], "seeds": [1]}' '"data" is not as it should be'
bad "unknown model" '{"data": ["x"], "models": ["kraft"], "seeds": [1]}' 'unknown model kraft, did you mean craft?'
bad "unknown setting" '{"data": ["x"], "settings": {"epoch": 3}}' 'settings: unknown option epoch'
bad "bad protocol" '{"data": ["x"], "protocol": {"window": -1}}' 'protocol: option window'
bad "no seeds" '{"data": ["x"], "models": ["craft"]}' '"seeds" is not as it should be'
bad "gain of one" '{"data": ["x"], "models": ["craft"], "seeds": [1], "gain": ["craft"]}' '"gain" is not as it should be'
bad "projection of a stranger" '{"data": ["x"], "models": ["craft"], "seeds": [1], "projection": ["craft-r"]}' 'which is not among "models"'
bad "windows of nothing" '{"data": ["x"], "membership-windows": ["ranking"]}' '"membership-windows" has no effect without "membership"'
bad "an unknown window" '{"data": ["x"], "membership": {}, "membership-windows": ["wide"]}' '"membership-windows" is not as it should be, expected a list of'
bad "no window" '{"data": ["x"], "projection": [], "projection-windows": []}' '"projection-windows" is not as it should be, expected a list of'
bad "a window twice" '{"data": ["x"], "projection": [], "projection-windows": ["ranking", "ranking"]}' '"projection-windows" is not as it should be'
bad "a window that is no list" '{"data": ["x"], "projection": [], "projection-windows": "ranking"}' '"projection-windows" is not as it should be'
bad "a K twice" '{"data": ["x"], "k": [1, 5, 5]}' '"k" names 5 twice'
bad "a seed twice" '{"data": ["x"], "models": ["craft"], "seeds": [7, 7]}' '"seeds" names 7 twice'
bad "a model twice" '{"data": ["x"], "models": ["craft", "craft"], "seeds": [7]}' '"models" names "craft" twice'
bad "a baseline twice" '{"data": ["x"], "baselines": ["recency", "recency"]}' '"baselines" names "recency" twice'
bad "a set twice" '{"data": ["x", "x"]}' '"data" names "x" twice'
bad "membership of a stranger" '{"data": ["x"], "models": ["craft"], "seeds": [1], "membership": {"bce": ["tgn"]}}' 'which is not among "models"'
bad "a set with a path for a name" '{"data": {"../x": "y"}}' 'a data set called "../x"'
bad "unknown baseline" '{"data": ["x"], "baselines": ["recencyy"]}' '"baselines": unknown baseline recencyy, did you mean recency?'
bad "unknown option of a baseline" '{"data": ["x"], "baselines": ["edgebank,memry=all"]}' 'baseline edgebank: unknown option memry, did you mean memory?'
bad "unknown scorer" '{"data": ["x"], "scorers": {"mine": "basline:recency"}}' '"scorers": unknown scorer basline:recency, expected'
bad "unknown baseline as a scorer" '{"data": ["x"], "scorers": {"mine": "baseline:recencyy"}}' 'did you mean recency?'
bad "unknown preset of synthetic data" '{"data": {"d": {"synth": "tinny"}}}' '"data": d: unknown preset "tinny", did you mean tiny?'
bad "unknown setting of synthetic data" '{"data": {"d": {"synth": "tiny", "event": 30}}}' '"data": d: unknown option event, did you mean events?'
bad "unknown parameter of synthetic data" '{"data": {"d": {"synth": "tiny", "parameters": "sorces=30"}}}' 'did you mean sources?'
bad "a flag that is none" '{"data": ["x"], "oracle": "yes"}' '"oracle" is not as it should be, expected true or false'
bad "another flag that is none" '{"data": ["x"], "minimal": 1}' '"minimal" is not as it should be, expected true or false'
bad "a name that is none" '{"data": ["x"], "name": 3}' '"name" is not as it should be, expected a text'
bad "unknown objective" '{"data": ["x"], "models": ["craft"], "seeds": [1], "objectives": {"bcee": ["craft"]}}' '"objectives" has "bcee", expected "bce" or "bpr"'
bad "unknown training setting" '{"data": ["x"], "settings": {"epochz": 3}}' 'settings: unknown option epochz, did you mean epochs?'
bad "a model twice, as it is printed" '{"data": ["x"], "models": ["craft-r", "CRAFT-R"], "seeds": [7]}' '"models" names "craft-r" twice'
bad "unknown data set" '{"data": ["wiki", "mooc"], "scorers": {"mine": {"wiki": "oracle", "moc": "oracle"}}}' 'there is no data set moc, did you mean mooc?'

# Errors that only a run can find are found before the first unit.
early() { # NAME REST MESSAGE
    printf '{"data": {"d": {"synth": "tiny", "events": 300}}, "baselines": ["recency"], %s}\n' "$2" >bad.json
    runs "$1" 1 study run bad.json -o early -q
    has "$1: the reason" "$stderr" "$3"
    is "$1: no unit was done" "$(find early -name '*.npy')" ""
    rm -rf early
}
early "a catalog that is not there" '"protocol": {"window": 0, "catalog": "./none.txt"}' \
    "./none.txt: the catalog of the protocol cannot be read"
early "a plug-in that is not there" '"protocol": {"window": 0}, "scorers": {"mine": "plugin:none.so"}' "none.so: is not there"
echo "no plug-in" >odd.so
early "a plug-in that is none" '"protocol": {"window": 0}, "scorers": {"mine": "plugin:odd.so"}' "odd.so"
early "scores that are not there" '"protocol": {"window": 0}, "scorers": {"mine": "scores:none.npy"}' "none.npy: is not there"
early "records that are not there" '"protocol": {"window": 0}, "ranks": {"mine": "none.npy"}' "none.npy: is not there"

# Models may have the names that tables show.
printf '{"data": {"d": {"synth": "tiny", "events": 300}}, "protocol": {"window": 0}, "models": ["CRAFT", "GraphMixer"], "seeds": [1],
 "objectives": {"bce": ["Craft", "graphmixer"]}, "gain": ["CRAFT", "GraphMixer"], "settings": {"epochs": 1, "dim": 8, "history": 4}}\n' >labels.json
runs "models as they are printed" 0 study run labels.json -o labels -q
sed 's/"CRAFT"/"craft"/g; s/"Craft"/"craft"/; s/GraphMixer/graphmixer/g' labels.json >names.json
runs "models as they are typed" 0 study run names.json -o names -q
is "give the same tables" "$(diff -r labels/tables names/tables)" ""
"$fullrank" data synth --preset tiny --events 300 -o drawn -q >/dev/null
for model in craft-r CRAFT-R; do
    runs "train --model $model" 0 "$fullrank" train --data drawn --window 0 --model $model --epochs 1 --dim 8 --history 4 -o "run-$model" -q
done
is "gives the same model" "$(cmp run-craft-r/model.safetensors run-CRAFT-R/model.safetensors 2>&1)" ""
runs "train --model carft" 2 "$fullrank" train --data drawn --window 0 --model carft -o none -q
has "says what was meant" "$stderr" "unknown model carft, did you mean craft?"

# A family of settings by its name, with the user's changes; the report is made again from the ledger only.
printf '{"data": {"d": {"synth": "tiny", "events": 300}}, "protocol": {"window": 0}, "models": ["craft-r", "patch-lha"], "seeds": [1],
 "settings": {"settings": "published", "epochs": 1, "dim": 8}}\n' >family.json
runs "settings by name" 0 study run family.json -o family -q
record=$(find family/runs -name train.json -path '*craft-r*')
has "are in the record" "$(cat "$record")" '"settings": "published"'
has "with their values" "$(cat "$record")" '"attend": 20'
has "and the changes" "$(cat "$record")" '"epochs": 1'
runs "as in train" 0 "$fullrank" train --data drawn --window 0 --model craft-r --settings published --epochs 1 --dim 8 --seed 1 -o run-family -q
is "which gives the same model" "$(cmp run-family/model.safetensors "$(dirname "$record")/model.safetensors" 2>&1)" ""
cp -r family/tables tables-before
rm -r family/tables family/runs
runs "the report of such a study" 0 study report family -q
is "has the same tables" "$(diff -r tables-before family/tables)" ""
sed s/published/publishd/ family.json >odd.json
runs "a family that is not there" 1 study run odd.json -o none -q
has "says what was meant" "$stderr" "did you mean published?"

runs "no document" 2 study run -o none
runs "two documents" 2 study run --verbose plain.json --preset demo -o none
runs "unknown preset" 2 study run --preset papre -o none
runs "no study there" 1 study status nowhere
has "says so" "$stderr" "nowhere: no study there"
mkdir odd
echo "hello there, this is no database" >odd/study.db
runs "not a ledger" 1 study run --verbose plain.json -o odd
has "says so" "$stderr" "odd/study.db: file is not a database"
runs "presets can be printed" 0 study preset paper
has "as documents" "$stdout" '"diagnostic-window": 131072'

# A full disk: one message, and the study continues when there is room.
mkdir full
if mount -t tmpfs -o size=400k none full 2>/dev/null; then
    runs "a full disk" 1 study run plain.json -o full/study -q
    is "gives one message" "$(printf '%s\n' "$stderr" | grep -vc 'skipped:')" 1
    mount -o remount,size=40m full
    runs "with room the study goes on" 0 study run plain.json -o full/study -q
    is "and gives the same tables" "$(diff -r straight/tables full/study/tables 2>&1)" ""
    mount -o remount,ro full
    runs "a read-only disk" 1 study run plain.json -o full/study -q
    has "gives the reason" "$stderr" "Read-only file system"
    runs "its status can be read" 0 study status full/study
    umount full
else
    skip "a full disk" "no right to mount one"
fi

finish
