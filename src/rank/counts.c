/* counts.c - rank records of programs that kept counts instead of scores (fullrank.h, chapter 10).
 *
 * The recorder reads a vector of zeros for each event, which gives everything that does not depend
 * on scores; the counts then replace its ties.
 */
#include "base/clock.h"
#include "base/npy.h"
#include "base/remember.h"
#include "rank/check.h"
#include "rank/rank.h"

#include <math.h>
#include <stdlib.h>

static fr_status fill_record(run *r, const float *zeros, int32_t event, const fr_counts *counts,
                             fr_error *err) {
    const fr_window *w = r->scorer->window;
    scored_event facts = engine_describe(w, event);
    TRY(engine_read(w, &facts, zeros, r->probe, r->probes, err));
    fr_record *record = &r->records.records[events_row(&r->events, facts.place)];
    record->above = counts->above;
    record->tied = counts->tied;
    record->seen_above = counts->seen_above;
    record->seen_tied = counts->seen_tied;
    record->train_above = record->train_tied = record->tied_before = -1;
    record->pop_above = record->pop_tied = NAN;
    record->score = NAN;
    return FR_OK;
}

static fr_status fill_records(run *r, const fr_counts *counts, int64_t count, fr_error *err) {
    const fr_window *w = r->scorer->window;
    float *zeros;
    int64_t used = 0;
    TRY(ALLOCATE(zeros, w->destinations, err));
    fr_status status = FR_OK;
    for (int32_t event = w->from; !status && event < w->to; event++) {
        if (!window_covered(w, event)) continue;
        if (used < count) status = fill_record(r, zeros, event, &counts[used], err);
        used++;
    }
    free(zeros);
    if (!status && used != count)
        status = fail(err, FR_EINPUT,
                      "%s: counts of %lld events, expected %lld, one per covered test event",
                      r->scorer->is.name, (long long)count, (long long)used);
    return status ? status
                  : check_records(r->records.records, r->events.count, w->protocol.oov, err);
}

fr_status fr_rank_counts(const fr_window *window, const fr_scorer_definition *about,
                         const fr_counts *counts, int64_t count, fr_ranking **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(window, err);
    NEED(about, err);
    NEED(counts, err);
    fr_scorer_definition is;
    fr_scorer *scorer = NULL;
    TRY(scorer_take(about, &is, err));
    is.catalog_only = true; /* counts are of one catalog */
    TRY(scorer_describe(window, &is, &scorer, err));
    run r;
    fr_status status = run_open(&r, scorer, NULL, 1, NULL, err);
    if (!status) status = fill_records(&r, counts, count, err);
    ranking_notes notes = {.seconds = clock_now() - r.started};
    if (!status) status = run_finish(&r, notes, out, err);
    run_close(&r);
    fr_scorer_close(scorer);
    return status;
}

/* ---- files ---- */

static int64_t number_at(const npy *file, int64_t k) {
    return file->item == 8 ? ((const int64_t *)file->data)[k] : ((const int32_t *)file->data)[k];
}

static fr_status read_counts(const npy *file, const char *path, fr_counts **out, fr_error *err) {
    const npy_field *f = &file->field[0];
    int64_t rows = file->shape[0], columns = file->shape[1];
    if (file->dims != 2 || file->fields != 1 || f->name[0] || f->kind != 'i' || file->item < 4 ||
        (columns != 2 && columns != 4))
        return fail(err, FR_EINPUT,
                    "%s: expected int32 or int64 [events, 2], above and tied, or [events, 4] with "
                    "seen_above and seen_tied",
                    path);
    TRY(ALLOCATE(*out, rows + 1, err));
    for (int64_t row = 0; row < rows; row++) {
        int32_t value[4] = {0, 0, -1, -1};
        for (int64_t k = 0; k < columns; k++) {
            int64_t number = number_at(file, row * columns + k);
            if (number < 0 || number > INT32_MAX)
                return fail(err, FR_EINPUT, "%s: row %lld has a count of %lld", path,
                            (long long)row, (long long)number);
            value[k] = (int32_t)number;
        }
        (*out)[row] = (fr_counts){value[0], value[1], value[2], value[3]};
    }
    return FR_OK;
}

fr_status fr_rank_counts_file(const fr_window *window, const fr_scorer_definition *about,
                              const char *path, fr_ranking **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(about, err);
    NEED(path, err);
    if (!*path) return fail(err, FR_EUSAGE, "counts: no file is named, expected FILE.npy");
    npy file;
    fr_counts *counts = NULL;
    fr_scorer_definition is;
    char sha256[65];
    TRY(scorer_take(about, &is, err));
    TRY(npy_open(path, &file, err));
    fr_status status = read_counts(&file, path, &counts, err);
    if (!status) status = remember_sha256(&file.file, sha256, err);
    is.sha256 = sha256;
    if (!status) status = fr_rank_counts(window, &is, counts, file.shape[0], out, err);
    free(counts);
    npy_close(&file);
    return status;
}
