#!/bin/sh
# models.sh - the same commands and guarantees for every model: train, resume, rank, verify, dump. Prints TAP.
#
# The stream has four features per event and many events at one time. `fullrank models` says which models there are.
#
# usage: FULLRANK_SOURCE=REPOSITORY models.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: models.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1

# FEATURES: how the four features follow from the line
events() {
    awk "function f(k) { return $1 }"' BEGIN {
        print "u,v,t,f1,f2,f3,f4"
        for (i = 0; i < 700; i++) {
            x = (x * 1103 + 12345) % 65536
            u = x % 13; v = x % 3 ? (2 * u) % 29 : int(x / 16) % 29
            print u "," v "," int(i / 3) * 40 "," f(1) "," f(2) "," f(3) "," f(4)
        }
    }'
}
events "((i * 37 + k * 11) % 19) / 19" >data.csv
events "((i * 23 + k * 5) % 17) / 17" >other.csv # the same events, other features

train() { "$fullrank" train --data data.csv --dim 8 --batch-size 100 "$@"; }
rank() { "$fullrank" rank --data data.csv "$@"; }
same() { # NAME FILE FILE
    if cmp -s "$2" "$3"; then pass "$1"; else miss "$1" "$2 and $3 differ"; fi
}
refused() { # NAME CODE MESSAGE COMMAND...: nothing is left behind
    name=$1 want=$2 message=$3
    shift 3
    before=$(find . -name '.std*' -prune -o -print | sort | cksum)
    runs "$name" "$want" "$@"
    has "$name: says why" "$stderr" "$message"
    is "$name: leaves nothing" "$(find . -name '.std*' -prune -o -print | sort | cksum)" "$before"
}

models=$("$fullrank" models | sed -n 's/^\([a-z][a-z-]*\): .*/\1/p')
has "the models of the paper come first" "$(echo "$models" | tr '\n' ' ')" "craft craft-r dygformer dygformer-lha tgn graphmixer "

for model in $models; do
    short=""
    case $model in craft* | dygformer*) short="--history 15" ;; esac
    # shellcheck disable=SC2086 # options are words
    {
        runs "$model: train" 0 train --model "$model" $short --epochs 2 -o "$model"
        train --model "$model" $short --epochs 1 --threads 2 -o "$model-parts" >/dev/null 2>&1
        runs "$model: resume" 0 train --model "$model" $short --epochs 2 -o "$model-parts" --resume
    }
    same "$model: resumed, or straight" "$model/model.safetensors" "$model-parts/model.safetensors"
    runs "$model: rank, verify, dump" 0 rank --scorer "$model/model.safetensors" -o "$model.npy" --verify 60 \
        --dump-scores "$model-scores.npy" --threads 1
    has "$model: verified" "$(cat "$model.json")" '"ranks_differ": 0'
    rank --scorer "$model/model.safetensors" -o "$model-2.npy" --dump-scores "$model-scores-2.npy" --threads 2 \
        --shard 7 >/dev/null 2>&1
    same "$model: 2 threads, other shards, the same records" "$model.npy" "$model-2.npy"
    same "$model: the same scores" "$model-scores.npy" "$model-scores-2.npy"
    rank --scorer "scores:$model-scores.npy" -o "$model-again.npy" >/dev/null 2>&1
    is "$model: its scores as a file have its ranks" \
        "$("$fullrank" metrics "$model-again.npy" --json | sed -n 's/.*"mrr": *\([0-9.]*\).*/\1/p' | head -n 1)" \
        "$("$fullrank" metrics "$model.npy" --json | sed -n 's/.*"mrr": *\([0-9.]*\).*/\1/p' | head -n 1)"

    case $model in
    craft) as=craft-r ;;
    craft-r) as=craft ;;
    dygformer) as=dygformer-lha ;;
    dygformer-lha) as=dygformer ;;
    tgn) as=graphmixer ;;
    *) as=tgn ;;
    esac
    refused "$model: goes on as $as" 2 "a run with model $model" train --model $as --epochs 3 -o "$model" --resume
    if [ -n "${FULLRANK_PYTHON:-}" ]; then # the checkpoint says it is another model's
        "$FULLRANK_PYTHON" - "$model/model.safetensors" "$as" <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
header["__metadata__"]["model"] = sys.argv[2]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("posing.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
END
        refused "$model: loaded as $as" 1 "posing.safetensors: " rank --scorer posing.safetensors -o x.npy
        rm -f posing.safetensors
    fi
    size=$(wc -c <"$model/model.safetensors")
    for part in 4 $((size / 2)) $((size - 1)); do
        head -c "$part" "$model/model.safetensors" >short.safetensors
        refused "$model: $part of $size bytes" 1 "short.safetensors" rank --scorer short.safetensors -o x.npy
    done
    rm -f short.safetensors

    # features
    if train --model "$model" --edge-dim 0 --epochs 1 -o x 2>&1 | grep -q "has no option edge-dim"; then
        refused "$model: has no features" 2 "$model has no option edge-dim" train --model "$model" --edge-dim 0 -o x
        continue
    fi
    rm -rf x
    refused "$model: features that are not there" 2 "the data has 4 features" \
        train --model "$model" --edge-dim 3 -o x
    for data in data other; do
        # shellcheck disable=SC2086
        "$fullrank" train --data $data.csv --dim 8 --batch-size 100 --model "$model" $short --epochs 1 \
            --set edge_dim=0 -o "blind-$data" >/dev/null 2>&1
        "$fullrank" rank --data $data.csv --scorer "blind-$data/model.safetensors" -o "blind-$data.npy" >/dev/null 2>&1
        # shellcheck disable=SC2086
        "$fullrank" train --data $data.csv --dim 8 --batch-size 100 --model "$model" $short --epochs 1 \
            -o "sighted-$data" >/dev/null 2>&1
        "$fullrank" rank --data $data.csv --scorer "sighted-$data/model.safetensors" -o "sighted-$data.npy" \
            --dump-scores "sighted-$data-scores.npy" >/dev/null 2>&1
    done
    same "$model: edge_dim=0 ignores features" blind-data.npy blind-other.npy
    if cmp -s sighted-data-scores.npy sighted-other-scores.npy; then
        miss "$model: else they count" "the same scores with other features"
    else
        pass "$model: else they count"
    fi
    refused "$model: the checkpoint of other features" 1 "trained on data with sha256" \
        rank --scorer sighted-other/model.safetensors -o x.npy
    rm -rf blind-* sighted-*
done

refused "craft: tokens of another model" 2 "craft has no option tokens" train --model craft --tokens 5 -o x
refused "graphmixer: heads of another model" 2 "graphmixer has no option heads" train --model graphmixer --heads 4 -o x
refused "dygformer: gamma of another model" 2 "dygformer has no option gamma" train --model dygformer --gamma 0.5 -o x
refused "tgn: history of another model" 2 "tgn has no option history" train --model tgn --history 5 -o x

# The limit is a gigabyte per process on real windows; on this stream memory is far below it. Sanitizers need
# additional memory.
if [ -n "$sanitized" ]; then
    skip "peak memory" "measured without sanitizers"
elif [ -n "${FULLRANK_PYTHON:-}" ]; then
    for model in $models; do
        "$FULLRANK_PYTHON" - "$fullrank" "$model" >peak 2>&1 <<'END'
import resource, subprocess, sys
tool, model = sys.argv[1:]
subprocess.run([tool, "train", "--data", "data.csv", "--model", model, "--epochs", "1", "-o", "wide-" + model],
               check=True, capture_output=True)
subprocess.run([tool, "rank", "--data", "data.csv", "--scorer", "wide-" + model + "/model.safetensors",
                "-o", "wide-" + model + ".npy"], check=True, capture_output=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print("small" if peak < 500 else "%.0f MB" % peak)
END
        is "$model: peak memory of train and rank, standard widths" "$(cat peak)" small
    done
else
    skip "peak memory" "no python3 with NumPy"
fi
finish
