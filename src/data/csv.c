/* csv.c - see csv.h. */
#include "data/csv.h"

#include "base/number.h"
#include "data/date.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    READ_BYTES = 1 << 20,
    LONGEST_LINE = 1 << 24,
    PADDING = 16,            /* number_eight reads beyond the newline */
    BLOCK_NUMBERS = 1 << 16, /* features per block: about what the second-level cache holds */
    BLOCK_ROWS = 1 << 12,
};

/* ---- bytes ---- */

/* Brings at least one more whole line into the buffer, or sets `ended`. */
static fr_status fill(csv *c, fr_error *err) {
    if (c->at) memmove(c->buffer, c->buffer + c->at, c->end - c->at);
    c->end -= c->at;
    c->at = 0;
    c->complete = 0;
    while (!c->complete && !c->ended) {
        if (c->room - c->end < c->piece) {
            if (c->room > LONGEST_LINE)
                return fail(err, FR_EINPUT, "%s:%lld: a line of more than %d MB, expected a table",
                            c->in.name, (long long)c->line, LONGEST_LINE >> 20);
            size_t room = c->room ? c->room * 2 : 2 * c->piece;
            char *moved = realloc(c->buffer, room + PADDING);
            if (!moved) return fail_memory(err, room);
            c->buffer = moved;
            c->room = room;
        }
        size_t got;
        TRY(input_read(&c->in, c->buffer + c->end, c->piece - 1, &got, err));
        if (got == 0) {
            c->ended = true;
            if (c->end) c->buffer[c->end++] = '\n'; /* the last line may lack it */
            c->complete = c->end;
            break;
        }
        size_t before = c->end;
        c->end += got;
        for (size_t i = c->end; i > before; i--)
            if (c->buffer[i - 1] == '\n') {
                c->complete = i;
                break;
            }
    }
    memset(c->buffer + c->end, 0, PADDING);
    return FR_OK;
}

/* ---- one row ---- */

static bool blank(char c) { return c == ' ' || c == '\t'; }

/* The closing quote of a text that begins at p, where two quotes stand for one; NULL if the line
 * ends before. */
static const char *quote_end(const char *p) {
    for (;; p++) {
        if (*p == '"' && *++p != '"') return p - 1;
        if (*p == '\n' || *p == '\r' || !*p) return NULL;
    }
}

/* A word up to the separator or the line's end, without blanks and quotes around it. Doubled quotes
 * become single ones in place. */
static const char *parse_word(csv *c, const char *p, word_table *table, int64_t *out, fr_error *err,
                              fr_status *status) {
    const char separator = c->layout.separator;
    while (blank(*p) && *p != separator) p++;
    bool quoted = *p == '"';
    const char *start = p += quoted, *end;
    if (quoted) {
        if (!(end = quote_end(p))) return NULL;
        p = end + 1;
    } else {
        while (*p != separator && *p != '\n' && *p != '\r' && *p &&
               !(separator == ' ' && *p == '\t'))
            p++;
        if (!*p) return NULL;
        for (end = p; end > start && blank(end[-1]);) end--;
    }
    if (end == start) return NULL;
    size_t length = (size_t)(end - start);
    if (quoted && memchr(start, '"', length)) {
        char *text = c->buffer + (start - c->buffer);
        size_t kept = 0;
        for (size_t i = 0; i < length; i++) {
            bool doubled = text[i] == '"';
            text[kept++] = text[i];
            i += doubled;
        }
        length = kept;
    }
    *status = word_code(table, start, length, out, err);
    return p;
}

/* A number, or a date; all times of a file are of one kind. */
static inline const char *parse_time(csv *c, const char *p, double *out) {
    if (c->times == TIMES_UNKNOWN) {
        const char *text = p;
        while (blank(*text) || *text == '"') text++;
        c->times = date_begins(text) ? TIMES_DATES : TIMES_NUMBERS;
    }
    if (c->times == TIMES_DATES) return date_read(p, c->layout.separator != ' ', out);
    p = number_real(p, out);
    return p && isfinite(*out) ? p : NULL;
}

/* The part of a split: 0, 1, 2 as TGB-Seq has it, or its name. */
static const char *parse_part(const csv *c, const char *p, uint8_t *out) {
    static const struct {
        const char *word;
        uint8_t part;
    } words[] = {{"train", PART_TRAIN},
                 {"validation", PART_VAL},
                 {"valid", PART_VAL},
                 {"val", PART_VAL},
                 {"test", PART_TEST}};
    int64_t number = 0;
    const char *end = number_id(p, &number);
    *out = (uint8_t)number;
    if (end) return number < PARTS ? end : NULL;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        size_t n = strlen(words[k].word);
        if (strncmp(p, words[k].word, n)) continue;
        *out = words[k].part;
        return p[n] == c->layout.separator || strchr(" \t\r\n\"", p[n]) ? p + n : NULL;
    }
    return NULL;
}

/* Reads one field of the given role into row `row`. Returns the byte after it, or NULL if the value
 * is not valid. */
static inline const char *parse_field(csv *c, role r, const char *p, int64_t row, float **feature,
                                      fr_error *err, fr_status *status) {
    double value = 0;
    switch (r) {
    case ROLE_SOURCE:
        if (c->source_words)
            return parse_word(c, p, c->source_words, &c->block.source[row], err, status);
        return number_id(p, &c->block.source[row]);
    case ROLE_DESTINATION:
        if (c->destination_words)
            return parse_word(c, p, c->destination_words, &c->block.destination[row], err, status);
        return number_id(p, &c->block.destination[row]);
    case ROLE_TIME: return parse_time(c, p, &c->block.time[row]);
    case ROLE_SPLIT: return parse_part(c, p, &c->block.part[row]);
    case ROLE_INDEX: return number_id(p, &c->block.index[row]);
    case ROLE_FEATURE:
        p = number_real(p, &value);
        **feature = (float)value;
        return p && isfinite(*(*feature)++) ? p : NULL;
    case ROLE_SKIP: break;
    }
    while (blank(*p) && *p != c->layout.separator) p++;
    if (*p == '"' && !(p = quote_end(p + 1))) return NULL;
    while (*p != c->layout.separator && *p != '\n' && *p &&
           !(c->layout.separator == ' ' && *p == '\t'))
        p++;
    return *p ? p : NULL;
}

/* The careful version: blanks before the value, quotes around it. */
static const char *parse_odd_field(csv *c, role r, const char *p, int64_t row, float **feature,
                                   fr_error *err, fr_status *status) {
    while (blank(*p) && *p != c->layout.separator) p++;
    bool word = r == ROLE_SKIP || (r == ROLE_SOURCE && c->source_words) ||
                (r == ROLE_DESTINATION && c->destination_words);
    if (*p != '"' || word) return parse_field(c, r, p, row, feature, err, status);
    p = parse_field(c, r, p + 1, row, feature, err, status);
    return p && *p == '"' ? p + 1 : NULL;
}

/* Reads plain features from field *f on, except the row's last field. Wide files consist mostly of
 * these, so nothing else is tested here. */
static const char *parse_features(const layout *l, const char *p, int *f, float **feature) {
    const char separator = l->separator;
    if (separator == ' ') return p; /* several may stand in a row */
    for (; *f + 1 < l->fields && l->roles[*f] == ROLE_FEATURE; ++*f) {
        double value = 0;
        const char *end = number_real(p, &value);
        **feature = (float)value;
        if (!end || *end != separator || !isfinite(**feature)) break;
        p = end + 1;
        ++*feature;
    }
    return p;
}

/* Reads the row at `p` into row `row` of the block. Returns the byte after its newline, or NULL
 * with the error in bad_field and bad_text (bad_field = fields: the row is too long). */
static const char *parse_row(csv *c, const char *p, int64_t row, fr_error *err, fr_status *status) {
    const layout *l = &c->layout;
    const char separator = l->separator;
    float *feature = c->block.feature + row * l->width;
    for (int f = 0; f < l->fields; f++) {
        if (l->roles[f] == ROLE_FEATURE) p = parse_features(l, p, &f, &feature);
        const char *start = p;
        float *slot = feature;
        p = parse_field(c, l->roles[f], p, row, &feature, err, status);
        if (!p) {
            feature = slot;
            p = parse_odd_field(c, l->roles[f], start, row, &feature, err, status);
        }
        if (*status) return NULL;
        if (!p) return c->bad_field = f, c->bad_text = start, NULL;
        bool last = f + 1 == l->fields;
        if (!last && *p == separator) {
            p++;
            if (separator != ' ') continue;
        }
        const char *behind = p;
        while (blank(*p) && (*p != separator || separator == ' ')) p++;
        if (last) {
            if (*p == '\r') p++;
            if (*p == '\n') return p + 1;
            return c->bad_field = *p == separator ? l->fields : f, c->bad_text = start, NULL;
        }
        if (separator == ' ' && *p != '\n' && *p != '\r' && (p > behind || p[-1] == ' ')) continue;
        if (*p == separator) {
            p++;
            continue;
        }
        bool short_row = *p == '\n' || *p == '\r';
        return c->bad_field = short_row ? f + 1 : f, c->bad_text = short_row ? p : start, NULL;
    }
    return NULL; /* not reached: a layout has at least three fields */
}

/* What a field of the given role should have been. */
static const char *expected(const csv *c, role r, bool words) {
    if (words || r == ROLE_SKIP) return "a word";
    if (r == ROLE_SPLIT)
        return "0, 1, 2 or train, val, test (option columns: split=none leaves it out)";
    if (r == ROLE_TIME && c->times == TIMES_DATES)
        return "a date: 2024-01-31 or 2024-01-31T12:00:00, with fractions, Z "
               "or "
               "+01:00 if need be";
    return r == ROLE_TIME || r == ROLE_FEATURE ? "a finite number"
                                               : "a whole number from 0 to 9223372036854775807";
}

/* Reports what is wrong with the row at c->at. */
static fr_status row_error(csv *c, fr_error *err) {
    const layout *l = &c->layout;
    int f = c->bad_field;
    char where[512];
    (void)snprintf(where, sizeof where, "%s:%lld:%d", c->in.name, (long long)c->line, f + 1);
    if (f == l->fields)
        return fail(err, FR_EINPUT, "%s: the row goes on, expected %d columns", where, l->fields);
    const char *text = c->bad_text;
    bool empty = f > 0 && l->separator != ' ' && text[-1] == l->separator;
    if ((*text == '\n' || *text == '\r') && !empty)
        return fail(err, FR_EINPUT, "%s: the row ends after %d column%s, expected %d", where, f,
                    f == 1 ? "" : "s", l->fields);
    /* what was found, cut and made printable */
    char found[40];
    size_t n = 0;
    for (const char *p = text; n + 4 < sizeof found && *p != '\n' && *p != '\r'; p++) {
        if (*p == l->separator && (n || l->separator != ' ')) break;
        if ((unsigned char)*p < ' ')
            n += (size_t)snprintf(found + n, sizeof found - n, "\\x%02x", (unsigned char)*p);
        else
            found[n++] = *p;
        if (!*p) break;
    }
    found[n] = 0;
    role r = l->roles[f];
    bool words =
        (r == ROLE_SOURCE && c->source_words) || (r == ROLE_DESTINATION && c->destination_words);
    c->bad_number = (r == ROLE_SOURCE || r == ROLE_DESTINATION) && !words && n;
    bool date = r == ROLE_TIME && c->times == TIMES_NUMBERS && date_begins(text);
    return fail(err, FR_EINPUT, "%s: %s \"%s\", expected %s%s", where, role_name(r), found,
                expected(c, r, words),
                c->bad_number ? " (option ids: words reads ids that are words)"
                : date        ? " as in the first row, not a date"
                              : "");
}

/* ---- the file ---- */

/* Skips empty lines and, before the first row, comment lines; false at the end of the file. */
static fr_status to_line(csv *c, bool comments, bool *found, fr_error *err) {
    for (;;) {
        if (c->at >= c->complete) {
            if (!c->ended) TRY(fill(c, err));
            *found = c->at < c->complete;
            if (!*found) return FR_OK;
        }
        const char *p = c->buffer + c->at;
        size_t length = p[0] == '\n' ? 1 : p[0] == '\r' && p[1] == '\n' ? 2 : 0;
        if (!length && comments && (*p == '#' || *p == '%'))
            length = (size_t)((const char *)memchr(p, '\n', c->complete - c->at) - p) + 1;
        if (!length) {
            *found = true;
            return FR_OK;
        }
        c->at += length;
        c->line++;
    }
}

/* The first non-empty line at least `skip` bytes after c->at, without consuming it; NULL at the end
 * of the file. The buffer may move. */
static fr_status peek_line(csv *c, size_t skip, const char **out, fr_error *err) {
    *out = NULL;
    for (;;) {
        for (; c->at + skip < c->complete; skip++) {
            *out = c->buffer + c->at + skip;
            if (**out != '\n' && **out != '\r') return FR_OK;
        }
        *out = NULL;
        if (c->ended) return FR_OK;
        TRY(fill(c, err));
    }
}

static fr_status read_layout(csv *c, const char *columns, fr_error *err) {
    bool found;
    c->line = 1;
    TRY(fill(c, err));
    if (c->end >= 3 && !memcmp(c->buffer, "\xef\xbb\xbf", 3)) c->at = 3; /* byte order mark */
    TRY(to_line(c, true, &found, err));
    if (!found) return fail(err, FR_EINPUT, "%s: the file is empty", c->in.name);
    const char *line = c->buffer + c->at;
    while (blank(*line)) line++;
    if (*line == '<')
        return fail(err, FR_EINPUT, "%s:%lld: looks like an HTML or XML page, expected a table",
                    c->in.name, (long long)c->line);
    if (!memcmp(line, "PK\3\4", 4))
        return fail(err, FR_EINPUT,
                    "%s: a zip archive, expected a table, plain or .gz; unpack it first",
                    c->in.name);
    line = c->buffer + c->at;
    size_t length = (size_t)((const char *)memchr(line, '\n', c->complete - c->at) - line) + 1;
    if (memchr(line, 0, length))
        return fail(err, FR_EINPUT, "%s:%lld: a NUL byte, expected text", c->in.name,
                    (long long)c->line);

    const char *row;
    TRY(peek_line(c, length, &row, err));
    line = c->buffer + c->at;
    TRY(layout_detect(&c->layout, line, row ? row : line, c->line, columns, c->in.name, err));
    if (!c->layout.named) return FR_OK;
    if (!row) return fail(err, FR_EINPUT, "%s: no events after the header", c->in.name);
    c->at += length;
    c->line++;
    return FR_OK;
}

fr_status csv_open(csv *c, input in, const char *columns, word_table *source_words,
                   word_table *destination_words, const fr_context *context, fr_error *err) {
    int64_t most = input_most(&in);
    *c = (csv){.in = in, .source_words = source_words, .destination_words = destination_words};
    c->piece = most < READ_BYTES ? (size_t)most + PADDING : READ_BYTES;
    TRY(read_layout(c, columns, err));
    const layout *l = &c->layout;
    if (!l->named)
        context_log(context, FR_NOTICE,
                    "%s: no header; taking the columns as source, destination, time%s%s", in.name,
                    l->fields > 3 ? ", label" : "", l->width ? ", features" : "");
    if (*l->ignored)
        context_log(context, FR_NOTICE, "%s: columns not used: %s", in.name, l->ignored);
    c->rows_per_block = BLOCK_NUMBERS / (l->width + 1) + 1;
    if (c->rows_per_block > BLOCK_ROWS) c->rows_per_block = BLOCK_ROWS;
    int64_t shortest = 2 * l->fields; /* bytes of a row: a digit and what ends it, for each field */
    if (c->rows_per_block > most / shortest + 1) c->rows_per_block = most / shortest + 1;
    TRY(ALLOCATE(c->block.source, c->rows_per_block, err));
    TRY(ALLOCATE(c->block.destination, c->rows_per_block, err));
    TRY(ALLOCATE(c->block.time, c->rows_per_block, err));
    TRY(ALLOCATE(c->block.index, c->rows_per_block, err));
    if (l->split) TRY(ALLOCATE(c->block.part, c->rows_per_block, err));
    return ALLOCATE(c->block.feature, c->rows_per_block * l->width, err);
}

fr_status csv_next(csv *c, fr_error *err) {
    c->block.count = 0;
    while (c->block.count < c->rows_per_block) {
        if (c->at >= c->complete || c->buffer[c->at] == '\n' || c->buffer[c->at] == '\r') {
            bool found;
            TRY(to_line(c, false, &found, err));
            if (!found) break;
        }
        fr_status status = FR_OK;
        const char *next = parse_row(c, c->buffer + c->at, c->block.count, err, &status);
        if (status) return status;
        if (!next) return row_error(c, err);
        c->at = (size_t)(next - c->buffer);
        c->line++;
        c->block.count++;
    }
    return FR_OK;
}

void csv_close(csv *c) {
    input_close(&c->in);
    layout_free(&c->layout);
    free(c->block.source);
    free(c->block.destination);
    free(c->block.time);
    free(c->block.part);
    free(c->block.index);
    free(c->block.feature);
    free(c->buffer);
    *c = (csv){.in.fd = -1};
}
