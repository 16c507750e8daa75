#!/usr/bin/env python3
"""Quantiles of Student's t to 25 digits: the table of test_eval_student.c.

Needs mpmath. The mass between 0 and t is an integral of cos(x)^(df-1) with t = sqrt(df) tan(x), taken by Gauss-Legendre
quadrature at 35 digits; its inverse is found by bisection and the Illinois method. No series or continued fraction of the product is used.

usage: reference_student.py    prints the rows of the table
"""
from mpmath import cos, findroot, gamma, log, mp, mpf, pi, quad, sqrt, tan

mp.dps = 35
DF = [1, 2, 3, 4, 5, 9, 10, 29, 30, 99, 100, 365, 1000]
P = [0.5001, 0.6, 0.75, 0.9, 0.975, 0.995, 0.9995, 1 - 1e-9]


def beyond(angle, df):
    """P(T > t) by quadrature, cut where the integrand falls fast."""
    height = gamma(mpf(df + 1) / 2) / (sqrt(pi) * gamma(mpf(df) / 2))
    parts = [angle + (pi / 2 - angle) * k / 8 for k in range(9)]
    return height * quad(lambda x: abs(cos(x)) ** (df - 1), parts)


def quantile(p, df):
    low, high = mpf(0), pi / 2
    while high - low > (pi / 2 - high) / 2:  # until the logarithm below is nearly straight
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, df) > 1 - mpf(p) else (low, middle)
    angle = findroot(lambda x: log(beyond(x, df) / (1 - mpf(p))), (low, high), solver="illinois", tol=1e-50)
    return sqrt(df) * tan(angle)


WELCH = [1.5, 2.25, 3.99, 41.375]  # degrees of freedom of unequal spreads

for df in WELCH + DF:
    for p in [0.6, 0.975, 0.9995] if df in WELCH else P:
        print("    {%g, %r, %s}," % (df, p, mp.nstr(quantile(p, mpf(df)), 25)))
