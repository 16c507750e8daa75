/* status.c - error messages; see status.h. */
#include "base/status.h"

#include "base/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names and values from elsewhere are in messages: whatever is in them, a message is one line. */
static void set_message(fr_error *err, fr_status code, const char *reason, const char *format,
                        va_list args) {
    char text[sizeof err->message];
    int used = number_vprint(text, sizeof text, format, args);
    if (reason && used >= 0 && (size_t)used < sizeof text)
        (void)snprintf(text + used, sizeof text - (size_t)used, ": %s", reason);
    err->code = code;
    (void)fr_text_printable(text, err->message, sizeof err->message);
}

fr_status fail(fr_error *err, fr_status code, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        set_message(err, code, NULL, format, args);
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
        set_message(err, code, strerror(number), format, args);
        va_end(args);
    }
    return code;
}

fr_status fail_memory(fr_error *err, size_t bytes) {
    if (!bytes) return fail(err, FR_ENOMEM, "out of memory");
    return fail(err, FR_ENOMEM, "out of memory: %zu bytes could not be had", bytes);
}
