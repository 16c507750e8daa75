/* list.c - the list of what must be scored, for programs that write score files (fullrank.h,
 * chapter 10). */
#include "base/npy.h"
#include "base/options.h"
#include "rank/events.h"
#include "rank/ranking.h"

#include <stdlib.h>

/* One row of the list; packed as the file has it. */
typedef struct __attribute__((packed)) listed {
    int64_t event, source;
    double time;
} listed;

static const npy_field fields[] = {{.name = "event", .kind = 'i', .size = 8},
                                   {.name = "source", .kind = 'i', .size = 8},
                                   {.name = "time", .kind = 'f', .size = 8}};

static fr_status put_events(npy_writer *to, const fr_window *w, const event_list *chosen,
                            int64_t *events, fr_error *err) {
    for (int32_t k = 0; k < chosen->count; k++) {
        int32_t i = events_at(chosen, k);
        if (!window_covered(w, i)) continue;
        listed row = {w->first + i, w->source_id[w->source[i]], w->time[i]};
        TRY(npy_writer_put(to, &row, 1, err));
        ++*events;
    }
    return FR_OK;
}

static fr_status put_destinations(npy_writer *to, const fr_window *w, int64_t *destinations,
                                  fr_error *err) {
    bool all = w->catalog_kind == CATALOG_TIME;
    *destinations = all ? w->destinations : w->catalog_size;
    for (int64_t k = 0; k < *destinations; k++)
        TRY(npy_writer_put(to, &w->destination_id[all ? k : w->catalog[k]], 1, err));
    return FR_OK;
}

static fr_status write_list(const fr_window *w, const event_list *chosen, const char *path,
                            bool force, fr_list *out, fr_error *err) {
    char *beside = NULL;
    lock pair = {0};
    npy_writer events = {0}, destinations = {0};
    TRY(ranking_side_path(path, ".destinations.npy", &beside, err));
    fr_status status = fr_ranking_check(path, force, err);
    if (!status) status = fr_ranking_check(beside, force, err);
    if (!status) status = ranking_lock(&pair, path, force, err);
    if (!status) status = npy_writer_open_struct(&events, path, fields, 3, err);
    if (!status) status = put_events(&events, w, chosen, &out->events, err);
    if (!status) status = npy_writer_open(&destinations, beside, 'i', 8, 0, err);
    if (!status) status = put_destinations(&destinations, w, &out->destinations, err);
    if (!status) status = npy_writer_commit(&destinations, err);
    if (!status) status = npy_writer_commit(&events, err);
    npy_writer_discard(&events);
    npy_writer_discard(&destinations);
    lock_release(&pair);
    free(beside);
    return status;
}

fr_status fr_window_list(const fr_window *window, const fr_rank_settings *settings,
                         const char *path, bool force, fr_list *out, fr_error *err) {
    NEED(window, err);
    NEED(path, err);
    NEED(out, err);
    *out = (fr_list){0};
    fr_rank_settings own;
    event_list chosen;
    TRY(options_settle(fr_rank_options, settings, &own, sizeof own, err));
    fr_status status = events_open(&chosen, window, own.sample_events, own.sample_seed, err);
    if (!status) status = write_list(window, &chosen, path, force, out, err);
    events_close(&chosen);
    return status;
}
