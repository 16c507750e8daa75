/* text.h - numbers as text that reads back as the same number. */
#ifndef FR_BASE_TEXT_H
#define FR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the shortest decimal text that gives `value` again (as a float if `single`), whole numbers
 * below 10^15 without exponent; returns its length. 32 bytes are enough. */
int text_real(double value, bool single, char *out, size_t size);

#endif
