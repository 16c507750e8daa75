/* dump.c - see dump.h. Rows are written where they belong as events are done, in any order. */
#include "rank/dump.h"

#include "base/json.h"
#include "rank/ranking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number after "first:" or "every:"; 0 if the text is something else. */
static int64_t counted(const char *text, const char *word) {
    size_t n = strlen(word);
    if (strncmp(text, word, n)) return 0;
    char *end;
    long long value = strtoll(text + n, &end, 10);
    return *end || end == text + n || value < 1 ? 0 : value;
}

static bool is_ranked(const dump *d, int32_t event) {
    return window_covered(d->w, event) && events_row(d->events, event - d->w->from) >= 0;
}

/* Marks the rows "5,9,12" of the stream. */
static fr_status mark_list(dump *d, const char *list, bool *keep, fr_error *err) {
    for (const char *p = list; *p;) {
        char *end;
        long long row = strtoll(p, &end, 10);
        int64_t event = row - d->w->first;
        if (end == p || (*end && *end != ','))
            return fail(
                err, FR_EUSAGE,
                "option events: found \"%s\", expected all, first:N, every:N or rows 5,9,12", list);
        if (event < d->w->from || event >= d->w->to || !is_ranked(d, (int32_t)event))
            return fail(err, FR_EUSAGE, "option events: row %lld is not a ranked event", row);
        keep[event - d->w->from] = true;
        p = end + (*end == ',');
    }
    return FR_OK;
}

static fr_status choose(dump *d, const char *events, fr_error *err) {
    int32_t test = d->w->to - d->w->from;
    int64_t first = counted(events, "first:"), every = counted(events, "every:");
    bool all = !strcmp(events, "all"), *keep;
    TRY(ALLOCATE(keep, test, err));
    fr_status status = first || every || all ? FR_OK : mark_list(d, events, keep, err);
    int64_t ranked = 0;
    for (int32_t k = 0; !status && k < test; k++) {
        bool here = is_ranked(d, d->w->from + k);
        bool wanted = all || keep[k] || (first && ranked < first) || (every && ranked % every == 0);
        d->row[k] = here && wanted ? d->rows++ : -1;
        ranked += here;
    }
    free(keep);
    return status;
}

fr_status dump_open(dump *d, const fr_window *w, const event_list *list,
                    const fr_rank_settings *settings, int threads, fr_error *err) {
    const char *path = settings->dump_scores, *events = settings->events;
    bool all = w->catalog_kind == CATALOG_TIME;
    *d = (dump){.w = w,
                .events = list,
                .force = settings->force,
                .columns = all ? w->destinations : w->catalog_size,
                .column = all ? NULL : w->catalog};
    TRY(fr_ranking_check(path, settings->force, err));
    if (!(d->path = strdup(path))) return fail_memory(err, strlen(path));
    TRY(ALLOCATE(d->row, w->to - w->from, err));
    TRY(ALLOCATE(d->line, (int64_t)threads * d->columns, err));
    TRY(choose(d, events && *events ? events : "all", err));
    d->open = true;
    TRY(npy_writer_open(&d->file, path, 'f', 4, d->columns, err));
    return npy_writer_reserve(&d->file, d->rows, err);
}

static fr_status read_scores(void *state, const scored_event *e, const float *scores,
                             fr_error *err) {
    dump *d = state;
    if (d->row[e->place] < 0) return FR_OK;
    float *line = d->line + (int64_t)e->worker * d->columns;
    for (int32_t k = 0; k < d->columns; k++) line[k] = scores[d->column ? d->column[k] : k];
    return npy_writer_put_at(&d->file, d->row[e->place], line, err);
}

probe dump_probe(dump *d) { return (probe){.state = d, .read = read_scores}; }

fr_status dump_commit(dump *d, fr_error *err) {
    json_t *events = json_array(), *destinations = json_array();
    for (int32_t k = 0; k < d->w->to - d->w->from; k++)
        if (d->row[k] >= 0) json_push(&events, json_integer(d->w->first + d->w->from + k));
    for (int32_t k = 0; k < d->columns; k++) {
        int64_t id = d->w->destination_id[d->column ? d->column[k] : k];
        json_push(&destinations, json_integer(id));
    }
    json_t *root = json_pack("{s:o, s:o}", "events", events, "destinations", destinations);
    char *side = NULL;
    fr_status status = ranking_side_path(d->path, ".json", &side, err);
    lock pair = {0};
    if (!status) status = ranking_lock(&pair, d->path, d->force, err);
    if (status)
        json_decref(root);
    else
        status = json_write(side, root, err);
    if (!status) status = npy_writer_commit(&d->file, err);
    lock_release(&pair);
    free(side);
    return status;
}

void dump_close(dump *d) {
    if (d->open) npy_writer_discard(&d->file);
    free(d->path);
    free(d->row);
    free(d->line);
    *d = (dump){0};
}
