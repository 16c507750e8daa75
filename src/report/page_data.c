/* page_data.c - the rank records of a study, small enough for a page.
 *
 * All runs of a data set rank the same events, so what belongs to the event is stored once; a run
 * adds four counts per covered event: above and tied, among destinations the source has met and
 * among the others. Column after column of variable-length integers, deflated: about two bytes per
 * event and run as text in base64. A script can compute every uniform pool of PROTOCOL 6 from
 * these, per event.
 *
 * Layout of a data set, in this order (E events, C of them covered; v = LEB128, z = zigzag v):
 *   flags u8[E]: 1 covered, 2 repeated     event z[E], difference to the one before
 *   source z[E]  destination z[E]          time f64[E], little-endian
 *   pair_count v[E]                        gap f64[repeated events]
 *   n v[C]  seen_n v[C]
 *   per model, per seed: seen_above v[C]  seen_tied v[C]  unseen_above v[C]  unseen_tied v[C]
 *
 * Samplers that need more of a record (masses, training counts) are computed here, for the K of a
 * grid: per model "grid": {SAMPLER: [[mrr, sd over seeds], ...]}.
 */
#include "base/json.h"
#include "report/html.h"
#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Events times runs a page may hold; beyond that a set keeps its first seeds, or nothing. */
enum { MOST_RANKS = 2500000 };

/* ---- columns ---- */

static void put_varint(text_buffer *out, uint64_t value) {
    do {
        char byte = (char)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        text_put_bytes(out, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_zigzag(text_buffer *out, int64_t value) {
    put_varint(out, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static void put_real(text_buffer *out, double value) {
    text_put_bytes(out, (const char *)&value, sizeof value); /* little-endian, as .npy is here */
}

static void put_events(text_buffer *out, const fr_record *r, int64_t count) {
    int64_t before = 0;
    for (int64_t i = 0; i < count; i++) {
        char flags = (char)((r[i].covered ? 1 : 0) | (r[i].repeated ? 2 : 0));
        text_put_bytes(out, &flags, 1);
    }
    for (int64_t i = 0; i < count; i++) {
        put_zigzag(out, r[i].event - before);
        before = r[i].event;
    }
    for (int64_t i = 0; i < count; i++) put_zigzag(out, r[i].source);
    for (int64_t i = 0; i < count; i++) put_zigzag(out, r[i].destination);
    for (int64_t i = 0; i < count; i++) put_real(out, r[i].time);
    for (int64_t i = 0; i < count; i++) put_varint(out, (uint64_t)r[i].pair_count);
    for (int64_t i = 0; i < count; i++)
        if (r[i].repeated) put_real(out, r[i].gap);
    for (int64_t i = 0; i < count; i++)
        if (r[i].covered) put_varint(out, (uint64_t)r[i].n);
    for (int64_t i = 0; i < count; i++)
        if (r[i].covered) put_varint(out, (uint64_t)r[i].seen_n);
}

static void put_ranks(text_buffer *out, const fr_record *r, int64_t count) {
    for (int column = 0; column < 4; column++)
        for (int64_t i = 0; i < count; i++) {
            if (!r[i].covered) continue;
            int32_t value[] = {r[i].seen_above, r[i].seen_tied, r[i].above - r[i].seen_above,
                               r[i].tied - r[i].seen_tied};
            put_varint(out, (uint64_t)value[column]);
        }
}

static fr_status same_events(const result *run, const result *first, fr_error *err) {
    fr_ranking_facts a = fr_ranking_get(run->ranking), b = fr_ranking_get(first->ranking);
    bool same = a.count == b.count;
    for (int64_t i = 0; same && i < a.count; i++) {
        const fr_record *x = &a.records[i], *y = &b.records[i];
        same = x->event == y->event && x->covered == y->covered && x->n == y->n &&
               x->seen_n == y->seen_n;
    }
    return same ? FR_OK
                : fail(err, FR_EINPUT, "%s and %s rank different events", run->key, first->key);
}

/* Deflated and in base64, as a JSON string; the caller frees it. */
static fr_status pack(const text_buffer *columns, json_t **out, fr_error *err) {
    uLongf size = compressBound((uLong)columns->count);
    Bytef *packed;
    text_buffer text = {0};
    TRY(text_status(columns, err));
    TRY(ALLOCATE(packed, size, err));
    fr_status status = FR_OK;
    if (compress2(packed, &size, (const Bytef *)columns->at, (uLong)columns->count, 9) != Z_OK)
        status = fail_memory(err, size);
    if (!status) html_base64(&text, packed, size);
    if (!status) status = text_status(&text, err);
    *out = status ? NULL : json_stringn(text.at ? text.at : "", text.count);
    if (!status && !*out) status = fail_memory(err, text.count);
    text_free(&text);
    free(packed);
    return status;
}

/* ---- data sets ---- */

/* The seeds of each model that a page has room for: all, the first, none. */
enum { SEEDS_NONE, SEEDS_FIRST, SEEDS_ALL };

static int runs_shown(const model_numbers *m, int seeds) {
    return seeds == SEEDS_ALL ? m->runs : seeds == SEEDS_FIRST;
}

static int64_t ranks_of(const data_numbers *d, int seeds) {
    int64_t runs = 0;
    for (int i = 0; i < d->models; i++) runs += runs_shown(&d->model[i], seeds);
    return runs * fr_ranking_get(d->model[0].run[0].run->ranking).count;
}

/* ---- samplers on a grid ---- */

static const char *const grid_samplers[] = {"popularity", "tgb-hist"};
enum { GRID_SAMPLERS = sizeof grid_samplers / sizeof *grid_samplers };
static const int64_t grid_k[] = {1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000};
enum { GRID_K = sizeof grid_k / sizeof *grid_k };

/* Records from counts may have neither masses nor training counts. */
static bool has_sampler(const model_numbers *m, const char *sampler) {
    for (int r = 0; r < m->runs; r++) {
        fr_ranking_facts f = fr_ranking_get(m->run[r].run->ranking);
        for (int64_t i = 0; i < f.count; i++) {
            const fr_record *e = &f.records[i];
            bool told = strcmp(sampler, "popularity") ? e->train_above >= 0 : e->pop_above >= 0;
            if (e->covered && !told) return false;
        }
    }
    return true;
}

static json_t *number_json(double value) { return isnan(value) ? json_null() : json_real(value); }

/* [[mrr, sd], ...] of a sampler over the grid, by the seeds of a model; NULL if the records
 * lack the counts. */
static fr_status grid_json(const model_numbers *m, const char *sampler, const fr_context *context,
                           json_t **out, fr_error *err) {
    double sum[GRID_K] = {0}, squares[GRID_K] = {0};
    *out = NULL;
    if (!has_sampler(m, sampler)) return FR_OK;
    for (int r = 0; r < m->runs; r++) {
        fr_ranking_facts f = fr_ranking_get(m->run[r].run->ranking);
        fr_expected e[GRID_K];
        fr_sampling s = {.sampler = sampler, .oov = f.oov, .k = grid_k, .k_count = GRID_K};
        TRY(fr_expected_compute(f.records, f.count, &s, context, e, err));
        for (int i = 0; i < GRID_K; i++) {
            double before = r ? sum[i] / r : 0, apart = e[i].mrr - before;
            sum[i] += e[i].mrr;
            squares[i] += apart * (e[i].mrr - sum[i] / (r + 1)); /* Welford */
        }
    }
    json_t *list = json_array();
    for (int i = 0; list && i < GRID_K; i++) {
        double mean = sum[i] / m->runs, sd = m->runs > 1 ? sqrt(squares[i] / (m->runs - 1)) : NAN;
        json_t *pair = json_pack("[o, o]", number_json(mean), number_json(sd));
        if (!pair || json_array_append_new(list, pair)) {
            json_decref(list);
            list = NULL;
        }
    }
    *out = list;
    return list ? FR_OK : fail_memory(err, 0);
}

static fr_status put_grids(json_t *model, const model_numbers *m, const fr_context *context,
                           fr_error *err) {
    json_t *grid = json_object();
    if (!grid || json_object_set_new(model, "grid", grid)) return fail_memory(err, 0);
    for (int s = 0; s < GRID_SAMPLERS; s++) {
        json_t *list;
        TRY(grid_json(m, grid_samplers[s], context, &list, err));
        if (list && json_object_set_new(grid, grid_samplers[s], list)) return fail_memory(err, 0);
    }
    return FR_OK;
}

/* ---- models ---- */

static fr_status model_json(const data_numbers *d, const model_numbers *m, int seeds,
                            text_buffer *columns, json_t **out, fr_error *err) {
    const char *kind = summary_is_oracle(m) ? "oracle"
                       : m->external        ? "external"
                       : m->objective       ? "trained"
                                            : "baseline";
    json_t *list = json_array();
    *out = json_pack("{s:o, s:o, s:s, s:s*, s:o}", "name", json_text(m->name), "label",
                     json_text(m->label), "kind", kind, "objective", m->objective, "seeds", list);
    if (!*out) return fail_memory(err, 0);
    for (int i = 0; i < runs_shown(m, seeds); i++) {
        fr_ranking_facts f = fr_ranking_get(m->run[i].run->ranking);
        TRY(same_events(m->run[i].run, d->model[0].run[0].run, err));
        if (json_array_append_new(list, json_integer(m->run[i].run->seed)))
            return fail_memory(err, 0);
        put_ranks(columns, f.records, f.count);
    }
    return FR_OK;
}

static fr_status data_json(const data_numbers *d, int64_t *room, const fr_context *context,
                           json_t **out, fr_error *err) {
    static const char *const kept[] = {"none", "first", "all"};
    fr_ranking_facts f = fr_ranking_get(d->model[0].run[0].run->ranking);
    text_buffer columns = {0};
    json_t *models = json_array(), *packed = NULL;
    int seeds = SEEDS_ALL;
    while (seeds && ranks_of(d, seeds) > *room) seeds--;
    *room -= ranks_of(d, seeds);
    *out = json_pack("{s:o, s:I, s:b, s:s, s:o}", "name", json_text(d->name), "events",
                     (json_int_t)f.count, "zero", f.oov == FR_OOV_ZERO, "seeds", kept[seeds],
                     "models", models);
    fr_status status = *out ? FR_OK : fail_memory(err, 0);
    if (!status && seeds) put_events(&columns, f.records, f.count);
    for (int i = 0; !status && i < d->models; i++) {
        json_t *model;
        status = model_json(d, &d->model[i], seeds, &columns, &model, err);
        if (!status) status = put_grids(model, &d->model[i], context, err);
        if (model && json_array_append_new(models, model) && !status) status = fail_memory(err, 0);
    }
    if (!status && seeds) status = pack(&columns, &packed, err);
    if (packed && json_object_set_new(*out, "columns", packed)) status = fail_memory(err, 0);
    text_free(&columns);
    return status;
}

fr_status page_data(const summary *s, const fr_context *context, text_buffer *out, fr_error *err) {
    json_t *list = json_array(), *k = json_array(), *grid = json_array();
    json_t *root = json_pack("{s:o, s:o, s:o}", "data", list, "k", k, "grid", grid);
    fr_status status = root ? FR_OK : fail_memory(err, 0);
    for (int i = 0; !status && i < GRID_K; i++)
        if (json_array_append_new(grid, json_integer((json_int_t)grid_k[i])))
            status = fail_memory(err, 0);
    int64_t room = MOST_RANKS;
    for (int i = 0; !status && i < s->ks; i++)
        if (json_array_append_new(k, json_integer((json_int_t)s->k[i])))
            status = fail_memory(err, 0);
    for (int i = 0; !status && i < s->datas; i++) {
        json_t *data;
        status = data_json(&s->data[i], &room, context, &data, err);
        if (data && json_array_append_new(list, data) && !status) status = fail_memory(err, 0);
    }
    char *text = status ? NULL : json_print(root, JSON_COMPACT);
    if (!status && !text) status = fail_memory(err, 0);
    /* A name may contain "</script>", so < is escaped in the JSON. */
    for (const char *at = text; at && *at;) {
        size_t plain = strcspn(at, "<");
        text_put_bytes(out, at, plain);
        at += plain;
        if (*at) text_put(out, "\\u003c");
        at += *at != 0;
    }
    free(text);
    json_decref(root);
    return status ? status : text_status(out, err);
}
