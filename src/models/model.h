/* model.h - the interface of a model for training and ranking: parameters, forward pass, memory.
 *
 * A model scores candidates of events. The same forward pass serves training (two candidates per
 * event, recording) and plain all-entity scoring (every destination of one event, not recording).
 * Each kind of model is one file.
 *
 * Some models remember events (model_memory). The forward pass only reads the memory: in training,
 * as it was at the start of the step; in evaluation, as it was just before each event. `replay`
 * computes these states for a whole stretch of the stream in advance. This is possible because the
 * effect of an event on the memory does not depend on any score. So many threads can score events
 * in any order, scoring cannot change the memory, and each event is read exactly once.
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
    int32_t trained; /* number of training events at the start of the window; a saved memory
                        includes them */
    fr_model_settings settings;
    params params;
    int keep;          /* width of model_inner.keep, 0 = nothing */
    int shard_events;  /* of a shard in training, 0 = the trainer's default; shards should have
                          little  overhead, and each thread has one */
    void *own;         /* of the kind */
    struct lha *pairs; /* of models that remember pairs (lha.h) */
    /* For tests and benchmarks: the block size of the fast path, and the most bytes of a table by
     * event. 0 = the default; read when a scorer is opened. */
    int fast_block;
    size_t fast_tables;
    int fast_piece; /* candidates whose numbers are kept at a time */
} model;

/* Results of the forward pass besides the scores. */
typedef struct model_inner {
    tensor z;    /* [candidates, any] the vectors that enter the scoring head; may be left out
                    when recording */
    tensor keep; /* [candidates, model.keep] written to the memory if the candidate occurs */
} model_inner;

/* For models that remember. Everything except reading in the forward pass goes through here. */
typedef struct model_memory {
    /* Empties it: the start of an epoch. */
    void (*reset)(model *m);
    /* Reads the events of a training step, before the parameters change. The backward pass of
     * shared parts (model_sharing) may still be running, so they must not be read. */
    fr_status (*learn)(model *m, const int32_t *event, int count, const real *keep, fr_error *err);
    /* After the last step of an epoch: applies what is pending. May be NULL. */
    fr_status (*settle)(model *m, const fr_context *context, fr_error *err);
    /* Reads the events from `from` to the end of the ranked part, each once, in evaluation mode,
     * starting with the present memory. After that the forward pass sees, at each of them, the
     * memory after the events below its cut. The memory itself does not change. `from` is the first
     * test event after training, or 0 with an empty memory. */
    fr_status (*replay)(model *m, int32_t from, const fr_context *context, fr_error *err);
    /* A hash of the memory and of the replayed states. */
    uint64_t (*fingerprint)(const model *m);
    /* The memory as tensors of a checkpoint (MODELS 4.2, 5.3); the added arrays must stay valid
     * until the writer commits. */
    fr_status (*save)(const model *m, safetensors_writer *w, fr_error *err);
    fr_status (*load)(model *m, const safetensors *file, fr_error *err);
} model_memory;

/* For models whose events share much of their input. In training the shared part is computed once
 * per step, in parts, before the shards run, and its backward pass runs once after them. The result
 * equals that of `forward` except for the order of sums; it does not depend on threads. */
typedef struct model_sharing {
    /* Plans what a step reads, for shards of this many events and for this many parts. It depends
     * on the batch and the memory, not on the parameters, which may be changing. Memory: the tape's
     * step, which lasts as long as the training step; NULL if the tape has failed. */
    void *(*collect)(const model *m, tape *t, const model_batch *batch, int events, int parts);
    /* Computes a part. Its tape is kept. Parts are independent. */
    void (*make_part)(const model *m, tape *t, void *shared, int part);
    /* The forward pass of a shard, after all parts; the gradient of its inputs from them stays in
     * `shared`. */
    tensor (*forward)(const model *m, tape *t, void *shared, int shard, model_inner *inner);
    /* After the backward passes of all shards: sets the gradient of a part to their sums, added in
     * order. tape_backward of the part's tape does the rest. */
    void (*gather)(const model *m, void *shared, int part);
} model_sharing;

typedef struct model_kind {
    fr_model facts;
    bool shuffled; /* training events in a new random order each epoch, otherwise in stream order */
    /* Training runs the forward and backward pass for this many events at a time, so that the
     * numbers of a step stay in the cache; 0 = a whole shard. */
    int events_at_once;
    /* Declares parameters and makes `own`. */
    fr_status (*open)(model *m, fr_error *err);
    void (*close)(model *m);
    /* Logits [candidates, 1]; `inner` may be NULL. */
    tensor (*forward)(const model *m, tape *t, const model_batch *batch, model_inner *inner);
    const model_sharing *sharing; /* NULL = none; events_at_once is 0 then */
    /* A scorer through the model's fast path; the model must outlive it. A model that
     * remembers has been replayed from the first test event. */
    fr_status (*fast)(const model *m, int threads, fr_scorer_definition *out, fr_error *err);
    /* The matrices that z is multiplied by. All have the same number of rows; their columns, one
     * after the other, are those of z. Returns their number. For two-layer heads it is the first
     * layer. */
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

/* True if a model uses the option. */
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

/* A hash of everything that scoring must not change: parameters and memory. */
uint64_t model_fingerprint(const model *m);

/* Number of candidates per call of `part`: enough that the work per call does not matter. Smaller
 * catalogs are scored in whole rows. */
enum { MODEL_TILE = 8192 };
/* Number of candidates for which a fast path keeps numbers at a time: all, or few enough. */
int32_t model_piece(const model *m);

/* Scores through the plain forward pass, for any model: the reference of the fast path. */
fr_status model_plain(const model *m, int threads, fr_scorer_definition *out, fr_error *err);

#endif
