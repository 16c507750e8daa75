#!/bin/sh
# Compare two models over seeds: the difference, its two confidence intervals, and whether K negatives give the same order.
#
#     examples/shell/two_models.sh
set -eu
fullrank=${FULLRANK:-fullrank}
[ -d data ] || "$fullrank" data synth --preset tiny --events 3000 -o data --quiet >/dev/null
for model in craft craft-r; do
    for seed in 7 17; do
        "$fullrank" train --data data --model $model --seed $seed --epochs 2 --dim 16 --history 16 \
            -o "run-$model-$seed" --force --quiet >/dev/null
        "$fullrank" rank --data data --scorer "run-$model-$seed/model.safetensors" -o "$model-$seed.npy" --force --quiet >/dev/null
    done
done
"$fullrank" compare craft@7=craft-7.npy craft@17=craft-17.npy craft-r@7=craft-r-7.npy craft-r@17=craft-r-17.npy --k 1,20
