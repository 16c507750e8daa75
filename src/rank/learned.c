/* learned.c - see learned.h. */
#include "rank/learned.h"

#include "base/context.h"
#include "models/checkpoint.h"

#include <stdlib.h>

/* The model, and the scorer of its fast path that refers to it. */
typedef struct learned {
    model m;
    fr_scorer fast;
} learned;

static fr_status score(void *state, const fr_query *query, int worker, float *scores,
                       fr_error *err) {
    learned *l = state;
    return l->fast.score(l->fast.state, query, worker, scores, err);
}

static void close_learned(void *state) {
    learned *l = state;
    if (l->fast.close && l->fast.state) l->fast.close(l->fast.state);
    model_close(&l->m);
    free(l);
}

fr_status learned_open(const char *path, const fr_window *w, const fr_context *context,
                       fr_scorer *out, fr_error *err) {
    learned *l;
    TRY(ALLOCATE(l, 1, err));
    *out = (fr_scorer){.state = l, .score = score, .close = close_learned};
    TRY(checkpoint_load(&l->m, path, w, err));
    if (l->m.kind->memory) TRY(l->m.kind->memory->replay(&l->m, w->train, context, err));
    return l->m.kind->fast(&l->m, context_threads(context), &l->fast, err);
}

const model *learned_model(const fr_scorer *scorer) {
    const learned *l = scorer->close == close_learned ? scorer->state : NULL;
    return l ? &l->m : NULL;
}

fr_status learned_plain(const fr_scorer *scorer, int threads, fr_scorer *out, fr_error *err) {
    const model *m = learned_model(scorer);
    if (!m)
        return fail(err, FR_EUSAGE, "%s has one way of scoring only: nothing to verify",
                    scorer->name);
    return model_plain(m, threads, out, err);
}
