#!/bin/sh
# audit.sh - how often audits are wrong: false alarms for all our scorers, and leaks that are missed.
#
#   bench/audit.sh alarms DATA... [-- CHECKPOINT...]   all baselines, and checkpoints trained on DATA, under four orders
#   bench/audit.sh power DATA...                       look-ahead of one event in 1 of 1,000 scores by at most 1e-3, 100 seeds
#
# $STREAMS are the numbers of streams (25 50 200), $FULLRANK is the tool (build/fullrank), $LEAKY the plug-in with planted leaks (build/tests/plugins/leaky.so), which is
# built with the tests. docs/audit.md has the numbers.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
fullrank=${FULLRANK:-$root/build/fullrank}
leaky=${LEAKY:-$root/build/tests/plugins/leaky.so}

audit() { "$fullrank" audit --quiet "$@"; }

alarms() {
    data="" extra=""
    while [ $# -gt 0 ] && [ "$1" != -- ]; do data="$data $1" && shift; done
    [ $# -gt 0 ] && shift && extra=$*
    total=0 found=0
    for set in $data; do
        for order in stream strict batch:50 batch:200; do
            for scorer in $("$fullrank" baselines | sed -n 's/^\([a-z-]*\): .*/baseline:\1/p') $extra; do
                # a checkpoint of another order cannot be opened, and neither can an oracle without a synthetic
                # stream: no audit
                result=$(audit --data "$set" --order "$order" --scorer "$scorer" 2>/dev/null)
                case $result in
                *FOUND*) found=$((found + 1)) && echo "$set, $order, $scorer: an alarm" ;;
                '') continue ;;
                esac
                total=$((total + 1))
            done
        done
    done
    echo "$found alarms in $total audits"
}

power() {
    for set in "$@"; do
        for leak in next own next,rate=10000 own,rate=10000; do
            for streams in ${STREAMS:-25 50 200}; do
                hits=0 seed=0
                while [ $seed -lt 100 ]; do
                    audit --data "$set" --scorer "plugin:$leaky,leak=$leak,salt=$seed" --seed "$seed" --streams "$streams" \
                        --checks future 2>/dev/null | grep -q 'future *FOUND' && hits=$((hits + 1))
                    seed=$((seed + 1))
                done
                echo "$set, leak=$leak, $streams streams: found with $hits of 100 seeds"
            done
        done
    done
}

case ${1:-} in
alarms | power) "$@" ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
