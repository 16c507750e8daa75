#!/bin/sh
# Rank your own table: any CSV or TSV with a source, a destination and a time in each row.
#
#     examples/shell/own_csv.sh          # FULLRANK=path/to/fullrank if it is not installed
set -eu
fullrank=${FULLRANK:-fullrank}
# A shop: who bought what, and when. Yours has another header; --columns says which column is what.
awk 'BEGIN {
    srand(1); print "bought_at,customer,product"
    for (i = 0; i < 3000; i++) {
        c = int(rand() * 80); p = rand() < 0.6 ? c % 17 : int(rand() * 60)
        printf "%d,customer-%d,product-%d\n", 1700000000 + i * 60, c, p
    }
}' >shop.csv
"$fullrank" data info shop.csv --columns time=bought_at,source=customer,destination=product --window 0 --quiet
for scorer in recency popularity; do
    "$fullrank" rank --data shop.csv --columns time=bought_at,source=customer,destination=product --window 0 \
        --scorer "baseline:$scorer" -o "$scorer.npy" --force --quiet >/dev/null
done
"$fullrank" metrics recency.npy popularity.npy
