#!/bin/sh
# torch_models.sh - every model against an independent implementation. Prints TAP.
#
# examples/python/torch_models.py is written in PyTorch from the models' description; tests/torch_models.py compares losses and
# scores: without edge features, with four, and with shared ids; with plain settings and those of the family `published`.
# Under sanitizers only the stream with shared ids is used. Without torch (FULLRANK_TORCH names a python3 that has it)
# everything is skipped.
#
# usage: FULLRANK_SOURCE=REPOSITORY torch_models.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: torch_models.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
cd "$scratch" || exit 1

# An old PyTorch is recognised by what it cannot do, not by its version.
probe() { "$1" "$FULLRANK_SOURCE/tests/torch_probe.py" 2>&1; }
if python3 -c '' 2>/dev/null; then
    mkdir -p old/torch/nn
    cat >old/torch/__init__.py <<'END'
__version__ = "1.13.1"
zeros = float
class optim:
    def Adam(parameters, fused=False):
        if fused: raise RuntimeError("FusedAdam requires all the params to be CUDA, floating point")
END
    echo "Parameter = list_of = lambda x: x" >old/torch/nn/__init__.py
    echo "scaled_dot_product_attention = None" >old/torch/nn/functional.py
    is "a fused Adam that is not there is noticed" "$(PYTHONPATH=old probe python3)" \
        "torch 1.13.1 has no fused Adam for the CPU"
    : >old/torch/nn/functional.py
    is "and so is missing attention" "$(PYTHONPATH=old probe python3)" \
        "torch 1.13.1 has no scaled_dot_product_attention"
else
    skip "old versions of torch" "python3 is not installed"
fi

torch=""
for python in "${FULLRANK_TORCH:-}" python3 /usr/bin/python3; do
    [ -n "$python" ] && "$python" -c 'import torch, numpy' 2>/dev/null && torch=$python && break
done
if [ -z "$torch" ]; then
    skip "models against PyTorch" "torch is not installed"
    finish
fi
missing=$(probe "$torch")
if [ -n "$missing" ]; then
    skip "models against PyTorch" "$missing"
    finish
fi

"$fullrank" data synth --preset tiny -o tiny -q >/dev/null
"$fullrank" data export tiny -o tiny.csv
sed 2001q tiny.csv >plain.csv
"$fullrank" data import plain.csv -o plain -q >/dev/null
awk -F , 'NR == 1 { print "user_id,item_id,timestamp,state_label,comma_separated_list_of_features"; next }
    { printf "%s,%s,%s,0", $1, $2, $3; for (k = 1; k <= 4; k++) printf ",%.4f", sin(k * NR + $2); print "" }' \
    plain.csv >edges.csv
"$fullrank" data import edges.csv -o edges -q >/dev/null
has "a stream with four edge features" "$(cat edges/manifest.json)" '"feature_width": 4'
# one space of nodes: half of the ids are in both columns, some events are loops
awk -F , 'NR == 1 { print; next } { print $1 % 40 "," 20 + $2 % 40 "," $3 }' plain.csv >nodes.csv
"$fullrank" data import nodes.csv --shared-ids -o nodes -q >/dev/null
has "a stream with shared ids" "$(cat nodes/manifest.json)" '"shared_ids": true'

folders="plain edges nodes"
[ -z "$sanitized" ] || folders=nodes
# shellcheck disable=SC2086 # words
"$torch" "$FULLRANK_SOURCE/tests/torch_models.py" "$FULLRANK_SOURCE/examples/python/torch_models.py" "$fullrank" $folders \
    >results 2>log
is "runs to its end" "$? $(tail -n 3 log)" "0 "
while read -r word line; do
    case $word in
    ok) pass "$line" ;;
    skip) skip "${line%: *}" "${line##*: }" ;;
    *) miss "$line" ;;
    esac
done <results
finish
