/* oracle.c - see oracle.h. The generator's state is a function of the events observed, so replaying
 * the stored stream gives back the probabilities its events were drawn from. It has no fingerprint:
 * scoring sees the generator as const. */
#include "rank/oracle.h"

#include "data/synth.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct oracle {
    const fr_window *w;
    synth *world;
    double *p;         /* [destinations of the world]; scratch, one worker only */
    int32_t *known_as; /* [destinations of the window] its number in the world, -1 = not of it */
} oracle;

/* An event before the window, whose events are known to be good. */
static fr_status observe_row(oracle *o, int64_t row, fr_error *err) {
    const fr_stream *s = o->w->stream;
    int32_t source = s->source[row], destination = s->destination[row];
    if (source < 0 || source >= s->facts.sources || destination < 0 ||
        destination >= s->facts.destinations)
        return stream_bad_id(s, row, err);
    synth_event e = {.source = (int32_t)s->source_id[source],
                     .destination = (int32_t)s->destination_id[destination],
                     .time = s->time[row]};
    synth_observe(o->world, &e);
    return FR_OK;
}

static fr_status observe(void *state, const fr_event *event, fr_error *err) {
    (void)err;
    oracle *o = state;
    const fr_window *w = o->w;
    synth_event e = {.source = (int32_t)w->source_id[event->source],
                     .destination = (int32_t)w->destination_id[event->destination],
                     .time = w->time[event->event]};
    synth_observe(o->world, &e);
    return FR_OK;
}

static fr_status score(void *state, const fr_query *query, int count, int worker, float *scores,
                       fr_error *err) {
    (void)count, (void)worker, (void)err;
    const oracle *o = state;
    const fr_window *w = o->w;
    synth_probability(o->world, (int32_t)w->source_id[query->source], w->time[query->event], o->p);
    for (int32_t v = 0; v < w->destinations; v++) {
        double p = o->known_as[v] < 0 ? 0 : o->p[o->known_as[v]];
        scores[v] = p > 0 ? (float)log(p) : -FLT_MAX;
    }
    return FR_OK;
}

static void close_oracle(void *state) {
    oracle *o = state;
    synth_close(o->world);
    free(o->p);
    free(o->known_as);
    free(o);
}

fr_status oracle_open(const fr_window *w, const fr_context *context, fr_scorer_definition *out,
                      fr_error *err) {
    const fr_stream *s = w->stream;
    if (!s->synth)
        return fail(err, FR_EINPUT, "%s: the oracle scorer needs a stream made by `data synth`",
                    s->name);
    TRY(window_check_labels(w, "the oracle", err));
    synth_parameters parameters;
    TRY(synth_from_json(s->synth, &parameters, err));
    oracle *o;
    TRY(ALLOCATE(o, 1, err));
    o->w = w;
    *out = (fr_scorer_definition){
        .state = o, .score = score, .observe = observe, .close = close_oracle};
    TRY(synth_open(&parameters, &o->world, err));
    TRY(ALLOCATE(o->p, parameters.destinations, err));
    TRY(ALLOCATE(o->known_as, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++)
        o->known_as[v] =
            w->destination_id[v] < parameters.destinations ? (int32_t)w->destination_id[v] : -1;
    if (s->source_id[s->facts.sources - 1] >= parameters.sources ||
        s->destination_id[s->facts.destinations - 1] >= parameters.destinations)
        return fail(err, FR_EINPUT, "%s: ids that its generator cannot have drawn", s->name);
    for (int64_t row = 0; row < w->first; row++) {
        TRY(observe_row(o, row, err));
        if ((row & 65535) == 0) TRY(context_check(context, err));
    }
    return FR_OK;
}
