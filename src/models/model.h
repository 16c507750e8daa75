/* model.h - what training and ranking know of a model: its parameters, one forward, its memory.
 *
 * A model scores candidates of events: the same forward serves training (two candidates per event,
 * recording) and plain all-entity scoring (every destination of one event, not recording). A kind
 * is one file.
 *
 * Some models remember events (model_memory). Forward only reads the memory: while training, that
 * of the step's start; in evaluation, that just before each event, which `replay` lays out for a
 * whole stretch of the stream beforehand. It can, because what an event does to the memory does
 * not depend on any score. So events are scored in any order by many threads, nothing that scores
 * can change the memory, and each event has been taken in exactly once.
 */
#ifndef FR_MODELS_MODEL_H
#define FR_MODELS_MODEL_H

#include "base/context.h"
#include "data/window.h"
#include "nn/safetensors.h"
#include "nn/tape.h"

/* Events and, for each, candidate destinations. Arrays live as long as the step. */
typedef struct model_batch {
    int events;
    const int32_t *event;     /* [events] numbers in the window */
    const int32_t *from;      /* [events + 1] candidates of event i are from[i] .. from[i+1]-1 */
    const int32_t *candidate; /* [from[events]] destinations */
} model_batch;

typedef struct model {
    const struct model_kind *kind;
    const fr_window *w;
    int32_t trained; /* it learns from the first so many events of the window, which a memory that
                        was saved has taken in */
    fr_model_settings settings;
    params params;
    int keep;          /* width of model_inner.keep, 0 = nothing */
    int shard_events;  /* of a shard in training, 0 = as the trainer likes; what a shard costs
                          besides its events should be little, and threads have one each */
    void *own;         /* of the kind */
    struct lha *pairs; /* of models that remember pairs (lha.h) */
    /* For tests and benchmarks: how much goes through the layers of the fast path together, and the
     * bytes a table by event may take. 0 = as usual; read when a scorer is opened. */
    int fast_block;
    size_t fast_tables;
    int fast_piece; /* candidates whose numbers are kept at a time */
} model;

/* What forward shows besides the scores. */
typedef struct model_inner {
    tensor z;    /* [candidates, any] the vectors that enter the scoring head; may be left out
                    when recording */
    tensor keep; /* [candidates, model.keep] what the memory takes in if the candidate occurs */
} model_inner;

/* For models that remember. Everything but forward's reading goes through here. */
typedef struct model_memory {
    /* Empties it: the start of an epoch. */
    void (*reset)(model *m);
    /* Takes in the events of a training step, before the parameters move. What the step shares
     * (model_sharing) may still be going back meanwhile, so it must not be looked at. */
    fr_status (*learn)(model *m, const int32_t *event, int count, const real *keep, fr_error *err);
    /* After the last step of an epoch: applies what is pending. May be NULL. */
    fr_status (*settle)(model *m, const fr_context *context, fr_error *err);
    /* Takes in events from .. the last of the ranked part, each once, in evaluation mode, beginning
     * with the memory as it is; from then on forward sees, at each of them, the memory made by the
     * events below its cut. The memory itself stays. `from` is the first test event after training,
     * or 0 with an empty memory. */
    fr_status (*replay)(model *m, int32_t from, const fr_context *context, fr_error *err);
    /* A hash of the memory, and of what replay has laid out. */
    uint64_t (*fingerprint)(const model *m);
    /* The memory as tensors of a checkpoint (MODELS 4.2, 5.3); what is added must stay until the
     * writer commits. */
    fr_status (*save)(const model *m, safetensors_writer *w, fr_error *err);
    fr_status (*load)(model *m, const safetensors *file, fr_error *err);
} model_memory;

/* For models whose events read much in common: in training it is made once per step, in parts,
 * before the shards of the step run on it, and gone back through once after them. The result is the
 * same as that of `forward` but for the order of sums; it does not depend on threads. */
typedef struct model_sharing {
    /* What a step reads, for shards of so many events each and in so many parts: a function of the
     * batch and the memory, not of the parameters, which may be moving meanwhile. Memory: the
     * tape's step, which lasts as long as the training step; NULL if the tape has failed. */
    void *(*collect)(const model *m, tape *t, const model_batch *batch, int events, int parts);
    /* Makes a part. Its tape is kept. Parts do not see each other. */
    void (*make_part)(const model *m, tape *t, void *shared, int part);
    /* Forward of a shard, when all parts are made; the gradient of what it takes from them stays in
     * `shared`. */
    tensor (*forward)(const model *m, tape *t, void *shared, int shard, model_inner *inner);
    /* When all shards have gone back: sets the gradient of a part to their sums, added in order.
     * tape_backward of the part's tape does the rest. */
    void (*gather)(const model *m, void *shared, int part);
} model_sharing;

typedef struct model_kind {
    fr_model facts;
    bool shuffled; /* training events in a fresh random order each epoch, else in stream order */
    /* Training runs forward and back for so many events at a time, as many as leave a step's
     * numbers in the cache; 0 = for a whole shard. */
    int events_at_once;
    /* Declares parameters and makes `own`. */
    fr_status (*open)(model *m, fr_error *err);
    void (*close)(model *m);
    /* Logits [candidates, 1]; `inner` may be NULL. */
    tensor (*forward)(const model *m, tape *t, const model_batch *batch, model_inner *inner);
    const model_sharing *sharing; /* NULL = none; events_at_once is 0 then */
    /* A scorer through the model's fast path; it refers to the model, which must outlive it. A
     * model that remembers has been replayed from the first test event. */
    fr_status (*fast)(const model *m, int threads, fr_scorer_definition *out, fr_error *err);
    /* The matrices z is multiplied by, all with as many rows; their columns one after the other
     * are those of z. Returns how many there are. Of two-layer heads the first layer. */
    int (*head)(const model *m, int *weights /* [MODEL_HEADS] */);
    const model_memory *memory; /* NULL = remembers nothing */
} model_kind;

enum { MODEL_HEADS = 2, MODEL_MOST_LAYERS = 8 };

/* The models in the order of lists: X(name) is model_name, defined in its own file. */
/* clang-format off */
#define MODELS(X) \
    X(craft) \
    X(craft_r) \
    X(dygformer) \
    X(dygformer_lha) \
    X(tgn) \
    X(graphmixer) \
    X(patch) \
    X(patch_lha)
/* clang-format on */
#define DECLARE(name) extern const model_kind model_##name;
MODELS(DECLARE)
#undef DECLARE
extern const model_kind *const model_kinds[]; /* NULL at the end */

/* Does a model use the option? */
bool model_uses(const fr_model *facts, const char *key);
/* FR_EUSAGE: there is no such model; names the nearest. */
fr_status model_unknown(const char *name, fr_error *err);
/* A model with initial parameters from `seed` and an empty memory. */
fr_status model_open(model *m, const char *name, const fr_model_settings *settings,
                     const fr_window *w, int64_t seed, fr_error *err);
void model_close(model *m);

/* The values of a parameter, by number. */
static inline const real *model_value(const model *m, int number) {
    return m->params.value + m->params.list.at[number].offset;
}
/* to[edge-dim] = the features of an event, as many as the model reads */
static inline void model_features(const model *m, int32_t event, real *to) {
    int64_t width = m->settings.edge_dim;
    if (!width) return;
    const float *from = m->w->feature + event * width;
    for (int64_t k = 0; k < width; k++) to[k] = (real)from[k];
}

/* A hash of all that scoring must leave alone: parameters and memory. */
uint64_t model_fingerprint(const model *m);

/* Candidates of a part that a model is asked for: enough that what it does once per call does not
 * count. Smaller catalogs are scored in whole rows. */
enum { MODEL_TILE = 8192 };
/* Candidates for which a fast path keeps numbers of its own at a time: all, or few enough. */
int32_t model_piece(const model *m);

/* Scores through plain forward, for any model: the reference of the fast path. */
fr_status model_plain(const model *m, int threads, fr_scorer_definition *out, fr_error *err);

#endif
