/* grid.c - see grid.h. */
#include "study/grid.h"

#include "base/json.h"
#include "base/text.h"
#include "train/select.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char settings_key[] = "model-settings";

/* ---- reading ---- */

int grid_count(const plan *p, const char *name) {
    size_t count = json_array_size(json_object_get(p->grids, name));
    return count ? (int)count : 1;
}

const json_t *grid_options(const plan *p, const char *name, int number) {
    return json_object_get(json_array_get(json_object_get(p->grids, name), (size_t)number),
                           "options");
}

const char *grid_label(const plan *p, const char *name, int number) {
    const char *label = json_string_value(
        json_object_get(json_array_get(json_object_get(p->grids, name), (size_t)number), "label"));
    return label ? label : "";
}

/* ---- making ---- */

/* Values of an option: a list of them, or one. */
static int64_t values_of(const json_t *value) {
    return json_is_array(value) ? (int64_t)json_array_size(value) : 1;
}

/* Configuration `number` of the options, as {"options": {...}, "label": "..."}. */
static fr_status make_one(const json_t *options, int64_t number, int64_t count, json_t **out,
                          fr_error *err) {
    const char *key;
    json_t *value, *chosen = json_object();
    text_buffer label = {0};
    fr_status status = chosen ? FR_OK : fail_memory(err, 0);
    json_object_foreach((json_t *)(uintptr_t)options, key, value) {
        int64_t values = values_of(value);
        count /= values;
        json_t *one =
            json_is_array(value) ? json_array_get(value, (size_t)(number / count % values)) : value;
        if (!status && json_object_set(chosen, key, one)) status = fail_memory(err, 0);
        if (values == 1) continue;
        char *text = json_is_string(one)
                         ? strdup(json_string_value(one))
                         : json_print(one, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        text_print(&label, "%s%s=%s", label.count ? "," : "", key, text ? text : "");
        if (!text) status = fail_memory(err, 0);
        free(text);
    }
    if (!status) status = text_status(&label, err);
    *out = status ? NULL
                  : json_pack("{s:O, s:o}", "options", chosen, "label",
                              json_text(label.at ? label.at : ""));
    if (!status && !*out) status = fail_memory(err, 0);
    json_decref(chosen);
    text_free(&label);
    return status;
}

/* How many combinations there are. */
static fr_status count_all(const char *where, const char *name, const json_t *options,
                           int64_t *count, fr_error *err) {
    const char *key;
    json_t *value, *item;
    size_t i;
    *count = 1;
    json_object_foreach((json_t *)(uintptr_t)options, key, value) {
        bool plain = !json_is_object(value) && values_of(value) > 0;
        json_array_foreach(value, i, item) plain &= !json_is_array(item) && !json_is_object(item);
        if (!plain)
            return fail(err, FR_EINPUT, "%s: \"%s\": %s: %s, expected a value or a list of values",
                        where, settings_key, name, key);
        *count *= values_of(value);
        if (*count > GRID_MOST)
            return fail(err, FR_EINPUT,
                        "%s: \"%s\": %s has more than %d configurations, expected fewer", where,
                        settings_key, name, GRID_MOST);
    }
    return FR_OK;
}

static fr_status read_model(plan *p, const char *where, const char *name, const json_t *options,
                            fr_error *err) {
    int64_t count;
    json_t *list, *one;
    if (!json_is_object(options))
        return fail(err, FR_EINPUT, "%s: \"%s\": %s, expected {\"option\": value, ...}", where,
                    settings_key, name);
    TRY(count_all(where, name, options, &count, err));
    list = json_array();
    if (json_object_set_new(p->grids, name, list)) return fail_memory(err, 0);
    for (int64_t i = 0; i < count; i++) {
        TRY(make_one(options, i, count, &one, err));
        if (json_array_append_new(list, one)) return fail_memory(err, 0);
        for (int k = 0; k < (int)i; k++) /* labels must differ */
            if (!strcmp(grid_label(p, name, k), grid_label(p, name, (int)i)))
                return fail(err, FR_EINPUT, "%s: \"%s\": %s has the configuration %s twice", where,
                            settings_key, name, grid_label(p, name, k));
    }
    return FR_OK;
}

static bool in_list(const json_t *list, const char *word) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text && !strcmp(text, word)) return true;
    }
    return false;
}

/* These need a model with a single configuration. */
static fr_status check_single(const plan *p, const char *where, const char *name, fr_error *err) {
    const json_t *membership = json_object_get(p->source, "membership");
    const char *key = in_list(json_object_get(p->source, "projection"), name) ? "projection"
                      : in_list(json_object_get(p->source, "scaling"), name)  ? "scaling"
                      : in_list(json_object_get(membership, "bce"), name) ||
                              in_list(json_object_get(membership, "bpr"), name)
                          ? "membership"
                          : NULL;
    if (!key) return FR_OK;
    return fail(err, FR_EINPUT,
                "%s: \"%s\" names %s, of which \"%s\" has %d configurations, "
                "expected one",
                where, key, name, settings_key, grid_count(p, name));
}

/* True if the data are not needed to know that there is no validation part. */
static bool has_no_validation(const fr_protocol *protocol) {
    const char *split = protocol->split;
    bool shares = !split || !strcmp(split, "share") || !strcmp(split, "quantile");
    return shares && !(protocol->val_share > 0);
}

static fr_status read_select(plan *p, const char *where, bool grid, fr_error *err) {
    const json_t *select = json_object_get(p->source, "select");
    fr_error inner = {0};
    if (select && !json_is_string(select))
        return fail(err, FR_EINPUT, "%s: \"select\" is not as it should be, expected a metric",
                    where);
    p->select = select ? json_string_value(select) : grid ? "mrr" : NULL;
    if (!p->select) return FR_OK;
    if (selection_check(p->select, &inner))
        return fail(err, FR_EINPUT, "%s: %s", where, inner.message);
    if (!has_no_validation(&p->protocol)) return FR_OK;
    return fail(err, FR_EINPUT,
                "%s: there is no validation part to select on, expected \"val-share\" in "
                "\"protocol\"",
                where);
}

fr_status grid_read(plan *p, const char *where, fr_error *err) {
    const json_t *map = json_object_get(p->source, settings_key);
    const char *given;
    json_t *options;
    bool grid = false;
    if (!(p->grids = json_object())) return fail_memory(err, 0);
    if (map && !json_is_object(map))
        return fail(err, FR_EINPUT,
                    "%s: \"%s\" is not as it should be, expected {\"model\": {\"option\": value}}",
                    where, settings_key);
    json_object_foreach((json_t *)(uintptr_t)map, given, options) {
        const fr_model *known = fr_model_find(given); /* as typed, or as tables show it */
        const char *name = known ? known->name : given;
        if (json_object_get(p->grids, name))
            return fail(err, FR_EINPUT, "%s: \"%s\" names %s twice", where, settings_key, name);
        if (!in_list(json_object_get(p->source, "models"), name))
            return fail(err, FR_EINPUT, "%s: \"%s\" names %s, which is not among \"models\"", where,
                        settings_key, name);
        TRY(read_model(p, where, name, options, err));
        if (grid_count(p, name) == 1) continue;
        grid = true;
        TRY(check_single(p, where, name, err));
    }
    return read_select(p, where, grid, err);
}
