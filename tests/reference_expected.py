#!/usr/bin/env python3
"""Expected sampled reciprocal ranks to 20 digits, straight from the definition of PROTOCOL 6.

    reference_expected.py NEGATIVES,ABOVE,TIED,K ...    one line per case: rr rr2 variance hits10
    reference_expected.py --table                       the rows stored in test_eval_expected.c

Sums C(a,h) C(b,g) C(c,K-h-g) / C(M,K) * f(h,g) with every binomial from loggamma at 60 digits,
so nothing is shared with the ratio walks of src/eval/expected.c. The chances are not normalised:
that they add up to 1 is checked instead. Needs mpmath; without it the exit code is 3.
"""
import sys

try:
    from mpmath import mp, mpf, loggamma, exp, nstr
except ImportError:
    sys.exit(3)

mp.dps = 60
NEGLIGIBLE = mpf(10) ** -45

TABLE = [  # negatives, above, tied, K
    (9999999, 0, 0, 1000000),
    (9999999, 1, 0, 1000000),
    (9999999, 12345, 0, 1000000),
    (9999999, 5000000, 0, 1000000),
    (9999999, 9999999, 0, 1000000),
    (9999999, 50, 30, 1000000),
    (9999999, 0, 9999999, 1000000),
    (9999999, 5, 2000, 1000000),
    (9999999, 3000000, 3, 1000000),
    (9999999, 0, 1, 999999),
    (9999999, 300000, 300000, 1000),
    (9999999, 7, 9000000, 100),
    (999999, 1000, 500, 20),
    (999999, 999000, 999, 100),
]


def log_factorial(n, known={}):
    if n not in known:
        known[n] = loggamma(mpf(n) + 1)
    return known[n]


def log_binomial(n, k):
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k)


def around(middle, low, high, function):
    """Calls function(x) outwards from `middle` in both directions until it returns False."""
    middle = min(max(int(middle), low), high)
    x = middle
    while x <= high and function(x):
        x += 1
    x = middle - 1
    while x >= low and function(x):
        x -= 1


def moments(size, above, tied, k):
    below = size - above - tied
    everything = log_binomial(size, k)
    total, rr, rr2, hits = mpf(0), mpf(0), mpf(0), mpf(0)

    def add_row(h):
        row = [mpf(0)]
        ways_h = log_binomial(above, h)

        def add(g):
            nonlocal total, rr, rr2, hits
            chance = exp(ways_h + log_binomial(tied, g) + log_binomial(below, k - h - g) - everything)
            value = 1 / (1 + h + mpf(g) / 2)
            total += chance
            rr += chance * value
            rr2 += chance * value ** 2
            if 2 + 2 * h + g <= 20:
                hits += chance
            row[0] += chance
            return chance > NEGLIGIBLE

        low, high = max(0, k - h - below), min(tied, k - h)
        if low > high:
            return False
        rest = size - above
        around((k - h) * tied / rest if rest else 0, low, high, add)
        return row[0] > NEGLIGIBLE

    around(k * above / size, max(0, k - tied - below), min(above, k), add_row)
    assert abs(total - 1) < mpf(10) ** -30, (size, above, tied, k, nstr(total - 1, 5))
    return rr, rr2, rr2 - rr ** 2, hits


def main():
    if sys.argv[1:] == ["--table"]:
        for case in TABLE:
            numbers = ", ".join(nstr(x, 20) for x in moments(*case)[:3])
            print("    {%d, %d, %d, %d, %s}," % (*case, numbers), flush=True)
        return
    for case in sys.argv[1:]:
        print(" ".join(nstr(x, 20) for x in moments(*map(int, case.split(",")))), flush=True)


if __name__ == "__main__":
    main()
