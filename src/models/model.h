/* model.h - what training and ranking know of a model: its parameters and one forward.
 *
 * A model scores candidates of events: the same forward serves training (two candidates per event,
 * recording) and plain all-entity scoring (every destination of one event, not recording). A kind
 * is one file.
 */
#ifndef FR_MODELS_MODEL_H
#define FR_MODELS_MODEL_H

#include "data/window.h"
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
    fr_model_settings settings;
    params params;
    void *own; /* of the kind */
} model;

typedef struct model_kind {
    fr_model facts;
    bool shuffled; /* training events in a fresh random order each epoch, else in stream order */
    /* Declares parameters and makes `own`. */
    fr_status (*open)(model *m, fr_error *err);
    void (*close)(model *m);
    /* Logits [candidates, 1]. If z is not NULL it gets the vectors that enter the scoring head. */
    tensor (*forward)(const model *m, tape *t, const model_batch *batch, tensor *z);
    /* A scorer through the model's fast path; it refers to the model, which must outlive it. */
    fr_status (*fast)(const model *m, int threads, fr_scorer *out, fr_error *err);
} model_kind;

extern const model_kind *const model_kinds[]; /* NULL at the end */
extern const model_kind model_craft, model_craft_r;

/* A model with initial parameters from `seed`. */
fr_status model_open(model *m, const char *name, const fr_model_settings *settings,
                     const fr_window *w, int64_t seed, fr_error *err);
void model_close(model *m);

/* Scores through plain forward, for any model: the reference of the fast path. */
fr_status model_plain(const model *m, int threads, fr_scorer *out, fr_error *err);

#endif
