/* registry.c - the list of models, opening one, and scoring through the plain forward pass. */
#include "models/model.h"

#include "base/fingerprint.h"
#include "base/options.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LISTED(name) &model_##name,
const model_kind *const model_kinds[] = {MODELS(LISTED) NULL};

const fr_model *fr_model_at(int index) {
    for (int i = 0; model_kinds[i]; i++)
        if (i == index) return &model_kinds[i]->facts;
    return NULL;
}

const fr_option fr_model_options[FR_OPTIONS_MAX] = {
    {"dim", FR_OPTION_INT, "64", "N", 1, 1024, offsetof(fr_model_settings, dim),
     "width of vectors"},
    {"heads", FR_OPTION_INT, "2", "N", 1, 64, offsetof(fr_model_settings, heads),
     "attention heads"},
    {"layers", FR_OPTION_INT, "2", "N", 1, 8, offsetof(fr_model_settings, layers), "blocks"},
    {"history", FR_OPTION_INT, "320", "N", 1, 100000, offsetof(fr_model_settings, history),
     "most recent events of a node that a model reads"},
    {"head-layers", FR_OPTION_INT, "2", "N", 1, 2, offsetof(fr_model_settings, head_layers),
     "craft: layers of the scoring head"},
    {"dropout", FR_OPTION_REAL, "0.1", "P", 0, 0.9, offsetof(fr_model_settings, dropout),
     "share of values set to 0 in training"},
    {"time-dim", FR_OPTION_INT, "32", "N", 1, 1024, offsetof(fr_model_settings, time_dim),
     "dygformer, tgn, graphmixer: width of the code of a time difference"},
    {"time-trainable", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_model_settings, time_trainable),
     "dygformer, tgn: learn the frequencies of that code"},
    {"edge-dim", FR_OPTION_INT, "-1", "N", -1, 1e6, offsetof(fr_model_settings, edge_dim),
     "dygformer, tgn, graphmixer: features per event; -1 = as many as there are, 0 = ignore them"},
    {"patch", FR_OPTION_INT, "10", "N", 1, 1000, offsetof(fr_model_settings, patch),
     "dygformer: events per patch"},
    {"gamma", FR_OPTION_REAL, "0.9", "SHARE", 0, 1, offsetof(fr_model_settings, gamma),
     "dygformer-lha: weight of a pair's newest state in its memory"},
    {"embedding", FR_OPTION_CHOICE, "attention", "attention|identity", 0, 0,
     offsetof(fr_model_settings, embedding),
     "tgn: a node by attention over its neighbours, or by its memory alone"},
    {"neighbors", FR_OPTION_INT, "10", "N", 1, 1000, offsetof(fr_model_settings, neighbors),
     "tgn: most recent events of a node that the attention reads"},
    {"tokens", FR_OPTION_INT, "30", "N", 2, 320, offsetof(fr_model_settings, tokens),
     "graphmixer: most recent events of a node that are mixed"},
    {"head-width", FR_OPTION_INT, "100", "N", 1, 1024, offsetof(fr_model_settings, head_width),
     "graphmixer: width of the scoring head"},
    {"pool", FR_OPTION_CHOICE, "slots", "slots|real", 0, 0, offsetof(fr_model_settings, pool),
     "graphmixer: divide by all tokens, or by the number of real ones"},
    {"attend", FR_OPTION_INT, "0", "N", 0, 100000, offsetof(fr_model_settings, attend),
     "craft: most recent events that the attention reads; repeats are counted over "
     "history; 0 = history"},
    {"attention-dropout", FR_OPTION_REAL, "-1", "P", -1, 0.9,
     offsetof(fr_model_settings, attention_dropout),
     "share of attention weights set to 0 in training; -1 = as dropout"},
    {"empty", FR_OPTION_CHOICE, "zero", "zero|pad", 0, 0, offsetof(fr_model_settings, empty),
     "craft: a source without events attends to nothing, or to identical empty slots"},
    {"padded", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_model_settings, padded),
     "graphmixer: slots without an event are rows of zeros that are mixed and averaged too"},
    {"identities", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_model_settings, identities),
     "dygformer, tgn: every node has its own learned vector (the other models always "
     "have it)"},
    {"newest", FR_OPTION_CHOICE, "first", "first|last", 0, 0, offsetof(fr_model_settings, newest),
     "graphmixer: the slot of the newest event"},
    {"message", FR_OPTION_CHOICE, "identity", "identity|mlp", 0, 0,
     offsetof(fr_model_settings, message),
     "tgn: the memory receives an event's message as it is, or through two dense layers"},
    {"clock", FR_OPTION_CHOICE, "window", "window|file", 0, 0, offsetof(fr_model_settings, clock),
     "tgn: times count from the first event of the window, or are those of the data"},
    {"write-every", FR_OPTION_INT, "1", "N", 1, 1e6, offsetof(fr_model_settings, write_every),
     "models with LHA: in ranking, the pair memory is written once per N events, so it "
     "may be older than the protocol allows; in training it is written once per batch"},
    {.offset = offsetof(fr_model_settings, attend), .help = "fr_model_settings"}};

bool model_uses(const fr_model *facts, const char *key) {
    size_t n = strlen(key);
    for (const char *at = facts->options; (at = strstr(at, key)); at += n)
        if ((at == facts->options || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

/* -1 becomes the width of the data. */
static fr_status settle_edges(model *m, fr_error *err) {
    int64_t width = m->w->stream->facts.feature_width, *wanted = &m->settings.edge_dim;
    if (!model_uses(&m->kind->facts, "edge-dim")) return FR_OK;
    if (*wanted < 0) *wanted = width;
    if (*wanted && *wanted != width)
        return fail(err, FR_EUSAGE, "edge-dim %lld, but the data has %lld features per event",
                    (long long)*wanted, (long long)width);
    return FR_OK;
}

const fr_model *fr_model_find(const char *text) {
    const fr_model *m = NULL;
    for (int i = 0; text && (m = fr_model_at(i)); i++)
        if (!strcasecmp(m->name, text) || !strcasecmp(m->label, text)) return m;
    return NULL;
}

static const char *name_at(const void *list, int index) {
    const fr_model *m = fr_model_at(index);
    (void)list;
    return m ? m->name : NULL;
}

fr_status model_unknown(const char *name, fr_error *err) {
    return text_unknown("model", name, name_at, NULL, "`fullrank models`", err);
}

fr_status model_open(model *m, const char *name, const fr_model_settings *settings,
                     const fr_window *w, int64_t seed, fr_error *err) {
    *m = (model){.w = w, .trained = w->train, .settings = *settings};
    const fr_model *facts = fr_model_find(name);
    for (int i = 0; facts && model_kinds[i]; i++)
        if (&model_kinds[i]->facts == facts) m->kind = model_kinds[i];
    if (!m->kind) return model_unknown(name, err);
    if (model_uses(&m->kind->facts, "layers") && settings->layers > MODEL_MOST_LAYERS)
        return fail(err, FR_EUSAGE, "layers %lld, expected at most %d", (long long)settings->layers,
                    MODEL_MOST_LAYERS);
    fr_status status = settle_edges(m, err);
    if (!status) status = m->kind->open(m, err);
    if (!status) status = params_ready(&m->params, seed, err);
    if (status) model_close(m);
    return status;
}

void model_close(model *m) {
    if (m->kind && m->own) m->kind->close(m);
    params_free(&m->params);
    *m = (model){0};
}

uint64_t model_fingerprint(const model *m) {
    uint64_t hash = fingerprint_add(0, m->params.value, m->params.count * sizeof(real));
    return m->kind->memory ? hash ^ m->kind->memory->fingerprint(m) : hash;
}

/* ---- plain scoring ---- */

typedef struct plain_scorer {
    const model *m;
    int threads;
    tape *tapes;        /* [threads] */
    int32_t *candidate; /* [destinations] all of them */
} plain_scorer;

/* Candidates at a time. Each needs much memory, and no score depends on other candidates. */
enum { PLAIN_BLOCK = 256 };

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int worker, float *scores, fr_error *err) {
    (void)count; /* one at a time */
    plain_scorer *s = state;
    tape *t = &s->tapes[worker];
    for (int32_t v = from; v < to; v += PLAIN_BLOCK) {
        int32_t some[] = {0, to - v < PLAIN_BLOCK ? to - v : PLAIN_BLOCK};
        model_batch batch = {1, &queries->event, some, s->candidate + v};
        tape_reset(t);
        tensor y = s->m->kind->forward(s->m, t, &batch, NULL);
        if (t->status) return fail(err, t->status, "%s", t->error.message);
        for (int32_t k = 0; k < some[1]; k++) scores[v - from + k] = (float)y.v[k];
    }
    return FR_OK;
}

static void close_plain(void *state) {
    plain_scorer *s = state;
    for (int i = 0; s->tapes && i < s->threads; i++) tape_free(&s->tapes[i]);
    free(s->tapes);
    free(s->candidate);
    free(s);
}

int32_t model_piece(const model *m) {
    int32_t most = m->fast_piece ? m->fast_piece : MODEL_TILE;
    return most < m->w->destinations ? most : m->w->destinations;
}

fr_status model_plain(const model *m, int threads, fr_scorer_definition *out, fr_error *err) {
    plain_scorer *s;
    TRY(ALLOCATE(s, 1, err));
    *s = (plain_scorer){.m = m, .threads = threads};
    *out = (fr_scorer_definition){.state = s,
                                  .workers = threads,
                                  .close = close_plain,
                                  .part = score_part,
                                  .tile = MODEL_TILE};
    TRY(ALLOCATE(s->tapes, threads, err));
    TRY(ALLOCATE(s->candidate, m->w->destinations, err));
    for (int i = 0; i < threads; i++) s->tapes[i].params = &m->params;
    for (int32_t v = 0; v < m->w->destinations; v++) s->candidate[v] = v;
    return FR_OK;
}
