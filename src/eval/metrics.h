/* metrics.h - the sums behind the metrics; the registry itself is public (fullrank.h, chapter 11).
 */
#ifndef FR_EVAL_METRICS_H
#define FR_EVAL_METRICS_H

#include <stdint.h>

/* 1/(low+1) + 1/(low+2) + ... + 1/high, to the last digits, in O(1) for long sums. */
double harmonic(int64_t low, int64_t high);

#endif
