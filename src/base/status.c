/* status.c - error messages; see status.h. */
#include "base/status.h"

#include "base/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool within_letter(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* Messages contain foreign names and values, but are always one line. If a message is too long, its
 * middle is left out, because the place is at the beginning and the reason at the end. */
static void set_message(fr_error *err, fr_status code, const char *reason, const char *format,
                        va_list args) {
    enum { SIZE = sizeof err->message, HALF = SIZE / 2 - 3 };
    char text[SIZE], *whole = text, *shown = NULL;
    va_list again;
    va_copy(again, args);
    int used = number_vprint(text, SIZE, format, args);
    size_t begin = used > 0 ? (size_t)used : 0, size = begin + strlen(reason) + 3;
    if (size > SIZE && (whole = malloc(size))) (void)number_vprint(whole, size, format, again);
    va_end(again);
    if (whole && *reason) (void)snprintf(whole + begin, size - begin, ": %s", reason);
    size_t length = fr_text_printable(whole ? whole : text, err->message, SIZE);
    if (length >= SIZE && (shown = malloc(length + 1))) {
        (void)fr_text_printable(whole ? whole : text, shown, length + 1);
        int head = HALF, tail = (int)length - HALF;
        while (within_letter(shown[head])) head--;
        while (within_letter(shown[tail])) tail++;
        (void)snprintf(err->message, SIZE, "%.*s ... %s", head, shown, shown + tail);
    }
    err->code = code;
    if (whole != text) free(whole);
    free(shown);
}

fr_status fr_fail(fr_error *err, fr_status code, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        set_message(err, code, "", format, args);
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
    return fail(err, FR_ENOMEM, "out of memory: %zu bytes could not be allocated", bytes);
}
