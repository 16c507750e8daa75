/* text.c - see text.h. */
#include "base/text.h"

#include "base/memory.h"
#include "base/number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int text_real(double value, bool single, char *out, size_t size) {
    if (value == floor(value) && fabs(value) < 1e15 && !(value == 0 && signbit(value)))
        return number_print(out, size, "%.0f", value);
    for (int digits = 1;; digits++) {
        int n = number_print(out, size, "%.*g", digits, value);
        double back = number_read(out, NULL);
        if ((single ? (float)back == (float)value : back == value) || digits >= 17) return n;
    }
}

/* ---- text that grows ---- */

/* Room for `size` more bytes and the final 0. */
static bool reserve(text_buffer *out, size_t size) {
    if (!out->failed && array_reserve((void **)&out->at, out->count, &out->room, size + 1, 1, NULL))
        out->failed = true;
    return !out->failed;
}

void text_put_bytes(text_buffer *out, const char *bytes, size_t size) {
    if (!reserve(out, size)) return;
    if (size) memcpy(out->at + out->count, bytes, size);
    out->count += size;
    out->at[out->count] = 0;
}

void text_put(text_buffer *out, const char *text) { text_put_bytes(out, text, strlen(text)); }

void text_print(text_buffer *out, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int size = number_vprint(NULL, 0, format, values);
    va_end(values);
    if (size < 0 || !reserve(out, (size_t)size)) {
        out->failed = true;
        return;
    }
    va_start(values, format);
    (void)number_vprint(out->at + out->count, (size_t)size + 1, format, values);
    va_end(values);
    out->count += (size_t)size;
}

void text_fill(text_buffer *out, char character, int count) {
    if (count <= 0 || !reserve(out, (size_t)count)) return;
    memset(out->at + out->count, character, (size_t)count);
    out->count += (size_t)count;
    out->at[out->count] = 0;
}

fr_status text_status(const text_buffer *out, fr_error *err) {
    return out->failed ? fail_memory(err, out->count) : FR_OK;
}

void text_free(text_buffer *out) {
    free(out->at);
    *out = (text_buffer){0};
}

/* ---- UTF-8 ---- */

uint32_t text_character(const char **text) {
    const unsigned char *at = (const unsigned char *)*text;
    if (!at[0]) return 0;
    int more = at[0] < 0x80             ? 0
               : (at[0] & 0xe0) == 0xc0 ? 1
               : (at[0] & 0xf0) == 0xe0 ? 2
               : (at[0] & 0xf8) == 0xf0 ? 3
                                        : -1;
    static const unsigned char lead[] = {0x7f, 0x1f, 0x0f, 0x07};
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000}; /* shorter forms are not UTF-8 */
    uint32_t code = more < 0 ? 0 : at[0] & lead[more];
    for (int i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80) { /* this is also true at the end of the text */
            more = -1;
            break;
        }
        code = code << 6 | (at[i] & 0x3f);
    }
    bool valid = more >= 0 && code >= least[more] && code <= 0x10ffff && code >> 11 != 0x1b;
    *text += valid ? more + 1 : 1;
    return valid ? code : 0xfffd;
}

/* Characters that control a terminal, reorder text, or are not allowed in XML. */
static bool is_printable(uint32_t code) {
    static const struct {
        uint32_t first, last;
    } never[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},
                 {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (code >= never[i].first && code <= never[i].last) return false;
    return (code & 0xfffe) != 0xfffe; /* these codes are not characters */
}

/* Takes one character of *text in printable form and moves *text past it; returns its length. Does
 * not use stdio, because signal handlers print paths too. */
static size_t take_printable(const char **text, char out[16]) {
    const char *begin = *text;
    uint32_t code = text_character(text);
    size_t size = (size_t)(*text - begin);
    bool broken = code == 0xfffd && size == 1;
    if (!broken && is_printable(code)) {
        memcpy(out, begin, size);
        return size;
    }
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)begin[i];
        memcpy(out + 4 * i, (char[]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4);
    }
    return 4 * size;
}

size_t fr_text_printable(const char *text, char *out, size_t size) {
    size_t all = 0, used = 0;
    char piece[16];
    while (*text) {
        size_t length = take_printable(&text, piece);
        if (used == all && used + length < size) {
            memcpy(out + used, piece, length);
            used += length;
        }
        all += length;
    }
    if (size) out[used] = 0;
    return all;
}

void text_put_printable(text_buffer *out, const char *text) {
    char piece[16];
    while (*text) {
        size_t length = take_printable(&text, piece);
        text_put_bytes(out, piece, length);
    }
}

int text_width(const char *text) {
    static const struct {
        uint32_t first, last;
        int width;
    } special[] = {{0x0300, 0x036f, 0},   {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},
                   {0xfe00, 0xfe0f, 0},   {0x1100, 0x115f, 2},   {0x2e80, 0x303e, 2},
                   {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},
                   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},
                   {0x1f300, 0x1f64f, 2}, {0x1f900, 0x1faff, 2}, {0x20000, 0x3fffd, 2}};
    int width = 0;
    for (uint32_t code; (code = text_character(&text));) {
        int columns = 1;
        for (size_t i = 0; i < sizeof special / sizeof *special; i++)
            if (code >= special[i].first && code <= special[i].last) columns = special[i].width;
        width += columns;
    }
    return width;
}

/* ---- names that are nearly right ---- */

static char fold(char c) { return c == '_' ? '-' : c; }

/* Levenshtein distance; `b` is cut at 63 characters, far beyond any name. */
static int distance(const char *a, const char *b) {
    int row[64];
    int width = (int)strnlen(b, 63);
    for (int j = 0; j <= width; j++) row[j] = j;
    for (int i = 1; *a; a++, i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= width; j++) {
            int swap = diagonal + (fold(*a) != fold(b[j - 1]));
            int step = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = swap < step ? swap : step;
        }
    }
    return row[width];
}

/* The text without a number at its end: "tgb-hist" of "tgb-hist-100", "hits@k" of "hits@7". */
static bool without_number(const char *text, char *out, size_t size) {
    size_t n = strlen(text), digits = n;
    while (digits && strchr("0123456789", text[digits - 1])) digits--;
    if (digits < 2 || digits == n || n >= size || !strchr("-@", text[digits - 1])) return false;
    bool at = text[digits - 1] == '@';
    (void)snprintf(out, size, "%.*s%s", (int)(at ? digits : digits - 1), text, at ? "k" : "");
    return true;
}

const char *fr_text_nearest(const char *text, fr_name_at *names, const void *list) {
    if (!text || !names) return NULL;
    const char *best = NULL, *name;
    int length = (int)strlen(text);
    int least = 3 < length / 2 + 1 ? 3 : length / 2 + 1; /* a name must be closer than this */
    for (int i = 0; (name = names(list, i)); i++) {
        int d = distance(text, name);
        bool begins = length > 2 && !strncmp(text, name, (size_t)length);
        if (d < least || (begins && !best)) best = name;
        if (d < least) least = d;
    }
    char shorter[64];
    if (!best && without_number(text, shorter, sizeof shorter))
        return fr_text_nearest(shorter, names, list);
    return best;
}

fr_status text_unknown(const char *kind, const char *text, fr_name_at *names, const void *list,
                       const char *help, fr_error *err) {
    const char *near = fr_text_nearest(text, names, list);
    return near ? fail(err, FR_EUSAGE, "unknown %s %s, did you mean %s?", kind, text, near)
                : fail(err, FR_EUSAGE, "unknown %s %s (%s lists them)", kind, text, help);
}
