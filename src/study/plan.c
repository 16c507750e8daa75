/* plan.c - see plan.h. */
#define _GNU_SOURCE
#include "study/plan.h"

#include "base/file.h"
#include "base/json.h"
#include "data/synth.h"
#include "models/model.h"
#include "rank/spec.h"
#include "study/embedded.h"
#include "study/grid.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *const unit_kind_name[UNIT_KINDS] = {"data",   "facts",      "minimal", "train",
                                                "rank",   "membership", "project", "scaling",
                                                "select", "batches"};
const char *const plan_objective_name[] = {"bce", "bpr"};

/* clang-format off */
/* The allowed entries of a document, for messages about others. */
static const fr_option keys[] = {
    {.key = "name"}, {.key = "data"}, {.key = "protocol"}, {.key = "sample-events"},
    {.key = "sample-seed"}, {.key = "diagnostic-window"}, {.key = "baselines"}, {.key = "oracle"},
    {.key = "models"}, {.key = "ranks"}, {.key = "scorers"}, {.key = "objectives"},
    {.key = "seeds"}, {.key = "settings"}, {.key = "model-settings"}, {.key = "select"},
    {.key = "k"}, {.key = "gain"}, {.key = "minimal"}, {.key = "membership"},
    {.key = "membership-windows"}, {.key = "projection"}, {.key = "projection-windows"},
    {.key = "scaling"}, {.key = "granularity"}, {0}};
/* clang-format on */

typedef struct parser {
    plan *p;
    const char *where, *folder; /* of data */
    const char *beside;         /* of rank records and scorers */
} parser;

static fr_status wrong(const parser *r, const char *key, const char *expected, fr_error *err) {
    return fail(err, FR_EINPUT, "%s: \"%s\" is not as it should be, expected %s", r->where, key,
                expected);
}

/* ---- small readers ---- */

static const char *copy(plan *p, const char *text, fr_error *err) {
    char *out;
    if (arena_take(&p->memory, strlen(text) + 1, 1, (void **)&out, err)) return NULL;
    return strcpy(out, text);
}

/* Writes ", did you mean X?", or nothing if no name is near. */
static const char *meant(const char *text, fr_name_at *names, const void *list, char out[128]) {
    const char *near = fr_text_nearest(text, names, list);
    out[0] = 0;
    if (near) (void)snprintf(out, 128, ", did you mean %s?", near);
    return out;
}

/* Replaces the name of a model, as typed or as shown in tables, by its internal name in the
 * document. */
static fr_status settle_model(const parser *r, json_t *name, fr_error *err) {
    fr_error inner = {0};
    const fr_model *m = fr_model_find(json_string_value(name));
    if (m) return json_string_set(name, m->name) ? fail_memory(err, 0) : FR_OK;
    (void)model_unknown(json_string_value(name), &inner);
    return fail(err, FR_EINPUT, "%s: %s", r->where, inner.message);
}

static bool in_list(const json_t *list, const char *word) {
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i,
                       item) if (json_is_string(item) &&
                                 !strcmp(json_string_value(item), word)) return true;
    return false;
}

/* Refuses a list that names something twice: a second entry has no clear meaning, and the names
 * identify units of work. NULL counts as empty. */
static fr_status check_distinct(const parser *r, const char *key, const json_t *list,
                                fr_error *err) {
    json_t *met = json_object(), *item;
    fr_status status = met ? FR_OK : fail_memory(err, 0);
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, item) {
        char *text = status ? NULL : json_print(item, JSON_ENCODE_ANY);
        if (!status && !text) status = fail_memory(err, 0);
        if (!status && json_object_get(met, text))
            status = fail(err, FR_EINPUT, "%s: \"%s\" names %s twice", r->where, key, text);
        if (!status && json_object_set_new(met, text, json_true())) status = fail_memory(err, 0);
        free(text);
    }
    json_decref(met);
    return status;
}

/* True if it is the name of an external model. */
static bool is_external(const plan *p, const char *name) {
    return json_object_get(json_object_get(p->source, "ranks"), name) ||
           json_object_get(json_object_get(p->source, "scorers"), name);
}

/* A list of model names; NULL counts as empty. A gain may be about external models too. */
static fr_status check_models(const parser *r, const char *key, const json_t *list, fr_error *err) {
    size_t i;
    json_t *item;
    if (!list) return FR_OK;
    if (!json_is_array(list)) return wrong(r, key, "a list of models", err);
    json_array_foreach((json_t *)(uintptr_t)list, i, item) {
        if (!json_is_string(item)) return wrong(r, key, "a list of models", err);
        if (!strcmp(key, "gain") && is_external(r->p, json_string_value(item))) continue;
        TRY(settle_model(r, item, err));
        if (strcmp(key, "models") != 0 &&
            !in_list(json_object_get(r->p->source, "models"), json_string_value(item)))
            return fail(err, FR_EINPUT, "%s: \"%s\" names %s, which is not among \"models\"",
                        r->where, key, json_string_value(item));
    }
    return check_distinct(r, key, list, err);
}

/* {"bce": [models], "bpr": [models]} */
static fr_status check_objectives(const parser *r, const char *key, fr_error *err) {
    const json_t *map = json_object_get(r->p->source, key);
    const char *name;
    json_t *list;
    if (map && !json_is_object(map))
        return wrong(r, key, "{\"bce\": [models], \"bpr\": [models]}", err);
    json_object_foreach((json_t *)(uintptr_t)map, name, list) {
        if (strcmp(name, "bce") && strcmp(name, "bpr"))
            return fail(err, FR_EINPUT, "%s: \"%s\" has \"%s\", expected \"bce\" or \"bpr\"",
                        r->where, key, name);
        TRY(check_models(r, key, list, err));
    }
    return FR_OK;
}

static fr_status set_protocol(void *user, const char *key, const char *value, fr_error *err) {
    return fr_options_set(fr_protocol_options, user, key, value, err);
}

/* Applies the plain values of an object as texts. */
static fr_status each_setting(const parser *r, const char *key, const json_t *object,
                              fr_config_set *set, void *user, fr_error *err) {
    const char *name;
    json_t *value;
    if (object && !json_is_object(object)) return wrong(r, key, "an object", err);
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        char *text = json_is_string(value) ? strdup(json_string_value(value))
                                           : json_print(value, JSON_ENCODE_ANY);
        fr_error inner = {0};
        fr_status status = text ? set(user, name, text, &inner) : fail_memory(err, 0);
        free(text);
        if (status == FR_ENOMEM) return fail_memory(err, 0);
        if (status) return fail(err, FR_EINPUT, "%s: %s: %s", r->where, key, inner.message);
    }
    return FR_OK;
}

/* ---- data ---- */

/* PATH itself, or with .csv or .csv.gz after it: the first that exists, otherwise PATH. */
static fr_status find_data(parser *r, const char *path, const char **out, fr_error *err) {
    static const char *const ends[] = {"", ".csv", ".csv.gz"};
    char *first = NULL;
    for (int i = 0; i < 3; i++) {
        char *full = NULL;
        if (asprintf(&full, "%s%s%s%s", path[0] == '/' ? "" : r->folder, path[0] == '/' ? "" : "/",
                     path, ends[i]) < 0)
            return fail_memory(err, 0);
        if (!access(full, F_OK) || i == 2) {
            *out = copy(r->p, i == 2 && access(full, F_OK) ? first : full, err);
            free(full);
            free(first);
            return *out ? FR_OK : FR_ENOMEM;
        }
        if (i == 0)
            first = full;
        else
            free(full);
    }
    return FR_OK;
}

fr_status plan_synth(const json_t *wanted, fr_synth *settings, fr_error *err) {
    const char *key;
    json_t *value;
    TRY(fr_options_defaults(fr_synth_options, settings, err));
    json_object_foreach((json_t *)(uintptr_t)wanted, key, value) {
        char *text = json_is_string(value) ? strdup(json_string_value(value))
                                           : json_print(value, JSON_ENCODE_ANY);
        const char *name = strcmp(key, "synth") ? key : "preset";
        fr_status status = text ? fr_options_set(fr_synth_options, settings, name, text, err)
                                : fail_memory(err, 0);
        free(text);
        TRY(status);
    }
    return FR_OK;
}

/* Keys, values, the preset and its parameters. */
static fr_status check_synth(const parser *r, const char *name, const json_t *wanted,
                             fr_error *err) {
    fr_synth settings = {.size = sizeof settings};
    synth_parameters parameters;
    fr_error inner = {0};
    fr_status status = plan_synth(wanted, &settings, &inner);
    if (!status) status = synth_find_parameters(&settings, &parameters, &inner);
    fr_options_free(fr_synth_options, &settings);
    if (status == FR_EUSAGE) status = FR_EINPUT;
    return status ? fail(err, status, "%s: \"data\": %s: %s", r->where, name, inner.message)
                  : FR_OK;
}

static fr_status read_data(parser *r, fr_error *err) {
    plan *p = r->p;
    const json_t *list = json_object_get(p->source, "data");
    const char *expected =
        "a list of names, or {\"name\": \"path\", {\"synth\": \"preset\"} or null}";
    size_t n = json_is_array(list) ? json_array_size(list) : json_object_size(list), i = 0;
    if (!n) return wrong(r, "data", expected, err);
    TRY(TAKE(&p->memory, p->data, n, err));
    if (json_is_array(list))
        for (; i < n; i++) {
            const char *name = json_string_value(json_array_get(list, i));
            if (!name) return wrong(r, "data", expected, err);
            p->data[i].name = name;
            TRY(find_data(r, name, &p->data[i].path, err));
        }
    else {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)list, name, value) {
            if (!json_is_string(value) && !json_is_null(value) &&
                !json_is_string(json_object_get(value, "synth")))
                return wrong(r, "data", expected, err);
            p->data[i].name = name;
            if (json_is_string(value))
                TRY(find_data(r, json_string_value(value), &p->data[i].path, err));
            else if (json_is_object(value)) {
                p->data[i].synth = value;
                TRY(check_synth(r, name, value, err));
            }
            i++;
        }
    }
    p->datas = (int)n;
    for (int a = 0; a < p->datas; a++)
        if (!p->data[a].name[0] || strpbrk(p->data[a].name, "/ \t\n") || p->data[a].name[0] == '.')
            return fail(err, FR_EINPUT, "%s: a data set called \"%s\", expected a plain word",
                        r->where, p->data[a].name);
    return json_is_array(list) ? check_distinct(r, "data", list, err) : FR_OK;
}

/* ---- units ---- */

/* Appends a unit; its key contains everything that identifies it. *number is its position. Keys are
 * unique, because lists name nothing twice. */
static fr_status add(plan *p, plan_unit u, int *number, fr_error *err) {
    const char *name = p->data[u.data].name, *kind = unit_kind_name[u.kind],
               *window = u.diagnostic ? "diagnostic-" : "";
    char *key = NULL;
    int size =
        u.kind == UNIT_SELECT
            ? asprintf(&key, "%s/%s/%s/%s", name, u.model, plan_objective_name[u.objective], kind)
        : u.label   ? asprintf(&key, "%s/%s/%s/%lld/%s/%s", name, u.model,
                               plan_objective_name[u.objective], (long long)u.seed, u.label, kind)
        : u.trained ? asprintf(&key, "%s/%s/%s/%lld/%s%s", name, u.model,
                               plan_objective_name[u.objective], (long long)u.seed, window, kind)
        : u.seeded
            ? asprintf(&key, "%s/%s/%lld/%s%s", name, u.model, (long long)u.seed, window, kind)
        : u.model ? asprintf(&key, "%s/%s/%s%s", name, u.model, window, kind)
                  : asprintf(&key, "%s/%s", name, kind);
    if (size < 0) return fail_memory(err, 0);
    u.key = copy(p, key, err);
    free(key);
    if (!u.key) return FR_ENOMEM;
    ARRAY_PUSH(&p->units, u, err);
    if (number) *number = (int)p->units.count - 1;
    return FR_OK;
}

/* Ranking under the protocol and, if requested, by batches. */
static fr_status add_ranking(plan *p, plan_unit u, fr_error *err) {
    u.kind = UNIT_RANK;
    TRY(add(p, u, NULL, err));
    u.kind = UNIT_BATCHES;
    return p->granularity ? add(p, u, NULL, err) : FR_OK;
}

static bool is_ranked(const plan *p, const char *name, int objective) {
    const json_t *map = json_object_get(p->source, "objectives");
    const json_t *ranked = map ? json_object_get(map, plan_objective_name[objective])
                           : objective == FR_OBJECTIVE_BCE ? json_object_get(p->source, "models")
                                                           : NULL;
    return in_list(ranked, name);
}

/* Training of every configuration of a model that has several; add_choice does the rest. */
static fr_status add_configs(plan *p, plan_unit u, fr_error *err) {
    u.kind = UNIT_TRAIN;
    for (u.config = 0; u.config < grid_count(p, u.model); u.config++) {
        u.label = grid_label(p, u.model, u.config);
        TRY(add(p, u, NULL, err));
    }
    return FR_OK;
}

static bool says_final(const json_t *options) {
    const char *final = json_string_value(json_object_get(options, "final"));
    return final && !strcmp(final, "train+val");
}

/* True if the chosen configuration is trained once more. */
static bool is_final(const plan *p, const char *name) {
    bool final = says_final(json_object_get(p->source, "settings"));
    for (int c = 0; c < grid_count(p, name); c++) final |= says_final(grid_options(p, name, c));
    return final;
}

/* When all seeds of all configurations are trained: the choice, and what is ranked. */
static fr_status add_choice(plan *p, int data, const char *name, int objective, fr_error *err) {
    const json_t *seeds = json_object_get(p->source, "seeds");
    if (grid_count(p, name) == 1 || !is_ranked(p, name, objective)) return FR_OK;
    plan_unit u = {.kind = UNIT_SELECT,
                   .data = data,
                   .model = name,
                   .objective = objective,
                   .trained = true,
                   .train = -1};
    TRY(add(p, u, &u.choice, err));
    u.seeded = u.chosen = true;
    for (size_t i = 0; i < json_array_size(seeds); i++) {
        u.seed = json_integer_value(json_array_get(seeds, i));
        u.train = -1;
        u.kind = UNIT_TRAIN;
        if (is_final(p, name)) TRY(add(p, u, &u.train, err));
        TRY(add_ranking(p, u, err));
    }
    return FR_OK;
}

/* The membership table of a scorer that needs no training. */
static fr_status add_membership(plan *p, plan_unit u, fr_error *err) {
    u.kind = UNIT_MEMBERSHIP;
    for (int wide = 0; wide < 2; wide++) {
        u.diagnostic = wide;
        if (p->membership_on[wide]) TRY(add(p, u, NULL, err));
    }
    return FR_OK;
}

/* Training on each window that is needed, and the units that use the model. */
static fr_status add_model(plan *p, int data, const char *name, int objective, int64_t seed,
                           fr_error *err) {
    const json_t *membership = json_object_get(p->source, "membership");
    bool cells = in_list(json_object_get(membership, plan_objective_name[objective]), name);
    bool projected =
        objective == FR_OBJECTIVE_BCE && in_list(json_object_get(p->source, "projection"), name);
    const bool *cells_on = p->membership_on, *projected_on = p->projection_on;
    plan_unit u = {.data = data,
                   .model = name,
                   .objective = objective,
                   .seed = seed,
                   .trained = true,
                   .seeded = true,
                   .train = -1};
    if (grid_count(p, name) > 1)
        return is_ranked(p, name, objective) ? add_configs(p, u, err) : FR_OK;
    if (is_ranked(p, name, objective) || (projected && projected_on[0]) || (cells && cells_on[0])) {
        u.kind = UNIT_TRAIN;
        TRY(add(p, u, &u.train, err));
        TRY(add_ranking(p, u, err));
        u.kind = UNIT_MEMBERSHIP;
        if (cells && cells_on[0]) TRY(add(p, u, NULL, err));
        u.kind = UNIT_PROJECT;
        if (projected && projected_on[0]) TRY(add(p, u, NULL, err));
        u.kind = UNIT_SCALING;
        if (objective == FR_OBJECTIVE_BCE &&
            seed == json_integer_value(json_array_get(json_object_get(p->source, "seeds"), 0)) &&
            in_list(json_object_get(p->source, "scaling"), name))
            TRY(add(p, u, NULL, err));
    }
    if ((cells && cells_on[1]) || projected) {
        u.diagnostic = true;
        u.train = -1;
        u.kind = UNIT_TRAIN;
        TRY(add(p, u, &u.train, err));
        u.kind = UNIT_MEMBERSHIP;
        if (cells && cells_on[1]) TRY(add(p, u, NULL, err));
        u.kind = UNIT_PROJECT;
        if (projected) TRY(add(p, u, NULL, err));
    }
    return FR_OK;
}

static fr_status add_scorer(plan *p, int data, const char *spec, fr_error *err) {
    plan_unit u = {.data = data, .train = -1};
    if (!(u.model = copy(p, spec, err))) return FR_ENOMEM;
    TRY(add_ranking(p, u, err));
    if (!json_object_get(p->source, "membership") || !strcmp(spec, "oracle")) return FR_OK;
    return add_membership(p, u, err);
}

/* ---- external results ---- */

/* A path of the document; relative ones start at the document's folder. The caller frees it. */
static char *resolve(const parser *r, const char *path) {
    bool as_is = path[0] == '/' || !strcmp(r->beside, ".");
    return as_is ? strdup(path) : path_join(r->beside, path);
}

const char *plan_scorer_file(const char *text, size_t *size) {
    static const char end[] = ".safetensors";
    *size = strlen(text);
    if (!strncmp(text, "scores:", 7)) {
        *size -= 7;
        return text + 7;
    }
    if (!strncmp(text, "plugin:", 7)) {
        *size = strcspn(text + 7, ",");
        return text + 7;
    }
    return *size >= sizeof end && !strcmp(text + *size - sizeof end + 1, end) ? text : NULL;
}

/* A scorer's text with its file resolved. The caller frees it. */
static char *resolve_scorer(const parser *r, const char *text) {
    size_t size;
    const char *file = plan_scorer_file(text, &size);
    char *path = file ? resolve(r, file) : NULL, *out = NULL; /* with its options */
    if (!file) return strdup(text);
    if (path && asprintf(&out, "%.*s%s", (int)(file - text), text, path) < 0) out = NULL;
    free(path);
    return out;
}

/* Checks the text of a scorer, as far as possible without files and events. */
static fr_status check_spec(const parser *r, const char *key, const char *spec, fr_error *err) {
    fr_error inner = {0};
    fr_status status = spec_check(spec, &inner);
    if (status == FR_EUSAGE) status = FR_EINPUT; /* errors refer to the document */
    return status ? fail(err, status, "%s: \"%s\": %s", r->where, key, inner.message) : FR_OK;
}

/* One run of an external model; u.seeded and u.seed identify it. */
static fr_status add_run(const parser *r, plan_unit u, const json_t *text, fr_error *err) {
    plan *p = r->p;
    const char *key = u.ranks ? "ranks" : "scorers", *given = json_string_value(text);
    if (!given || !*given || given[strlen(given) - 1] == ':')
        return fail(err, FR_EINPUT, "%s: \"%s\": %s: expected %s", r->where, key, u.model,
                    u.ranks ? "the name of a file RANKS.npy" : "a scorer, as `rank` takes it");
    if (!strcmp(given, "scores:-"))
        return fail(err, FR_EINPUT,
                    "%s: \"%s\": %s: a stream of scores can be read once only, expected a file",
                    r->where, key, u.model);
    bool counts = !strncmp(given, "counts:", 7), factors = !strncmp(given, "factors:", 8);
    if (!u.ranks && (counts || factors))
        return fail(err, FR_EINPUT,
                    "%s: \"%s\": %s: %s; `rank` makes rank records of them, which belong under "
                    "\"ranks\"",
                    r->where, key, u.model,
                    counts ? "counts are not scores" : "factors are several files");
    if (!u.ranks) TRY(check_spec(r, key, given, err));
    char *full = u.ranks ? resolve(r, given) : resolve_scorer(r, given);
    u.external = full ? copy(p, full, err) : NULL;
    free(full);
    if (!u.external) return fail_memory(err, 0);
    u.kind = UNIT_RANK;
    TRY(add(p, u, NULL, err));
    /* Scores for one window cannot be used for another. */
    if (u.ranks || !strncmp(given, "scores:", 7) || !json_object_get(p->source, "membership"))
        return FR_OK;
    return add_membership(p, u, err);
}

/* The runs of an external model on a data set: one, or one for each seed. */
static fr_status add_runs(const parser *r, plan_unit u, const json_t *runs, fr_error *err) {
    const char *key = u.ranks ? "ranks" : "scorers", *name;
    const json_t *seeds = json_object_get(r->p->source, "seeds");
    json_t *one;
    size_t i;
    u.seeded = json_is_array(runs) || json_is_object(runs);
    if (!u.seeded) return add_run(r, u, runs, err);
    if (json_is_array(runs) && json_array_size(runs) != json_array_size(seeds))
        return fail(err, FR_EINPUT,
                    "%s: \"%s\": %s has a list of %zu for %zu \"seeds\": expected one for each, "
                    "or {\"seed\": \"...\"}",
                    r->where, key, u.model, json_array_size(runs), json_array_size(seeds));
    json_array_foreach((json_t *)(uintptr_t)runs, i, one) {
        u.seed = json_integer_value(json_array_get(seeds, i));
        TRY(add_run(r, u, one, err));
    }
    if (!json_is_array(runs) && !json_object_size(runs))
        return fail(err, FR_EINPUT, "%s: \"%s\": %s has no run", r->where, key, u.model);
    json_object_foreach((json_t *)(uintptr_t)runs, name, one) {
        char *end, again[32];
        u.seed = strtoll(name, &end, 10);
        (void)snprintf(again, sizeof again, "%lld", (long long)u.seed);
        if (u.seed < 0 || strcmp(again, name) != 0)
            return fail(err, FR_EINPUT,
                        "%s: \"%s\": %s: \"%s\" is neither a seed nor a data set, expected a whole "
                        "number",
                        r->where, key, u.model, name);
        TRY(add_run(r, u, one, err));
    }
    return FR_OK;
}

static int find_name(const plan *p, const char *name) {
    for (int d = 0; d < p->datas; d++)
        if (!strcmp(p->data[d].name, name)) return d;
    return -1;
}

static const char *data_at(const void *list, int index) {
    const plan *p = list;
    return index < p->datas ? p->data[index].name : NULL;
}

/* The entry of an external model for a data set; NULL = none. If there are several data sets, it
 * names them: {"wikipedia": runs}. */
static fr_status runs_of(const parser *r, const char *key, const char *who, json_t *value, int data,
                         const json_t **out, fr_error *err) {
    const plan *p = r->p;
    const char *name;
    json_t *runs;
    char near[128];
    bool by_data = false;
    if (json_is_object(value))
        json_object_foreach(value, name, runs) by_data |= find_name(p, name) >= 0;
    *out = value;
    if (!by_data && p->datas > 1)
        return fail(err, FR_EINPUT,
                    "%s: \"%s\": %s does not say for which data set, expected {\"%s\": ...}",
                    r->where, key, who, p->data[0].name);
    if (!by_data) return FR_OK;
    json_object_foreach(value, name, runs) {
        if (find_name(p, name) < 0)
            return fail(err, FR_EINPUT, "%s: \"%s\": %s: there is no data set %s%s", r->where, key,
                        who, name, meant(name, data_at, p, near));
    }
    *out = json_object_get(value, p->data[data].name);
    return FR_OK;
}

static fr_status add_externals(const parser *r, int data, fr_error *err) {
    static const char *const kinds[] = {"ranks", "scorers"};
    plan *p = r->p;
    size_t before = p->units.count;
    bool records = !p->data[data].path && !p->data[data].synth;
    for (int k = 0; k < 2; k++) {
        const char *name;
        json_t *value;
        json_object_foreach(json_object_get(p->source, kinds[k]), name, value) {
            const json_t *runs;
            plan_unit u = {.data = data, .model = name, .ranks = !k, .train = -1};
            TRY(runs_of(r, kinds[k], name, value, data, &runs, err));
            if (runs && records && k)
                return fail(err, FR_EINPUT,
                            "%s: \"scorers\": %s needs the events of %s, of which there are rank "
                            "records only",
                            r->where, name, p->data[data].name);
            if (runs) TRY(add_runs(r, u, runs, err));
        }
    }
    if (records && p->units.count == before)
        return fail(err, FR_EINPUT, "%s: there is nothing of the data set %s: expected \"ranks\"",
                    r->where, p->data[data].name);
    return FR_OK;
}

/* True if it is the text of a baseline, with or without options and "baseline:". */
static bool is_baseline(const json_t *list, const char *name) {
    size_t i;
    json_t *item;
    if (!strncmp(name, "baseline:", 9)) name += 9;
    json_array_foreach((json_t *)(uintptr_t)list, i, item) {
        const char *text = json_string_value(item);
        size_t size = text ? strcspn(text, ",") : 0;
        if (text &&
            (!strcasecmp(text, name) || (strlen(name) == size && !strncasecmp(text, name, size))))
            return true;
    }
    return false;
}

/* The names of external models must be unique. */
static fr_status check_externals(const parser *r, const char *key, fr_error *err) {
    const json_t *source = r->p->source, *map = json_object_get(source, key);
    const json_t *models = json_object_get(source, "models");
    const char *name;
    json_t *value, *item;
    size_t i;
    if (map && !json_is_object(map)) return wrong(r, key, "{\"name\": ...}", err);
    json_object_foreach((json_t *)(uintptr_t)map, name, value) {
        bool ours = is_baseline(json_object_get(source, "baselines"), name) ||
                    (json_is_true(json_object_get(source, "oracle")) && !strcmp(name, "oracle"));
        json_array_foreach((json_t *)(uintptr_t)models, i, item) ours |=
            !strcasecmp(json_string_value(item), name);
        if (ours)
            return fail(err, FR_EINPUT,
                        "%s: \"%s\" calls a model %s, which is one of this study's own: expected "
                        "another name",
                        r->where, key, name);
        if (!strcmp(key, "ranks") && json_object_get(json_object_get(source, "scorers"), name))
            return fail(err, FR_EINPUT, "%s: %s stands in \"ranks\" and in \"scorers\"", r->where,
                        name);
        if (!*name || strchr(name, '/'))
            return fail(err, FR_EINPUT,
                        "%s: \"%s\" calls a model \"%s\", expected a name without /", r->where, key,
                        name);
    }
    return FR_OK;
}

/* ---- all units ---- */

static fr_status make_units(parser *r, fr_error *err) {
    plan *p = r->p;
    const json_t *seeds = json_object_get(p->source, "seeds"),
                 *models = json_object_get(p->source, "models"),
                 *baselines = json_object_get(p->source, "baselines");
    size_t m, s, b;
    json_t *item, *seed, *baseline;
    if (baselines && !json_is_array(baselines))
        return wrong(r, "baselines", "a list of names", err);
    TRY(check_distinct(r, "baselines", baselines, err));
    for (int d = 0; d < p->datas; d++) {
        p->data[d].unit = -1;
        if (!p->data[d].path && !p->data[d].synth) {
            TRY(add_externals(r, d, err));
            continue;
        }
        TRY(add(p, (plan_unit){.kind = UNIT_DATA, .data = d, .train = -1}, &p->data[d].unit, err));
        TRY(add(p, (plan_unit){.kind = UNIT_FACTS, .data = d, .train = -1}, NULL, err));
        if (json_is_true(json_object_get(p->source, "minimal")))
            TRY(add(p, (plan_unit){.kind = UNIT_MINIMAL, .data = d, .train = -1}, NULL, err));
        if (p->data[d].synth && json_is_true(json_object_get(p->source, "oracle")))
            TRY(add_scorer(p, d, "oracle", err));
        json_array_foreach((json_t *)(uintptr_t)baselines, b, baseline) {
            char *spec;
            if (!json_is_string(baseline)) return wrong(r, "baselines", "a list of names", err);
            if (asprintf(&spec, "baseline:%s", json_string_value(baseline)) < 0)
                return fail_memory(err, 0);
            fr_status status = check_spec(r, "baselines", spec, err);
            if (!status) status = add_scorer(p, d, spec, err);
            free(spec);
            TRY(status);
        }
        /* seeds are the outer loop, so after the first seed every model has results */
        json_array_foreach((json_t *)(uintptr_t)seeds, s, seed) for (int objective = 0;
                                                                     objective < 2; objective++)
            json_array_foreach((json_t *)(uintptr_t)models, m, item) TRY(
                add_model(p, d, json_string_value(item), objective, json_integer_value(seed), err));
        for (int objective = 0; objective < 2; objective++)
            json_array_foreach((json_t *)(uintptr_t)models, m, item)
                TRY(add_choice(p, d, json_string_value(item), objective, err));
        TRY(add_externals(r, d, err));
    }
    return FR_OK;
}

/* ---- the document ---- */

typedef struct both {
    fr_model_settings model;
    fr_training training;
    const fr_model *facts; /* options it does not use are left alone; NULL = set them all */
    bool of_all;           /* those of "settings", which may name a family */
} both;

static fr_status set_both(void *user, const char *key, const char *value, fr_error *err) {
    both *b = user;
    if (!strcmp(key, "select"))
        return fail(err, FR_EUSAGE, "select is an entry of the document itself, not a setting");
    if (!strcmp(key, "settings") && b->of_all) return FR_OK; /* plan_family */
    if (!strcmp(key, "settings"))
        return fail(err, FR_EUSAGE, "a family of settings is one of all models");
    if (fr_options_find(fr_training_options, key) && strcmp(key, "seed") &&
        strcmp(key, "objective") && strcmp(key, "resume"))
        return fr_options_set(fr_training_options, &b->training, key, value, err);
    const fr_option *of_model = fr_options_find(fr_model_options, key);
    const char *near = of_model ? NULL : fr_options_nearest(fr_training_options, key);
    if (near && !fr_options_nearest(fr_model_options, key))
        return fail(err, FR_EUSAGE, "unknown option %s, did you mean %s?", key, near);
    if (b->facts && of_model && !model_uses(b->facts, of_model->key)) return FR_OK;
    return fr_options_set(fr_model_options, &b->model, key, value, err);
}

/* The family named by "settings", alone or next to options; NULL = none. */
static const char *family_of(const plan *p) {
    const json_t *settings = json_object_get(p->source, "settings");
    return json_string_value(json_is_object(settings) ? json_object_get(settings, "settings")
                                                      : settings);
}

/* Settings of all models: the family first, so that options override it. */
static fr_status common_settings(const parser *r, both *b, fr_error *err) {
    const json_t *settings = json_object_get(r->p->source, "settings");
    const char *family = family_of(r->p), *of = b->facts ? b->facts->name : fr_model_at(0)->name;
    fr_error inner = {0};
    TRY(fr_options_defaults(fr_model_options, &b->model, err));
    TRY(fr_options_defaults(fr_training_options, &b->training, err));
    fr_status status =
        family ? fr_settings_apply(family, of, &b->model, &b->training, &inner) : FR_OK;
    fr_options_free(fr_training_options, &b->training); /* texts are the plan's */
    b->training.settings = (char *)(uintptr_t)family;
    if (status == FR_ENOMEM) return fail_memory(err, 0);
    if (status) return fail(err, FR_EINPUT, "%s: settings: %s", r->where, inner.message);
    b->of_all = true;
    if (!json_is_string(settings)) TRY(each_setting(r, "settings", settings, set_both, b, err));
    b->of_all = false;
    return FR_OK;
}

fr_status plan_settings(const plan *p, const plan_unit *unit, fr_model_settings *shape,
                        fr_training *training, fr_error *err) {
    both b = {0};
    parser r = {.p = (plan *)(uintptr_t)p, .where = p->name};
    for (int i = 0; (b.facts = fr_model_at(i)) && strcmp(b.facts->name, unit->model);) i++;
    TRY(common_settings(&r, &b, err));
    TRY(each_setting(&r, "model-settings", grid_options(p, unit->model, unit->config), set_both, &b,
                     err));
    if (unit->label) b.training.final = FR_FINAL_TRAIN; /* only the chosen one is trained again */
    b.training.select = (char *)(uintptr_t)p->select;
    b.training.objective = unit->objective;
    b.training.seed = unit->seed;
    *shape = b.model;
    *training = b.training;
    return FR_OK;
}

/* Keys and values of "model-settings"; an option that the model does not have is a mistake here. */
static fr_status check_configs(const parser *r, fr_error *err) {
    const char *name, *key;
    json_t *options, *value;
    fr_model_settings shape;
    fr_training training;
    json_object_foreach(json_object_get(r->p->source, "model-settings"), name, options) {
        const fr_model *facts = fr_model_find(name);
        json_object_foreach(options, key, value) {
            const fr_option *of_model = fr_options_find(fr_model_options, key);
            if (facts && of_model && !model_uses(facts, of_model->key))
                return fail(err, FR_EINPUT, "%s: \"model-settings\": %s has no option %s", r->where,
                            name, key);
        }
        plan_unit u = {.model = facts ? facts->name : name};
        for (u.config = 0; u.config < grid_count(r->p, u.model); u.config++) {
            fr_error inner = {0};
            fr_status status = plan_settings(r->p, &u, &shape, &training, &inner);
            if (status == FR_ENOMEM) return fail_memory(err, 0);
            if (status) return fail(err, FR_EINPUT, "%s: %s: %s", r->where, name, inner.message);
        }
    }
    return FR_OK;
}

static fr_status read_numbers(parser *r, const char *key, int64_t low, fr_error *err) {
    const json_t *list = json_object_get(r->p->source, key);
    size_t i;
    json_t *item;
    if (list && !json_is_array(list)) return wrong(r, key, "a list of whole numbers", err);
    json_array_foreach((json_t *)(uintptr_t)list, i,
                       item) if (!json_is_integer(item) ||
                                 json_integer_value(item) <
                                     low) return wrong(r, key, "a list of whole numbers", err);
    return check_distinct(r, key, list, err);
}

static fr_status read_k(parser *r, fr_error *err) {
    plan *p = r->p;
    const json_t *list = json_object_get(p->source, "k");
    TRY(read_numbers(r, "k", 1, err));
    p->k = fr_standard_k;
    p->ks = FR_STANDARD_K;
    if (!json_array_size(list)) return FR_OK;
    int64_t *k;
    p->ks = (int)json_array_size(list);
    TRY(TAKE(&p->memory, k, p->ks, err));
    for (int i = 0; i < p->ks; i++) k[i] = json_integer_value(json_array_get(list, (size_t)i));
    p->k = k;
    return FR_OK;
}

/* Checks entries that nothing else checks. */
static fr_status check_types(const parser *r, fr_error *err) {
    static const char *const flags[] = {"oracle", "minimal"};
    const json_t *name = json_object_get(r->p->source, "name");
    if (name && !json_is_string(name)) return wrong(r, "name", "a text", err);
    for (int i = 0; i < 2; i++) {
        const json_t *flag = json_object_get(r->p->source, flags[i]);
        if (flag && !json_is_boolean(flag)) return wrong(r, flags[i], "true or false", err);
    }
    return FR_OK;
}

/* Which test events are ranked, if not all: options of ranking. */
static fr_status read_sample(parser *r, fr_error *err) {
    static const char *const sample[] = {"sample-events", "sample-seed"};
    TRY(fr_options_defaults(fr_rank_options, &r->p->ranking, err));
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_object_get(r->p->source, sample[i]);
        char text[32];
        fr_error inner = {0};
        if (!value) continue;
        if (!json_is_integer(value)) return wrong(r, sample[i], "a number", err);
        (void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        if (fr_options_set(fr_rank_options, &r->p->ranking, sample[i], text, &inner))
            return fail(err, FR_EINPUT, "%s: %s", r->where, inner.message);
    }
    return FR_OK;
}

/* A list of windows for the entry `what`; on[1] is the diagnostic one. Without a list `on` stays as
 * it is. */
static fr_status read_windows(const parser *r, const char *key, const char *what, bool on[2],
                              fr_error *err) {
    const json_t *list = json_object_get(r->p->source, key), *one;
    size_t i;
    if (!list) return FR_OK;
    if (!json_object_get(r->p->source, what))
        return fail(err, FR_EINPUT, "%s: \"%s\" has no effect without \"%s\"", r->where, key, what);
    on[0] = on[1] = false;
    json_array_foreach(list, i, one) {
        const char *name = json_string_value(one);
        bool wide = name && !strcmp(name, "diagnostic");
        if (!name || (!wide && strcmp(name, "ranking")) || on[wide])
            return wrong(r, key, "a list of ranking, diagnostic or both", err);
        on[wide] = true;
    }
    return i ? FR_OK : wrong(r, key, "a list of ranking, diagnostic or both", err);
}

static fr_status read_document(parser *r, fr_error *err) {
    plan *p = r->p;
    const char *key;
    json_t *value;
    if (!json_is_object(p->source))
        return fail(err, FR_EINPUT, "%s: expected an object that describes a study", r->where);
    json_object_foreach(p->source, key, value) {
        if (fr_options_find(keys, key)) continue;
        const char *near = fr_options_nearest(keys, key);
        return fail(err, FR_EINPUT, "%s: unknown entry \"%s\"%s%s%s", r->where, key,
                    near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    }
    TRY(check_types(r, err));
    const char *name = json_string_value(json_object_get(p->source, "name"));
    p->name = name ? name : "study";
    TRY(fr_options_defaults(fr_protocol_options, &p->protocol, err));
    TRY(each_setting(r, "protocol", json_object_get(p->source, "protocol"), set_protocol,
                     &p->protocol, err));
    TRY(read_sample(r, err));
    const json_t *wide = json_object_get(p->source, "diagnostic-window");
    if (wide && (!json_is_integer(wide) || json_integer_value(wide) < 0))
        return wrong(r, "diagnostic-window", "a number of events", err);
    p->diagnostic_window = wide ? json_integer_value(wide) : 131072;
    p->membership_on[1] = p->projection_on[0] = true;
    TRY(read_windows(r, "membership-windows", "membership", p->membership_on, err));
    TRY(read_windows(r, "projection-windows", "projection", p->projection_on, err));
    both all = {0}; /* only to check that keys and values are known */
    TRY(common_settings(r, &all, err));
    TRY(check_models(r, "models", json_object_get(p->source, "models"), err));
    TRY(check_models(r, "projection", json_object_get(p->source, "projection"), err));
    TRY(check_models(r, "scaling", json_object_get(p->source, "scaling"), err));
    TRY(check_objectives(r, "objectives", err));
    TRY(check_objectives(r, "membership", err));
    TRY(check_externals(r, "ranks", err));
    TRY(check_externals(r, "scorers", err));
    TRY(read_numbers(r, "seeds", 0, err));
    if (json_array_size(json_object_get(p->source, "models")) &&
        !json_array_size(json_object_get(p->source, "seeds")))
        return wrong(r, "seeds", "at least one", err);
    const json_t *gain = json_object_get(p->source, "gain");
    TRY(check_models(r, "gain", gain, err));
    if (gain && json_array_size(gain) != 2) return wrong(r, "gain", "two models", err);
    for (size_t i = 0; i < 2; i++) p->gain[i] = json_string_value(json_array_get(gain, i));
    TRY(read_numbers(r, "granularity", 1, err));
    p->granularity = json_object_get(p->source, "granularity");
    if (p->granularity && p->protocol.order && !strcmp(p->protocol.order, "strict"))
        return fail(err, FR_EINPUT,
                    "%s: \"granularity\" is about batches, but the order of \"protocol\" is "
                    "strict, expected stream or batch:N",
                    r->where);
    TRY(grid_read(p, r->where, err));
    TRY(check_configs(r, err));
    TRY(read_k(r, err));
    TRY(read_data(r, err));
    return make_units(r, err);
}

static fr_status take(plan *p, json_t *source, const char *where, const char *folder,
                      const char *beside, fr_error *err) {
    parser r = {p, where, folder, beside};
    *p = (plan){.source = source};
    fr_status status = read_document(&r, err);
    if (status) plan_free(p);
    return status;
}

fr_status plan_read(plan *p, const char *path, const char *folder, fr_error *err) {
    json_t *source;
    *p = (plan){0};
    TRY(json_read(path, &source, err));
    const char *name = path_name(path);
    char *own = name == path ? strdup(".") : strndup(path, (size_t)(name - path - 1));
    fr_status status =
        own ? take(p, source, path, folder ? folder : own, own, err) : fail_memory(err, 0);
    if (!own) json_decref(source);
    free(own);
    return status;
}

fr_status plan_parse(plan *p, const char *text, const char *where, const char *folder,
                     fr_error *err) {
    json_error_t bad;
    *p = (plan){0};
    json_t *source = json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, &bad);
    if (!source && json_error_code(&bad) == json_error_out_of_memory) return fail_memory(err, 0);
    if (!source) return fail(err, FR_EINPUT, "%s:%d:%d: %s", where, bad.line, bad.column, bad.text);
    return take(p, source, where, folder, ".", err);
}

void plan_free(plan *p) {
    arena_free(&p->memory);
    json_decref(p->source);
    json_decref(p->grids);
    free(p->units.at);
    fr_options_free(fr_protocol_options, &p->protocol);
    fr_options_free(fr_rank_options, &p->ranking);
    *p = (plan){0};
}

const char *plan_objective(const plan_unit *unit) {
    return unit->trained ? plan_objective_name[unit->objective] : NULL;
}

const char *plan_window(const plan_unit *unit) {
    return unit->diagnostic ? "diagnostic" : "ranking";
}

const char *plan_preset(const char *name) {
    if (!strcmp(name, "paper")) return embedded_paper;
    if (!strcmp(name, "quick")) return embedded_quick;
    if (!strcmp(name, "demo")) return embedded_demo;
    if (!strcmp(name, "selected")) return embedded_selected;
    if (!strcmp(name, "architectures")) return embedded_architectures;
    return NULL;
}
