/* arrays.c - events in the caller's memory become a directory of columns (fullrank.h, chapter 3).
 *
 * They are processed in blocks, like the rows of a table, and give the same ids, order, notices and
 * hash. Values that the reader of tables refuses are refused here too, with their row.
 */
#define _GNU_SOURCE
#include "base/options.h"
#include "data/columns.h"
#include "data/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 }; /* rows checked and put at a time */

/* The ids of one role. */
typedef struct side {
    const char *role;
    const int64_t *id;
    const char *const *list; /* the caller's words; NULL = ids are numbers */
    int64_t count;
    int64_t *number;   /* [count] of a word in `words` + 1; 0 = not met yet */
    word_table *words; /* in order of first appearance, as in tables */
} side;

typedef struct reading {
    const char *name;
    fr_arrays a;
    side source, destination;
    word_table words[2];
    columns out;
} reading;

static fr_status check_arrays(const reading *r, const fr_import *settings, fr_error *err) {
    const fr_arrays *a = &r->a;
    if (settings->columns || settings->ids)
        return fail(err, FR_EUSAGE,
                    "%s: options columns and ids say how to read a table, not arrays", r->name);
    if (a->events < 1)
        return fail(err, FR_EINPUT, "%s: %lld events, expected 1 or more", r->name,
                    (long long)a->events);
    if (!a->source || !a->destination || !a->time)
        return fail(err, FR_EUSAGE, "%s: %s is NULL", r->name,
                    !a->source        ? "source"
                    : !a->destination ? "destination"
                                      : "time");
    if (a->width < 0 || (a->width > 0) != (a->features != NULL))
        return fail(err, FR_EUSAGE, "%s: features of width %lld, but features is %s", r->name,
                    (long long)a->width, a->features ? "not NULL" : "NULL");
    if (!a->source_words != !a->destination_words)
        return fail(err, FR_EUSAGE, "%s: words of one role only, expected both or none", r->name);
    if (a->source_word_count < 0 || a->destination_word_count < 0)
        return fail(err, FR_EUSAGE, "%s: a negative number of words", r->name);
    return FR_OK;
}

static fr_status bad_word(const reading *r, const side *s, int64_t place, const char *found,
                          fr_error *err) {
    return fail(err, FR_EINPUT, "%s: %s word %lld is %s, expected one line of text", r->name,
                s->role, (long long)place, found);
}

/* The number of a word. Words without an event are not ids. */
static fr_status find_word(const reading *r, side *s, int64_t row, int64_t *out, fr_error *err) {
    int64_t place = s->id[row];
    if (place < 0 || place >= s->count)
        return fail(err, FR_EINPUT, "%s: row %lld: %s %lld, expected a place among %lld words",
                    r->name, (long long)row, s->role, (long long)place, (long long)s->count);
    if (!s->number[place]) {
        const char *word = s->list[place];
        if (!word || !*word) return bad_word(r, s, place, word ? "empty" : "NULL", err);
        if (strpbrk(word, "\r\n")) return bad_word(r, s, place, "of several lines", err);
        TRY(word_code(s->words, word, strlen(word), &s->number[place], err));
        s->number[place]++;
    }
    *out = s->number[place] - 1;
    return FR_OK;
}

static fr_status take_ids(const reading *r, side *s, int64_t row, int64_t n, int64_t *out,
                          fr_error *err) {
    for (int64_t k = 0; k < n; k++) {
        out[k] = s->id[row + k];
        if (s->list) {
            TRY(find_word(r, s, row + k, &out[k], err));
        } else if (out[k] < 0) {
            return fail(err, FR_EINPUT,
                        "%s: row %lld: %s %lld, expected a whole number from 0 to "
                        "9223372036854775807",
                        r->name, (long long)(row + k), s->role, (long long)out[k]);
        }
    }
    return FR_OK;
}

static fr_status take_times(const reading *r, double unit, int64_t row, int64_t n, double *out,
                            fr_error *err) {
    for (int64_t k = 0; k < n; k++) {
        if (!isfinite(r->a.time[row + k]))
            return fail(err, FR_EINPUT, "%s: row %lld: time %g, expected a finite number", r->name,
                        (long long)(row + k), r->a.time[row + k]);
        out[k] = unit > 1 ? r->a.time[row + k] / unit : r->a.time[row + k];
    }
    return FR_OK;
}

static fr_status check_rest(const reading *r, int64_t row, int64_t n, fr_error *err) {
    const fr_arrays *a = &r->a;
    for (int64_t k = 0; a->split && k < n; k++)
        if (a->split[row + k] >= PARTS)
            return fail(err, FR_EINPUT,
                        "%s: row %lld: split %d, expected 0, 1, 2 (train, val, test)", r->name,
                        (long long)(row + k), a->split[row + k]);
    for (int64_t k = row * a->width; k < (row + n) * a->width; k++)
        if (!isfinite(a->features[k]))
            return fail(err, FR_EINPUT, "%s: row %lld: feature %lld is not a finite number",
                        r->name, (long long)(k / a->width), (long long)(k % a->width) + 1);
    return FR_OK;
}

static fr_status copy_rows(reading *r, double unit, const fr_context *context, fr_error *err) {
    const fr_arrays *a = &r->a;
    int64_t source[BLOCK], destination[BLOCK];
    double time[BLOCK];
    for (int64_t row = 0, n; row < a->events; row += n) {
        n = a->events - row < BLOCK ? a->events - row : BLOCK;
        TRY(context_check(context, err));
        TRY(take_ids(r, &r->source, row, n, source, err));
        TRY(take_ids(r, &r->destination, row, n, destination, err));
        TRY(take_times(r, unit, row, n, time, err));
        TRY(check_rest(r, row, n, err));
        TRY(columns_put(&r->out, n, source, destination, time,
                        a->features ? a->features + row * a->width : NULL,
                        a->split ? a->split + row : NULL, err));
        context_progress(context, "import", (uint64_t)(row + n), (uint64_t)a->events, "events");
    }
    return FR_OK;
}

static fr_status import_arrays(reading *r, const char *output, const fr_import *settings,
                               const fr_context *context, fr_error *err) {
    const fr_arrays *a = &r->a;
    TRY(check_arrays(r, settings, err));
    bool words = a->source_words != NULL;
    r->source = (side){"source", a->source, a->source_words, a->source_word_count, NULL, r->words};
    r->destination = (side){"destination",
                            a->destination,
                            a->destination_words,
                            a->destination_word_count,
                            NULL,
                            r->words + !settings->shared_ids};
    if (words) TRY(ALLOCATE(r->source.number, a->source_word_count, err));
    if (words) TRY(ALLOCATE(r->destination.number, a->destination_word_count, err));
    TRY(columns_open(&r->out, output, settings->force, a->width, a->split != NULL, err));
    TRY(copy_rows(r, import_unit(settings), context, err));
    columns_finish finish = {.source_words = words ? r->source.words : NULL,
                             .destination_words = words ? r->destination.words : NULL,
                             .input = r->name,
                             .shared_ids = settings->shared_ids,
                             .origin = json_pack("{s:o, s:I, s:s}", "name", json_text(r->name),
                                                 "out_of_order", (json_int_t)r->out.late,
                                                 "time_unit", import_unit_name(settings))};
    TRY(columns_close(&r->out, finish, context, err));
    import_tell(r->name, &r->out, settings, false, context);
    return FR_OK;
}

fr_status fr_import_arrays(const fr_arrays *arrays, const char *output, const fr_import *settings,
                           const fr_context *context, fr_error *err) {
    static const fr_option fields[] = {OPTIONS_END(fr_arrays)};
    fr_import own;
    reading r = {0};
    NEED(arrays, err);
    NEED(output, err);
    TRY(options_settle(fields, arrays, &r.a, sizeof r.a, err));
    TRY(options_settle(fr_import_options, settings, &own, sizeof own, err));
    r.name = r.a.name && *r.a.name ? r.a.name : "arrays";
    fr_status status = import_arrays(&r, output, &own, context, err);
    columns_discard(&r.out);
    free(r.source.number);
    free(r.destination.number);
    word_table_free(&r.words[0]);
    word_table_free(&r.words[1]);
    return status;
}
