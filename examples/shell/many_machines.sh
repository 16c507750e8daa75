#!/bin/sh
# Many machines, one study: the same command on each of them, with a directory that all of them see. Each takes
# units that no other has; the results have the same bytes as from one machine. Here two processes stand for two machines.
# With MPI it is one command: mpirun -n 8 fullrank study run study.json -o shared (docs/cluster.md).
#
#     examples/shell/many_machines.sh
set -eu
fullrank=${FULLRANK:-fullrank}
cat >grid.json <<'END'
{"name": "grid", "data": {"drawn": {"synth": "tiny", "events": 2000}}, "protocol": {"window": 0},
 "diagnostic-window": 0, "baselines": ["recency"], "models": ["craft"], "seeds": [7, 17, 27, 37], "k": [20],
 "settings": {"epochs": 2, "dim": 16, "history": 16}}
END
"$fullrank" study run grid.json -o shared --threads 1 --verbose --no-report 2>first.log &
"$fullrank" study run grid.json -o shared --threads 1 --verbose --no-report 2>second.log
wait
echo "the first did $(grep -c ' s$' first.log || true) units, the second $(grep -c ' s$' second.log || true)"
"$fullrank" study report shared
