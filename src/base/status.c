/* status.c - error messages; see status.h. */
#include "base/status.h"

#include "base/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

fr_status fail(fr_error *err, fr_status code, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        (void)number_vprint(err->message, sizeof err->message, format, args);
        va_end(args);
    }
    return code;
}

fr_status fail_errno(fr_error *err, const char *format, ...) {
    int number = errno;
    fr_status code = number == ENOMEM ? FR_ENOMEM : FR_EFILE;
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        int used = number_vprint(err->message, sizeof err->message, format, args);
        va_end(args);
        if (used >= 0 && (size_t)used < sizeof err->message)
            (void)snprintf(err->message + used, sizeof err->message - (size_t)used, ": %s",
                           strerror(number));
    }
    return code;
}

fr_status fail_memory(fr_error *err, size_t bytes) {
    if (!bytes) return fail(err, FR_ENOMEM, "out of memory");
    return fail(err, FR_ENOMEM, "out of memory: %zu bytes could not be had", bytes);
}
