/* text.c - see text.h. */
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int text_real(double value, bool single, char *out, size_t size) {
    if (value == floor(value) && fabs(value) < 1e15 && !(value == 0 && signbit(value)))
        return snprintf(out, size, "%.0f", value);
    for (int digits = 1;; digits++) {
        int n = snprintf(out, size, "%.*g", digits, value);
        double back = strtod(out, NULL);
        if ((single ? (float)back == (float)value : back == value) || digits >= 17) return n;
    }
}
