/* scores_stream.c - see scores.h. Rows are read when they are needed, so a program can score while
 * its rows are ranked, and nothing is kept. */
#include "data/input.h"
#include "rank/scores.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

typedef struct score_stream {
    const fr_window *w;
    input in;
    npy type;        /* of the present array */
    int64_t left;    /* rows of it that have not been read */
    int64_t rows;    /* read so far */
    int64_t columns; /* of every array */
    int32_t next;    /* first event whose row has not been read */
    char *row;       /* [columns] of doubles, for any type */
    int64_t fill;    /* entries of a row, if there are more than columns; otherwise 0 */
    int32_t *place;  /* [columns] */
    bool open;
} score_stream;

static const char name[] = "standard input";

/* Reads `size` bytes; *ended = there are no more. */
static fr_status read_bytes(score_stream *s, void *to, size_t size, bool *ended, fr_error *err) {
    size_t have = 0, got = 1;
    while (have < size && got) {
        TRY(input_read(&s->in, (char *)to + have, size - have, &got, err));
        have += got;
    }
    *ended = !have && size;
    if (have == size || *ended) return FR_OK;
    return fail(err, FR_EINPUT, "%s: ends within row %lld", name, (long long)s->rows);
}

/* The header of the next array; *ended if there is none. */
static fr_status read_header(score_stream *s, bool *ended, fr_error *err) {
    char begin[12], *bytes = NULL;
    size_t size = 0;
    TRY(read_bytes(s, begin, sizeof begin, ended, err));
    if (*ended) return FR_OK;
    TRY(npy_header_size(begin, sizeof begin, name, &size, err));
    if (size < sizeof begin || size > 1 << 16)
        return fail(err, FR_EINPUT, "%s: the .npy header cannot be understood", name);
    TRY(ALLOCATE(bytes, size, err));
    memcpy(bytes, begin, sizeof begin);
    fr_status status = read_bytes(s, bytes + sizeof begin, size - sizeof begin, ended, err);
    if (!status) status = npy_parse_header(bytes, size, name, &s->type, err);
    if (!status) status = scores_check(&s->type, name, err);
    free(bytes);
    TRY(status);
    if (s->type.shape[1] != s->columns)
        return fail(err, FR_EINPUT, "%s: %lld columns, expected %lld, the %s", name,
                    (long long)s->type.shape[1], (long long)s->columns,
                    s->w->catalog_kind == CATALOG_TIME ? "candidates of the window" : "catalog");
    s->left = s->type.shape[0];
    return FR_OK;
}

static fr_status read_row(score_stream *s, bool *ended, fr_error *err) {
    *ended = false;
    while (!s->left && !*ended) TRY(read_header(s, ended, err));
    if (*ended) return FR_OK;
    TRY(read_bytes(s, s->row, (size_t)s->columns * s->type.item, ended, err));
    if (*ended) return fail(err, FR_EINPUT, "%s: ends before row %lld", name, (long long)s->rows);
    s->left--;
    s->rows++;
    return FR_OK;
}

/* Reads the rows of all events below `until`; the last one stays in s->row. */
static fr_status read_until(score_stream *s, int32_t until, fr_error *err) {
    for (; s->next < until; s->next++) {
        bool ended;
        if (!window_covered(s->w, s->next)) continue;
        TRY(read_row(s, &ended, err));
        if (ended)
            return fail(err, FR_EINPUT, "%s: ends after %lld rows, none for event %lld", name,
                        (long long)s->rows, (long long)(s->w->first + s->next));
    }
    return FR_OK;
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker;
    score_stream *s = state;
    for (int64_t v = 0; v < s->fill; v++)
        scores[v] = -FLT_MAX; /* entries without a column are never read */
    TRY(read_until(s, query->event + 1, err));
    return scores_take_row(&s->type, s->row, s->columns, s->place, scores, err);
}

/* Observing does nothing, but makes events come in stream order. After the last event no row may be
 * left. */
static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    score_stream *s = state;
    bool ended;
    if (event->event < s->w->to - 1) return FR_OK;
    TRY(read_until(s, s->w->to, err));
    TRY(read_row(s, &ended, err));
    if (ended) return FR_OK;
    return fail(err, FR_EINPUT, "%s: more than %lld rows, one per covered test event", name,
                (long long)s->rows - 1);
}

static void close_stream(void *state) {
    score_stream *s = state;
    if (s->open) input_close(&s->in);
    free(s->row);
    free(s->place);
    free(s);
}

fr_status scores_stream_open(const fr_window *w, const fr_context *context,
                             fr_scorer_definition *out, fr_error *err) {
    bool all = w->catalog_kind == CATALOG_TIME, catalog_only = !all && scores_lack(w, NULL, NULL);
    score_stream *s;
    TRY(ALLOCATE(s, 1, err));
    *s =
        (score_stream){.w = w, .columns = all ? w->destinations : w->catalog_size, .next = w->from};
    *out = (fr_scorer_definition){.state = s,
                                  .score = score,
                                  .observe = observe,
                                  .start = w->from,
                                  .catalog_only = catalog_only,
                                  .close = close_stream};
    TRY(ALLOCATE(s->place, s->columns, err));
    for (int64_t k = 0; k < s->columns; k++)
        s->place[k] = all || catalog_only ? (int32_t)k : w->catalog[k];
    if (!catalog_only && s->columns < w->destinations) s->fill = w->destinations;
    TRY(ALLOCATE(s->row, (size_t)s->columns * sizeof(double), err));
    TRY(input_open(&s->in, "/dev/stdin", context, err));
    s->in.name = name;
    s->open = true;
    return FR_OK;
}
