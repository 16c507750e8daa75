#!/bin/sh
# tgb.sh - expectations of TGB's lists, and ranks against them, compared with py-tgb's own generator and Evaluator. The
# real streams are cut short here; `tests/tgb_lists.py FULLRANK --events 500` uses them whole.
# shellcheck source=tests/tap.sh
. "$FULLRANK_SOURCE/tests/tap.sh"
for python in "${FULLRANK_TGB_PYTHON:-}" "${FULLRANK_PYTHON:-}" python3; do
    [ -n "$python" ] || continue
    if "$python" -c "import tgb.linkproppred.negative_generator, tgb.linkproppred.evaluate" >/dev/null 2>&1; then
        exec "$python" "$FULLRANK_SOURCE/tests/tgb_lists.py" "$1" --rows 6000 --events 30 --k 8,100
    fi
done
skip "TGB's generator and Evaluator" "needs py-tgb and what it imports (pip install py-tgb torch_geometric), found by \$FULLRANK_TGB_PYTHON or python3"
finish
