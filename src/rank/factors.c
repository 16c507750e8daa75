/* factors.c - see factors.h and fr_scorer_factors (fullrank.h, chapter 9).
 *
 * The product is computed in the tiles that the engine requests, never as a whole. An element is
 * one chain of fused multiply-adds (nn/gemm.h) that starts with the bias, so a tile, a whole row
 * and a score file of the same chains have the same bits.
 */
#define _GNU_SOURCE
#include "rank/factors.h"

#include "base/npy.h"
#include "base/options.h"
#include "base/remember.h"
#include "base/sha256.h"
#include "nn/gemm.h"
#include "rank/scores.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Events of a call: so many that turning a panel of V (nn/gemm.c) takes little beside using it.
 * TURNED: the largest width for which all panels of a tile are turned beforehand, 512 KB of them.
 */
enum { MANY = 512, TILE = 512, MOST_WIDTH = 1 << 20, TURNED = 256, FILES = 3 };

typedef struct products {
    const fr_window *w;
    fr_factors are;
    int64_t *row; /* [ranked part] of U, -1 = none */
    bool gaps;    /* V has the catalog, a row of scores all candidates */
    npy file[FILES];
    char sha256[65];
} products;

/* ---- scoring ---- */

/* The rows of U of these events: where they are if they follow each other, else a copy in *own. */
static fr_status gather(const products *f, const fr_query *queries, int count, const float **out,
                        float **own, fr_error *err) {
    int64_t width = f->are.width, first = f->row[queries[0].event - f->w->from], row = first;
    *own = NULL;
    bool together = true;
    for (int k = 0; k < count; k++) {
        row = f->row[queries[k].event - f->w->from];
        if (row < 0)
            return fail(err, FR_EINPUT, "factors: no row of U for event %lld",
                        (long long)(f->w->first + queries[k].event));
        together &= row == first + k;
    }
    *out = f->are.u + first * width;
    if (together) return FR_OK;
    TRY(ALLOCATE(*own, count * width, err));
    for (int k = 0; k < count; k++)
        memcpy(*own + k * width, f->are.u + f->row[queries[k].event - f->w->from] * width,
               (size_t)width * sizeof **own);
    *out = *own;
    return FR_OK;
}

/* How many destinations of the catalog lie below v. */
static int32_t catalog_below(const fr_window *w, int32_t v) {
    return events_below(w->catalog, w->catalog_size, v);
}

/* Moves n scores of the catalog from place `first` on to where they belong among candidates from ..
 * to - 1, from the last to the first: none is overwritten before it has moved. */
static void open_gaps(const fr_window *w, int32_t first, int32_t n, int32_t from, int32_t to,
                      float *scores) {
    for (int32_t v = to - 1; v >= from; v--) {
        bool here = n > 0 && w->catalog[first + n - 1] == v;
        scores[v - from] = here ? scores[--n] : -FLT_MAX; /* never read as a candidate */
    }
}

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int worker, float *scores, fr_error *err) {
    (void)worker;
    const products *f = state;
    const float *u = NULL;
    float *own = NULL;
    int32_t first = f->gaps ? catalog_below(f->w, from) : from;
    int32_t n = (f->gaps ? catalog_below(f->w, to) : to) - first, ld = to - from;
    int width = (int)f->are.width;
    TRY(gather(f, queries, count, &u, &own, err));
    gemm_nt_from(count, n, width, u, width, f->are.v + (int64_t)first * width, width,
                 f->are.bias ? f->are.bias + first : NULL, scores, ld);
    for (int k = 0; f->gaps && k < count; k++)
        open_gaps(f->w, first, n, from, to, scores + (int64_t)k * ld);
    free(own);
    return FR_OK;
}

/* The tile's rows of V are turned once for all events. */
static fr_status score_pieces(void *state, const fr_query *queries, int count, int32_t from,
                              int32_t to, float *scores, scorer_reader *read, void *reader,
                              fr_error *err) {
    const products *f = state;
    const float *u = NULL;
    float *own = NULL, *turned = NULL;
    int32_t first = f->gaps ? catalog_below(f->w, from) : from;
    int32_t n = (f->gaps ? catalog_below(f->w, to) : to) - first, ld = to - from;
    int width = (int)f->are.width, ldt = (n + 31) / 16 * 16; /* not a power of 2 */
    TRY(gather(f, queries, count, &u, &own, err));
    fr_status status = ALLOCATE(turned, (int64_t)width * ldt, err);
    if (!status && n) gemm_turn(n, width, f->are.v + (int64_t)first * width, width, turned, ldt);
    for (int k = 0; !status && k < count; k += SCORER_PIECE) {
        int some = count - k < SCORER_PIECE ? count - k : SCORER_PIECE;
        gemm_nn_from(some, n, width, u + (int64_t)k * width, width, turned, ldt,
                     f->are.bias ? f->are.bias + first : NULL, scores, ld);
        for (int i = 0; f->gaps && i < some; i++)
            open_gaps(f->w, first, n, from, to, scores + (int64_t)i * ld);
        status = read(reader, k, some, scores, err);
    }
    free(turned);
    free(own);
    return status;
}

scorer_pieces *factors_pieces(const fr_scorer_definition *is) {
    bool ours = is->part == score_part;
    return ours && ((const products *)is->state)->are.width <= TURNED ? score_pieces : NULL;
}

/* ---- making ---- */

static void close_factors(void *state) {
    products *f = state;
    for (int k = 0; k < FILES; k++) npy_close(&f->file[k]);
    free(f->row);
    free(f);
}

static fr_status match_rows(products *f, fr_error *err) {
    const fr_window *w = f->w;
    int64_t events = w->to - w->from, covered = 0;
    TRY(ALLOCATE(f->row, events, err));
    for (int32_t k = 0; k < events; k++)
        f->row[k] = window_covered(w, w->from + k) ? covered++ : -1;
    for (int64_t k = 0; f->are.rows == events && k < events; k++) f->row[k] = k;
    if (f->are.rows == events || f->are.rows == covered) return FR_OK;
    return fail(err, FR_EINPUT,
                "factors: U has %lld rows, expected %lld, one per covered test event, or %lld, one "
                "per test event",
                (long long)f->are.rows, (long long)covered, (long long)events);
}

static fr_status match_columns(const products *f, fr_error *err) {
    const fr_window *w = f->w;
    bool by_time = w->catalog_kind == CATALOG_TIME;
    if (f->are.columns == w->destinations) return FR_OK;
    if (f->are.columns == w->catalog_size && !by_time) return FR_OK;
    if (by_time)
        return fail(err, FR_EINPUT,
                    "factors: V has %lld rows, expected %d, one per candidate of the window",
                    (long long)f->are.columns, w->destinations);
    return fail(err, FR_EINPUT,
                "factors: V has %lld rows, expected %d, the catalog, or %d, one per candidate of "
                "the window",
                (long long)f->are.columns, w->catalog_size, w->destinations);
}

/* Fills the definition but for its texts. */
static fr_status define(products *f, fr_scorer_definition *out, fr_error *err) {
    const fr_factors *are = &f->are;
    if (!are->u || !are->v) return fail(err, FR_EUSAGE, "factors: %s is NULL", are->u ? "v" : "u");
    if (are->width < 1 || are->width > MOST_WIDTH)
        return fail(err, FR_EUSAGE, "factors: width %lld, expected 1 to %d", (long long)are->width,
                    MOST_WIDTH);
    TRY(match_columns(f, err));
    TRY(match_rows(f, err));
    bool all = are->columns == f->w->destinations;
    uint8_t *scored = NULL;
    if (all) {
        TRY(ALLOCATE(scored, are->columns, err));
        memset(scored, 1, (size_t)are->columns);
    }
    out->catalog_only = scores_lack(f->w, scored, f->row);
    free(scored);
    if (all && out->catalog_only && f->w->catalog_size != f->w->destinations)
        return fail(
            err, FR_EINPUT,
            "factors: U has %lld rows, expected %d, one per test event, since V has one per "
            "candidate",
            (long long)are->rows, f->w->to - f->w->from);
    f->gaps = !all && !out->catalog_only;
    out->workers = FR_WORKERS_ANY;
    out->many = MANY;
    out->part = score_part;
    out->tile = are->width <= TURNED ? TILE : 0;
    return FR_OK;
}

fr_status fr_scorer_factors(const fr_window *window, const fr_factors *factors,
                            const fr_scorer_definition *about, fr_scorer **out, fr_error *err) {
    static const fr_option fields[] = {OPTIONS_END(fr_factors)};
    fr_scorer_definition is;
    products *f;
    NEED(out, err);
    *out = NULL;
    NEED(window, err);
    NEED(factors, err);
    NEED(about, err);
    TRY(scorer_take(about, &is, err));
    TRY(scorer_check_described(&is, err));
    TRY(ALLOCATE(f, 1, err));
    f->w = window;
    is.state = f;
    is.close = close_factors;
    fr_status status = options_settle(fields, factors, &f->are, sizeof f->are, err);
    if (!status) status = define(f, &is, err);
    if (!status) status = fr_scorer_make(window, &is, out, err);
    if (status) close_factors(f);
    return status;
}

/* ---- files ---- */

/* The hash of the files' hashes, in order. */
static fr_status hash_files(products *f, int count, fr_error *err) {
    sha256 all;
    char one[65];
    TRY(sha256_start(&all, err));
    fr_status status = FR_OK;
    for (int k = 0; !status && k < count; k++) {
        status = remember_sha256(&f->file[k].file, one, err);
        if (!status) sha256_add(&all, one, 64);
    }
    sha256_end(&all, status ? NULL : f->sha256);
    return status;
}

static fr_status open_files(products *f, char *list, fr_error *err) {
    fr_factors *are = &f->are;
    int count = 0;
    for (char *path; (path = strsep(&list, ","));) {
        if (count == FILES || !*path)
            return fail(err, FR_EUSAGE, "factors: expected U.npy,V.npy or U.npy,V.npy,BIAS.npy");
        TRY(npy_open_as(path, 'f', 4, count < 2 ? 2 : 1, &f->file[count], err));
        count++;
    }
    if (count < 2)
        return fail(err, FR_EUSAGE,
                    "factors: %d file, expected U.npy,V.npy or U.npy,V.npy,BIAS.npy", count);
    const npy *u = &f->file[0], *v = &f->file[1], *bias = &f->file[2];
    *are = (fr_factors){.rows = u->shape[0],
                        .columns = v->shape[0],
                        .width = u->shape[1],
                        .u = u->data,
                        .v = v->data,
                        .bias = count > 2 ? bias->data : NULL};
    if (v->shape[1] != are->width)
        return fail(err, FR_EINPUT, "factors: U has %lld columns, V has %lld, expected the same",
                    (long long)are->width, (long long)v->shape[1]);
    if (are->bias && bias->shape[0] != are->columns)
        return fail(err, FR_EINPUT, "factors: %lld biases, expected %lld, one per row of V",
                    (long long)bias->shape[0], (long long)are->columns);
    return hash_files(f, count, err);
}

fr_status factors_open(const char *files, const fr_window *w, fr_scorer_definition *out,
                       fr_error *err) {
    products *f;
    char *list = strdup(files);
    if (!list) return fail_memory(err, strlen(files));
    fr_status status = ALLOCATE(f, 1, err);
    if (!status) {
        f->w = w;
        out->state = f;
        out->close = close_factors;
        out->sha256 = f->sha256;
        status = open_files(f, list, err);
        if (!status) status = define(f, out, err);
    }
    free(list);
    return status;
}
