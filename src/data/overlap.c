/* overlap.c - ids that are both a source and a destination (fullrank.h, chapter 4).
 *
 * The ids of both roles are ascending, and words are in byte order, so one merge finds the common
 * ids.
 */
#include "base/context.h"
#include "data/stream.h"

#include <stdlib.h>
#include <string.h>

/* Compares ids, or their words. */
static int compare(const fr_stream *s, int64_t source, int64_t destination) {
    int64_t a = s->source_id[source], b = s->destination_id[destination];
    if (!s->facts.words) return (a > b) - (a < b);
    const char *const *x = s->source_word.start.at + a, *const *y =
                                                            s->destination_word.start.at + b;
    size_t n = (size_t)(x[1] - x[0]), m = (size_t)(y[1] - y[0]); /* including the newline */
    int order = memcmp(x[0], y[0], (n < m ? n : m) - 1);
    return order ? order : (n > m) - (n < m);
}

/* True if ids have no gap and start at 0 or 1. Then each role was most likely numbered by itself,
 * as in JODIE. */
static bool gapless(const int64_t *id, int64_t count) {
    return id[0] <= 1 && id[count - 1] - id[0] == count - 1;
}

fr_status fr_stream_overlap(const fr_stream *stream, const fr_context *context, fr_overlap *out,
                            fr_error *err) {
    const fr_stream *s = stream;
    NEED(stream, err);
    NEED(out, err);
    const fr_stream_facts *f = &s->facts;
    int32_t *twin; /* [destinations] the source that is the same id, or -1 */
    *out = (fr_overlap){.per_role = !f->words && gapless(s->source_id, f->sources) &&
                                    gapless(s->destination_id, f->destinations)};
    TRY(ALLOCATE(twin, f->destinations, err));
    int64_t u = 0;
    for (int64_t v = 0; v < f->destinations; v++) {
        int order = -1;
        while (u < f->sources && (order = compare(s, u, v)) < 0) u++;
        twin[v] = u < f->sources && order == 0 ? (int32_t)u : -1;
        out->ids += twin[v] >= 0;
    }
    fr_status status = FR_OK;
    for (int64_t i = 0; !status && i < f->events; i++) {
        int32_t v = s->destination[i];
        if ((i & 0xFFFFF) == 0) status = context_check(context, err);
        if (!status && (v < 0 || v >= f->destinations)) status = stream_bad_id(s, i, err);
        if (!status) out->self_loops += twin[v] >= 0 && twin[v] == s->source[i];
    }
    free(twin);
    return status;
}
