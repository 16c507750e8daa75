/* checkpoint.c - see checkpoint.h. */
#include "models/checkpoint.h"

#include "base/options.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char VOCAB_NODE[] = "vocab.node"; /* of models with one space of nodes (MODELS 1.1) */

/* ---- writing ---- */

int checkpoint_entries(const model *m, const fr_training *t, checkpoint_entry *out) {
    const fr_window *w = m->w;
    const struct {
        const char *key, *value;
    } words[] = {{"model", m->kind->facts.name},
                 {"order", window_training_order(w)},
                 {"loss", t->objective == FR_OBJECTIVE_BPR ? "bpr" : "bce"},
                 {"data_sha256", w->stream->sha256},
                 {"catalog_sha256", w->catalog_sha256}};
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"window", w->known_events},
                   {"train_fraction", w->protocol.train_share},
                   {"lr", t->rate},
                   {"batch", (double)t->batch_size},
                   {"seed", (double)t->seed},
                   {"deterministic", t->deterministic},
                   {"n_src", w->sources},
                   {"n_dst", w->destinations},
                   {"n_catalog", w->catalog_size},
                   {"ntrain", m->trained}};
    int count = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++, count++) {
        options_spell(words[i].key, out[count].key, sizeof out[count].key);
        (void)snprintf(out[count].value, sizeof out[count].value, "%s", words[i].value);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++, count++) {
        options_spell(numbers[i].key, out[count].key, sizeof out[count].key);
        (void)text_real(numbers[i].value, false, out[count].value, sizeof out[count].value);
    }
    for (const fr_option *o = fr_model_options; o->key; o++) {
        if (!model_uses(&m->kind->facts, o->key)) continue;
        if (options_later_default(fr_model_options, o, &m->settings)) continue;
        options_spell(o->key, out[count].key, sizeof out[count].key);
        if (o->type == FR_OPTION_FLAG) /* 0 or 1 in checkpoints (MODELS 1.9) */
            (void)snprintf(out[count].value, sizeof out[count].value, "%d",
                           *(const bool *)((const char *)&m->settings + o->offset));
        else
            fr_options_text(o, &m->settings, out[count].value, sizeof out[count].value);
        count++;
    }
    for (const fr_option *o = fr_options_find(fr_training_options, "weight-decay"); o->key; o++) {
        if (options_later_default(fr_training_options, o, t)) continue;
        options_spell(o->key, out[count].key, sizeof out[count].key);
        fr_options_text(o, t, out[count].value, sizeof out[count].value);
        count++;
    }
    return count;
}

static fr_status add_metadata(const model *m, const fr_training *t, int64_t done,
                              safetensors_writer *w, fr_error *err) {
    checkpoint_entry entry[CHECKPOINT_ENTRIES];
    int count = checkpoint_entries(m, t, entry);
    for (int i = 0; i < count; i++)
        TRY(safetensors_writer_metadata(w, entry[i].key, entry[i].value, err));
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"epochs", done}, {"epochs_done", done}, {"epochs_asked", t->epochs}};
    for (int i = 0; i < 3; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%lld", (long long)numbers[i].value);
        TRY(safetensors_writer_metadata(w, numbers[i].key, text, err));
    }
    return safetensors_writer_metadata(w, "fullrank", fr_version_get().version, err);
}

fr_status checkpoint_add(const model *m, const fr_training *training, int64_t done,
                         safetensors_writer *w, fr_error *err) {
    for (size_t i = 0; i < m->params.list.count; i++) {
        const param *p = &m->params.list.at[i];
        int64_t shape[] = {p->rows, p->cols};
        TRY(safetensors_writer_add(w, p->name, ST_REAL, p->dims, shape + (p->dims == 1),
                                   m->params.value + p->offset, err));
    }
    if (m->kind->memory) TRY(m->kind->memory->save(m, w, err));
    int64_t sources = m->w->sources, destinations = m->w->destinations;
    TRY(safetensors_writer_add(w, "vocab.src", ST_I64, 1, &sources, m->w->source_id, err));
    TRY(safetensors_writer_add(w, "vocab.dst", ST_I64, 1, &destinations, m->w->destination_id,
                               err));
    if (m->w->node_id) {
        int64_t nodes = m->w->nodes;
        TRY(safetensors_writer_add(w, VOCAB_NODE, ST_I64, 1, &nodes, m->w->node_id, err));
    }
    return add_metadata(m, training, done, w, err);
}

fr_status checkpoint_save(const model *m, const fr_training *training, int64_t done,
                          const char *path, fr_error *err) {
    safetensors_writer w = {0};
    fr_status status = safetensors_writer_open(&w, path, err);
    if (!status) status = checkpoint_add(m, training, done, &w, err);
    if (!status) status = safetensors_writer_commit(&w, err);
    safetensors_writer_discard(&w);
    return status;
}

/* ---- reading ---- */

static fr_status read_settings(const safetensors *file, fr_model_settings *out, fr_error *err) {
    TRY(fr_options_defaults(fr_model_options, out, err));
    for (const fr_option *o = fr_model_options; o->key; o++) {
        char key[64];
        options_spell(o->key, key, sizeof key);
        const char *value = safetensors_metadata(file, key);
        fr_error inner = {0};
        if (value && fr_options_set(fr_model_options, out, o->key, value, &inner))
            return fail(err, FR_EINPUT, "%s: %s", file->path, inner.message);
    }
    return FR_OK;
}

static fr_status check_ids(const safetensors *file, const char *name, const int64_t *id,
                           int32_t count, fr_error *err) {
    int64_t shape = count;
    const void *data;
    TRY(safetensors_require(file, name, ST_I64, 1, &shape, &data, err));
    for (int32_t k = 0; k < count; k++)
        if (((const int64_t *)data)[k] != id[k])
            return fail(err, FR_EINPUT,
                        "%s: %s[%d] is %lld, but the window has id %lld: trained on other data",
                        file->path, name, k, (long long)((const int64_t *)data)[k],
                        (long long)id[k]);
    return FR_OK;
}

/* A model of the same window was trained on its training part or, to rank test events, on training
 * and validation. */
static fr_status check_parts(const safetensors *file, const fr_window *w, int32_t *trained,
                             fr_error *err) {
    const char *events = safetensors_metadata(file, "window");
    const char *train = safetensors_metadata(file, "ntrain");
    if (!events || strtoll(events, NULL, 10) != w->known_events)
        return fail(err, FR_EINPUT,
                    "%s: trained with window %s, but this window has %d; expected option window as "
                    "in its training",
                    file->path, events ? events : "(none)", w->known_events);
    long long count = train ? strtoll(train, NULL, 10) : -1;
    *trained = (int32_t)count;
    if (count == w->train || (count == w->from && w->protocol.part == FR_PART_TEST)) return FR_OK;
    return fail(
        err, FR_EINPUT,
        "%s: trained with ntrain %s, but this window has %d; expected option train-share as "
        "in its training",
        file->path, train ? train : "(none)", w->train);
}

/* Whether models have one space of nodes, or one for each role. */
static fr_status check_nodes(const safetensors *file, const fr_window *w, fr_error *err) {
    bool shared = safetensors_find(file, VOCAB_NODE) != NULL;
    if (shared && w->node_id) return check_ids(file, VOCAB_NODE, w->node_id, w->nodes, err);
    if (shared == (w->node_id != NULL)) return FR_OK;
    return fail(err, FR_EINPUT,
                "%s: trained with sources and destinations that %s, but in this data they %s; "
                "expected data imported as in its training (option shared-ids)",
                file->path, shared ? "share ids" : "are apart",
                w->node_id ? "share ids" : "are apart");
}

static fr_status check_window(const safetensors *file, const fr_window *w, int32_t *trained,
                              fr_error *err) {
    TRY(window_check_labels(w, file->path, err));
    TRY(check_parts(file, w, trained, err));
    const char *order = safetensors_metadata(file, "order");
    const char *here = window_training_order(w);
    if (!order || strcmp(order, here))
        return fail(err, FR_EINPUT,
                    "%s: trained with order %s, but this window has %s; expected option order as "
                    "in its training",
                    file->path, order ? order : "(none)", here);
    TRY(check_nodes(file, w, err));
    TRY(check_ids(file, "vocab.src", w->source_id, w->sources, err));
    TRY(check_ids(file, "vocab.dst", w->destination_id, w->destinations, err));
    /* The same ids with another order of events would pass the checks above, but test events could
     * have been trained on. */
    const char *data = safetensors_metadata(file, "data_sha256");
    if (!data || strcmp(data, w->stream->sha256))
        return fail(err, FR_EINPUT, "%s: trained on data with sha256 %.12s, but this has %.12s",
                    file->path, data ? data : "(none)", w->stream->sha256);
    return FR_OK;
}

fr_status checkpoint_take(model *m, const safetensors *file, const fr_window *w, fr_error *err) {
    *m = (model){0};
    fr_model_settings settings;
    const char *name = safetensors_metadata(file, "model");
    if (!name)
        return fail(err, FR_EINPUT, "%s: no metadata \"model\", expected a fullrank checkpoint",
                    file->path);
    TRY(read_settings(file, &settings, err));
    int32_t trained = 0;
    TRY(check_window(file, w, &trained, err));
    TRY(model_open(m, name, &settings, w, 0, err));
    m->trained = trained;
    fr_status status = FR_OK;
    for (size_t i = 0; !status && i < m->params.list.count; i++) {
        const param *p = &m->params.list.at[i];
        int64_t shape[] = {p->rows, p->cols};
        const void *data;
        status = safetensors_require(file, p->name, ST_REAL, p->dims, shape + (p->dims == 1), &data,
                                     err);
        size_t count = (size_t)p->rows * (size_t)p->cols;
        if (!status) memcpy(m->params.value + p->offset, data, count * sizeof(real));
        for (size_t k = p->offset; !status && k < p->offset + count; k++)
            if (!isfinite(m->params.value[k]))
                status = fail(err, FR_EINPUT, "%s: %s has the value %g, expected finite numbers",
                              file->path, p->name, (double)m->params.value[k]);
    }
    if (!status && m->kind->memory) status = m->kind->memory->load(m, file, err);
    if (status) model_close(m);
    return status;
}

fr_status checkpoint_load(model *m, const char *path, const fr_window *w, fr_error *err) {
    safetensors file = {0};
    *m = (model){0};
    fr_status status = safetensors_open(path, &file, err);
    if (!status) status = checkpoint_take(m, &file, w, err);
    safetensors_close(&file);
    return status;
}
