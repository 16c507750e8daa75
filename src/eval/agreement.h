/* agreement.h - agreement of two orders of models (PROTOCOL 11). */
#ifndef FR_EVAL_AGREEMENT_H
#define FR_EVAL_AGREEMENT_H

/* Kendall's tau-b between two lists of `count` numbers: over all pairs, the mean product of the
 * signs of their differences, scaled so that full agreement is 1 even with ties. Without
 * ties it is tau-a. NaN if a list has no two different numbers. O(count^2): models are few. */
double kendall_tau(const double *a, const double *b, int count);

#endif
