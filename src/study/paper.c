/* paper.c - see paper.h. */
#define _GNU_SOURCE
#include "study/paper.h"

#include "base/number.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reasons ---- */

void paper_refuse(results *r, const char *data, const char *why) {
    for (size_t i = 0; i < r->reasons.count; i++)
        if (!strcmp(r->reasons.at[i].data, data) && !strcmp(r->reasons.at[i].why, why)) return;
    char *copy;
    if (r->failure.code || TAKE(&r->memory, copy, strlen(why) + 1, &r->failure) ||
        ARRAY_RESERVE(&r->reasons, 1, &r->failure))
        return;
    r->reasons.at[r->reasons.count++] = (paper_reason){strcpy(copy, why), data};
}

/* "wikipedia, mooc: window is 8192, in the paper 32768." Equal reasons are shown once. */
static void print_reasons(const results *r, text_buffer *text) {
    for (size_t i = 0; i < r->reasons.count; i++) {
        const paper_reason *one = &r->reasons.at[i];
        bool told = false;
        for (size_t k = 0; k < i; k++) told |= !strcmp(r->reasons.at[k].why, one->why);
        if (told) continue;
        text_print(text, " %s", one->data);
        for (size_t k = i + 1; k < r->reasons.count; k++)
            if (!strcmp(r->reasons.at[k].why, one->why))
                text_print(text, ", %s", r->reasons.at[k].data);
        text_print(text, ": %s.", one->why);
    }
}

fr_status paper_reasons(results *r, const char **out, fr_error *err) {
    text_buffer text = {0};
    char *copy;
    *out = NULL;
    if (r->failure.code) return fail(err, r->failure.code, "%s", r->failure.message);
    if (!r->reasons.count) return FR_OK;
    text_put(&text, "The paper's numbers are left out where they cannot be compared.");
    print_reasons(r, &text);
    r->reasons.count = 0;
    fr_status status = text_status(&text, err);
    if (!status) status = TAKE(&r->memory, copy, text.count + 1, err);
    if (!status) *out = strcpy(copy, text.at);
    text_free(&text);
    return status;
}

/* ---- data ---- */

/* The paper's set with this number of events, or with this name; NULL = none. */
static const char *paper_data(const results *r, const char *data, double events) {
    const json_t *sets = json_object_get(r->published, "facts");
    const char *name;
    json_t *facts;
    json_object_foreach((json_t *)(uintptr_t)sets, name, facts) {
        if (json_number_value(json_object_get(facts, "events")) == events) return name;
    }
    json_object_foreach((json_t *)(uintptr_t)sets, name, facts) {
        if (!strcmp(name, data)) return name;
    }
    return NULL;
}

static const result *facts_of(const results *r, const char *data) {
    int i = results_next(r, 0, UNIT_FACTS, data, NULL, NULL);
    return i < 0 ? NULL : &r->list.at[i];
}

/* True if the known facts from number `first` to `last` agree. */
static bool facts_fit(const json_t *expected, const result *unit, bool diagnostic, int first,
                      int last, char why[160]) {
    static const char *const names[2][3] = {{"events", "catalog", "covered"},
                                            {"events", "diagnostic-catalog", "eligible"}};
    static const char *const words[2][3] = {
        {"events in the file", "destinations in the catalog", "covered test events"},
        {"events in the file", "destinations in the catalog of the diagnostic window",
         "eligible events"}};
    for (int k = first; k <= last; k++) {
        const json_t *value = json_object_get(expected, names[diagnostic][k]);
        double found = results_metric(unit, names[diagnostic][k]);
        if (!value || json_number_value(value) == found) continue;
        (void)number_print(why, 160, "%.0f %s, in the paper %.0f", found, words[diagnostic][k],
                           json_number_value(value));
        return false;
    }
    return true;
}

/* ---- settings ---- */

static bool same_number(const json_t *settings, const char *key, const char *word, double found,
                        char why[160]) {
    double expected = json_number_value(json_object_get(settings, key));
    char ours[32], theirs[32];
    if (found == expected) return true;
    (void)text_real(found, false, ours, sizeof ours);
    (void)text_real(expected, false, theirs, sizeof theirs);
    (void)snprintf(why, 160, "%s is %s, in the paper %s", word, ours, theirs);
    return false;
}

static bool same_word(const json_t *settings, const char *key, const char *found, char why[160]) {
    const char *expected = json_string_value(json_object_get(settings, key));
    if (expected && !strcmp(found, expected)) return true;
    (void)snprintf(why, 160, "%s is %.40s, in the paper %s", key, found, expected ? expected : "");
    return false;
}

/* The paper has no validation part and no filter. */
static bool plain_parts(const fr_protocol *p, char why[160]) {
    if (p->val_share == 0 && !strcmp(p->split, "share") && p->part == FR_PART_TEST &&
        p->filter == FR_FILTER_NONE)
        return true;
    (void)snprintf(why, 160, "parts or filter are not those of the paper");
    return false;
}

static bool protocol_fits(const results *r, bool diagnostic, char why[160]) {
    const json_t *settings = json_object_get(r->published, "settings");
    const fr_protocol *p = &r->plan.protocol;
    bool window = diagnostic ? same_number(settings, "diagnostic_events", "diagnostic-window",
                                           (double)r->plan.diagnostic_window, why)
                             : same_number(settings, "events", "window", (double)p->window, why);
    return window && same_number(settings, "train_share", "train-share", p->train_share, why) &&
           plain_parts(p, why) && same_word(settings, "order", p->order, why) &&
           same_word(settings, "catalog", p->catalog, why) &&
           same_word(settings, "oov", p->oov == FR_OOV_EXCLUDE ? "exclude" : "zero", why);
}

/* The paper's name of one of our models, if it is different. */
static const char *paper_model(const results *r, const char *name) {
    const char *theirs =
        json_string_value(json_object_get(json_object_get(r->published, "models"), name));
    return theirs ? theirs : name;
}

/* True if the models were trained as in the paper, as far as the paper says; train.json of each
 * seed is compared. */
static bool training_fits(const results *r, const paper_ask *ask, const char *model,
                          char why[160]) {
    const json_t *settings = json_object_get(r->published, "settings");
    const char *objective = ask->objective ? ask->objective : "bce";
    for (int i = 0; (i = results_next(r, i, UNIT_TRAIN, ask->data, model, objective)) >= 0; i++) {
        const result *u = &r->list.at[i];
        const json_t *config = json_object_get(u->training, "config"),
                     *history = json_object_get(config, "history");
        if (u->diagnostic != ask->diagnostic) continue;
        if (!same_number(settings, "epochs", "epochs",
                         json_number_value(json_object_get(u->training, "epochs_done")), why))
            return false;
        if (history && paper_model(r, model) == model && /* otherwise it has its own history */
            !same_number(settings, "history", "history", json_number_value(history), why))
            return false;
        if (json_is_true(json_object_get(config, "deterministic"))) {
            (void)snprintf(why, 160, "training is deterministic, in the paper it is not");
            return false;
        }
    }
    return true;
}

/* The paper's name of a data set, if its numbers are comparable. Otherwise NULL and, if somebody
 * may expect them, a reason. */
static const char *fitting(results *r, const paper_ask *ask) {
    char why[160];
    const result *unit = facts_of(r, ask->data);
    const char *name = paper_data(r, ask->data, unit ? results_metric(unit, "events") : NAN);
    if (!name) return NULL;
    const json_t *facts = json_object_get(json_object_get(r->published, "facts"), name);
    (void)snprintf(why, sizeof why, "its facts are not known yet");
    bool fits = unit && facts_fit(facts, unit, ask->diagnostic, 0, 0, why) &&
                protocol_fits(r, ask->diagnostic, why) &&
                facts_fit(facts, unit, ask->diagnostic, 1, 2, why);
    for (int k = 0; fits && k < 2; k++)
        if (ask->model[k]) fits = training_fits(r, ask, ask->model[k], why);
    if (fits) return name;
    paper_refuse(r, ask->data, why);
    return NULL;
}

bool paper_fits(results *r, paper_ask ask) { return fitting(r, &ask) != NULL; }

static const json_t *step(const json_t *at, const char *key) {
    return json_is_array(at) ? json_array_get(at, (size_t)strtoul(key, NULL, 10))
                             : json_object_get(at, key);
}

double paper_number(results *r, paper_ask ask, const char *section, ...) {
    const result *unit = facts_of(r, ask.data);
    const char *name = paper_data(r, ask.data, unit ? results_metric(unit, "events") : NAN);
    const json_t *at = name ? step(json_object_get(r->published, section), name) : NULL;
    va_list args;
    va_start(args, section);
    for (const char *key; at && (key = va_arg(args, const char *));)
        at = step(at, paper_model(r, key));
    va_end(args);
    return json_is_number(at) && fitting(r, &ask) ? json_number_value(at) : NAN;
}
