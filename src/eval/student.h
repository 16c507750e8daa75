/* student.h - quantiles of Student's t distribution, for intervals over seeds (PROTOCOL 11). */
#ifndef FR_EVAL_STUDENT_H
#define FR_EVAL_STUDENT_H

/* The t with P(T <= t) = p, for 0 < p < 1 and df >= 1, a whole number or, as Welch's, not. Relative
 * error below 1e-12 for df up to 1000 and p from 1e-12 to 1 - 1e-12. Time grows with df, about
 * 0.1 ms at 1000. */
double student_quantile(double p, double df);

#endif
