/* text.h - text: exact numbers, growing text, its width, and similar names.
 *
 * A text_buffer remembers that it ran out of memory and ignores later text, so the caller checks
 * only once, at the end:
 *
 *     text_buffer out = {0};
 *     text_put(&out, "MRR ");
 *     text_print(&out, "%.4f", mrr);
 *     status = text_status(&out, err);
 *     text_free(&out);
 */
#ifndef FR_BASE_TEXT_H
#define FR_BASE_TEXT_H

#include "base/status.h"

/* Writes the shortest decimal text that gives `value` again (as a float if `single`), with whole
 * numbers below 10^15 without exponent; returns its length. 32 bytes are enough. */
int text_real(double value, bool single, char *out, size_t size);

typedef struct text_buffer {
    char *at; /* ends with 0; NULL while nothing was put */
    size_t count, room;
    bool failed;
} text_buffer;

void text_put(text_buffer *out, const char *text);
void text_put_bytes(text_buffer *out, const char *bytes, size_t size);
void text_print(text_buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same character several times; none if `count` is not positive. */
void text_fill(text_buffer *out, char character, int count);
/* FR_ENOMEM if anything is missing. */
fr_status text_status(const text_buffer *out, fr_error *err);
void text_free(text_buffer *out);

/* Reads one character of UTF-8 and moves *text past it; 0 at the end, U+FFFD for an invalid
 * byte. */
uint32_t text_character(const char **text);
/* Appends it as fr_text_printable writes it. */
void text_put_printable(text_buffer *out, const char *text);
/* Width of a line in a terminal: 2 for wide East Asian characters, 0 for combining ones. */
int text_width(const char *text);

/* FR_EUSAGE: "unknown KIND TEXT, did you mean ...?", or a hint that `help` lists all names. */
fr_status text_unknown(const char *kind, const char *text, fr_name_at *names, const void *list,
                       const char *help, fr_error *err);

#endif
