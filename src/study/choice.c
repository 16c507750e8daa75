/* choice.c - chooses the configuration of a model that is ranked on the test part.
 *
 * All configurations are trained with all seeds, and the mean over seeds of their values on the
 * validation part decides. It uses only numbers in the ledger, so a resumed study
 * makes the same choice.
 */
#include "base/json.h"
#include "study/grid.h"
#include "study/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* True if it is a training of the model of the unit. */
static bool is_candidate(const plan_unit *train, const plan_unit *unit) {
    return train->kind == UNIT_TRAIN && train->label && train->data == unit->data &&
           train->objective == unit->objective && !strcmp(train->model, unit->model);
}

/* A number of a unit that is done. */
static fr_status number_of(fr_study *s, int64_t unit, const char *name, double *out,
                           fr_error *err) {
    sqlite3_stmt *q = NULL;
    bool row = false;
    fr_status status = ledger_prepare(&s->book, &q, err,
                                      "SELECT value FROM metric JOIN run ON id = run"
                                      " WHERE run = ? AND name = ? AND status = 'done'",
                                      "it", unit, name);
    if (!status) status = ledger_next(&s->book, q, &row, err);
    *out = !status && row ? ledger_real(q, 0) : NAN;
    (void)sqlite3_finalize(q);
    if (!status && isnan(*out))
        status = fail(err, FR_EINPUT, "run %lld has no %s yet", (long long)unit, name);
    return status;
}

fr_status work_chosen(fr_study *s, const plan_unit *unit, plan_unit *out, fr_error *err) {
    double chosen = 0;
    *out = *unit;
    if (!unit->chosen) return FR_OK;
    TRY(number_of(s, s->plan.units.at[unit->choice].id, "chosen", &chosen, err));
    out->config = (int)chosen;
    return FR_OK;
}

fr_status work_trainer(fr_study *s, const plan_unit *unit, int *number, fr_error *err) {
    double chosen;
    *number = unit->train;
    if (!unit->chosen || unit->train >= 0) return FR_OK;
    TRY(number_of(s, s->plan.units.at[unit->choice].id, "chosen", &chosen, err));
    for (size_t i = 0; i < s->plan.units.count; i++) {
        const plan_unit *u = &s->plan.units.at[i];
        if (!is_candidate(u, unit) || u->seed != unit->seed || u->config != (int)chosen) continue;
        *number = (int)i;
        return FR_OK;
    }
    return fail(err, FR_EINPUT, "%s: configuration %d is chosen, which is not there", unit->key,
                (int)chosen);
}

fr_status choice_inputs(fr_study *s, const plan_unit *unit, json_t *all, fr_error *err) {
    json_t *models = json_array();
    if (json_object_set_new(all, "configurations", models)) return fail_memory(err, 0);
    for (size_t i = 0; i < s->plan.units.count; i++) {
        const plan_unit *u = &s->plan.units.at[i];
        char *path, hash[65];
        if (!is_candidate(u, unit)) continue;
        TRY(study_artefact(s, u->id, "model", &path, hash, err));
        free(path);
        if (json_array_append_new(models, json_pack("[s, s]", u->key, hash)))
            return fail_memory(err, 0);
    }
    return FR_OK;
}

/* The values of a configuration, and the epochs that were selected, by seed. */
static fr_status read_config(fr_study *s, const plan_unit *unit, int config, double *mean,
                             json_t **out, fr_error *err) {
    json_t *values = json_array(), *epochs = json_array();
    double sum = 0;
    int seeds = 0;
    fr_status status = FR_OK;
    for (size_t i = 0; !status && i < s->plan.units.count; i++) {
        const plan_unit *u = &s->plan.units.at[i];
        double value, epoch = 0;
        if (!is_candidate(u, unit) || u->config != config) continue;
        status = number_of(s, u->id, "validation", &value, err);
        if (!status) status = number_of(s, u->id, "selected", &epoch, err);
        if (status) break;
        json_push(&values, json_real(value));
        json_push(&epochs, json_integer((json_int_t)epoch));
        sum += value;
        seeds++;
    }
    *mean = sum / seeds;
    *out = NULL;
    if (!status)
        *out = json_pack("{s:o, s:f, s:o, s:o}", "configuration",
                         json_text(grid_label(&s->plan, unit->model, config)), "mean", *mean,
                         "values", values, "epochs", epochs);
    if (!status && !*out) return fail_memory(err, 0);
    if (status) {
        json_decref(values);
        json_decref(epochs);
    }
    return status;
}

fr_status choice_make(fr_study *s, const plan_unit *unit, int *chosen, json_t **about,
                      fr_error *err) {
    json_t *list = json_array();
    double best = NAN;
    fr_status status = FR_OK;
    *about = NULL;
    *chosen = 0;
    for (int c = 0; !status && c < grid_count(&s->plan, unit->model); c++) {
        double mean;
        json_t *one;
        status = read_config(s, unit, c, &mean, &one, err);
        if (status) break;
        json_push(&list, one);
        if (c && !(mean > best)) continue;
        best = mean;
        *chosen = c;
    }
    if (!status)
        *about = json_pack("{s:s, s:i, s:o}", "metric", s->plan.select, "chosen", *chosen,
                           "configurations", list);
    else
        json_decref(list);
    return status || *about ? status : fail_memory(err, 0);
}
