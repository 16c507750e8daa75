/* date.h - ISO dates as seconds since 1970.
 *
 *   2024-01-31
 *   2024-01-31T12:00:00   2024-01-31 12:00:00.123   2024-01-31T12:00:00Z 2024-01-31T12:00:00+01:00
 *
 * Strict: every part has its digits and its range, and the day exists (Gregorian calendar, years
 * 0001 to 9999). Without a time zone it is UTC. Leap seconds do not exist in Unix time and are
 * refused. The double is the one nearest to the decimal fraction, of at most 9 digits.
 */
#ifndef FR_DATA_DATE_H
#define FR_DATA_DATE_H

#include <stdbool.h>

/* True if a date seems to begin here: four digits, a dash and a digit. */
bool date_begins(const char *p);
/* The byte after the date, or date and time, at `p`; NULL if it is not a date. The text must end in
 * a newline or 0. `blank`: a blank may replace the T. */
const char *date_read(const char *p, bool blank, double *seconds);

#endif
