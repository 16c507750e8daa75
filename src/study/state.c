/* state.c - the progress of a study (fullrank.h, chapter 15). */
#include "study/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct state_memory {
    arena texts;
    ARRAY(fr_study_unit) units;
    ARRAY(fr_study_version) versions;
} state_memory;

typedef struct state_reader {
    const ledger *book;
    fr_study_state *out;
    state_memory *memory;
} state_reader;

static void count_unit(fr_study_state *out, const fr_study_unit *u, double guess) {
    if (!strcmp(u->status, "done")) {
        out->done++;
        return;
    }
    if (!strcmp(u->status, "skipped")) {
        out->skipped++;
        return;
    }
    if (!strcmp(u->status, "running")) out->running++;
    if (!strcmp(u->status, "failed")) out->failed++;
    if (!strcmp(u->status, "left")) out->left++;
    if (isnan(guess))
        out->unknown++;
    else
        out->seconds_left += guess;
}

static fr_status copy(state_memory *m, const char *text, const char **out, fr_error *err) {
    char *place;
    *out = NULL;
    if (!text) return FR_OK;
    TRY(TAKE(&m->texts, place, strlen(text) + 1, err));
    *out = strcpy(place, text);
    return FR_OK;
}

static fr_status count_version(state_memory *m, const char *tool, fr_error *err) {
    if (!tool) tool = "an early version";
    for (size_t i = 0; i < m->versions.count; i++)
        if (!strcmp(m->versions.at[i].tool, tool)) {
            m->versions.at[i].units++;
            return FR_OK;
        }
    fr_study_version one = {.units = 1};
    TRY(copy(m, tool, &one.tool, err));
    ARRAY_PUSH(&m->versions, one, err);
    return FR_OK;
}

static fr_status take_unit(void *user, const unit_row *row, fr_error *err) {
    const state_reader *r = user;
    bool done = !strcmp(row->status, "done");
    fr_study_unit u = {.kind = unit_kind_name[row->unit->kind],
                       .seconds = done ? row->seconds : NAN,
                       .status = "done"};
    TRY(copy(r->memory, row->unit->key, &u.key, err));
    if (!done) {
        TRY(copy(r->memory, row->message, &u.message, err));
        TRY(copy(r->memory, row->status, &u.status, err));
        if (ledger_locked(r->book, row->id)) u.status = "running";
    } else
        TRY(count_version(r->memory, row->tool, err));
    ARRAY_PUSH(&r->memory->units, u, err);
    count_unit(r->out, &u, row->guess);
    return FR_OK;
}

fr_status fr_study_status(const char *directory, fr_study_state *out, fr_error *err) {
    ledger book = {.locks = -1};
    plan p = {0};
    state_memory *m;
    NEED(out, err);
    *out = (fr_study_state){0};
    NEED(directory, err);
    TRY(ALLOCATE(m, 1, err));
    out->memory = m;
    state_reader reader = {&book, out, m};
    fr_status status = ledger_open(&book, directory, true, NULL, err);
    if (!status) status = ledger_begin_reading(&book, err);
    if (!status) status = results_plan(&book, &p, err);
    if (!status) status = copy(m, p.name, &out->name, err);
    if (!status) status = results_units(&book, &p, take_unit, &reader, err);
    plan_free(&p);
    ledger_close(&book);
    out->unit = m->units.at;
    out->count = (int64_t)m->units.count;
    out->version = m->versions.at;
    out->versions = (int64_t)m->versions.count;
    if (status) fr_study_status_free(out);
    return status;
}

void fr_study_status_free(fr_study_state *state) {
    if (!state) return;
    state_memory *m = state->memory;
    if (m) {
        arena_free(&m->texts);
        free(m->units.at);
        free(m->versions.at);
        free(m);
    }
    *state = (fr_study_state){0};
}

const char *fr_study_preset_find(const char *name) { return name ? plan_preset(name) : NULL; }
