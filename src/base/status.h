/* status.h - how a function reports an error.
 *
 *     if (x < 0) return fail(err, FR_EINPUT, "%s:%d: id %d is negative", path, line, x);
 *     TRY(other_function(..., err));            // passes a failure on
 *
 * Functions that own something keep one exit label instead and use `status = ...; goto done`.
 */
#ifndef FR_BASE_STATUS_H
#define FR_BASE_STATUS_H

#include "fullrank.h"

/* The internal name of fr_fail. */
#define fail fr_fail
/* The same with ": " and the text of errno after it; FR_EFILE, or FR_ENOMEM if errno is ENOMEM. */
fr_status fail_errno(fr_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `bytes` is the requested number; 0 = unknown. */
fr_status fail_memory(fr_error *err, size_t bytes);

/* Refuses a NULL argument: NEED(window, err). */
#define NEED(pointer, err)                                                                         \
    do {                                                                                           \
        if (!(pointer)) return fail((err), FR_EUSAGE, "%s: %s is NULL", __func__, #pointer);       \
    } while (0)

#define TRY(call)                                                                                  \
    do {                                                                                           \
        fr_status try_status_ = (call);                                                            \
        if (try_status_) return try_status_;                                                       \
    } while (0)

#endif
