/* real.h - the number type of training: float, or double when gradients are checked.
 *
 * nn/, models/ and train/ are compiled twice: as they are, and with FR_DOUBLE for the tests that
 * compare gradients with central differences, because in float the rounding would be too large.
 */
#ifndef FR_NN_REAL_H
#define FR_NN_REAL_H

#include <math.h>

#ifdef FR_DOUBLE
typedef double real;
#define real_fma  fma
#define real_sqrt sqrt
#define REAL(x)   x
#else
typedef float real;
#define real_fma  fmaf
#define real_sqrt sqrtf
#define REAL(x)   x##f
#endif

#endif
