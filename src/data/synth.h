/* synth.h - synthetic interaction streams whose conditional distribution is known.
 *
 * A stream is drawn event by event from p(v | u, t, history), a mixture of the source's own past,
 * drifting popularity and transitions from the source's last destination (formulas: docs/synth.md).
 * The program can compute p of every destination before every event, so the true distribution of a
 * stored stream is known: the `oracle` scorer replays it with synth_observe and ranks by
 * synth_probability.
 *
 * Invariant: the state is a function of the parameters and the observed events only. synth_next is
 * a draw followed by synth_observe, so replaying a stream gives the same bits.
 */
#ifndef FR_DATA_SYNTH_H
#define FR_DATA_SYNTH_H

#include "base/status.h"

#include <jansson.h>

/* Everything a stream depends on; synth_options explains each field and gives its range. */
typedef struct synth_parameters {
    int64_t seed;
    int64_t events, sources, destinations;
    /* Destinations. */
    double repeat, repeat_spread;
    double recency;
    int64_t memory;
    double follow;
    int64_t successors, reach;
    double successor_skew;
    double popularity_skew;
    double drift, drift_memory;
    /* Sources. */
    double activity_skew, cohort;
    double burst;
    int64_t burst_reach;
    /* Times. */
    double duration, gap_shape, daily;
} synth_parameters;

extern const fr_option synth_options[];

typedef struct synth_preset {
    const char *name, *help;
    synth_parameters parameters;
} synth_preset;

/* Ends with a NULL name. */
extern const synth_preset synth_presets[];
/* Copies the parameters of a preset; an unknown name is FR_EUSAGE and lists the known ones. */
fr_status synth_preset_find(const char *name, synth_parameters *out, fr_error *err);

/* Adds one entry per parameter to `object`; synth_from_json gives back the same bits, also from a
 * file of json_write. It needs every parameter, with the right type and range, and ignores other
 * entries. */
fr_status synth_to_json(const synth_parameters *parameters, json_t *object, fr_error *err);
fr_status synth_from_json(const json_t *object, synth_parameters *out, fr_error *err);

/* The parameters of the settings: those of the preset, with changes. */
fr_status synth_find_parameters(const fr_synth *settings, synth_parameters *out, fr_error *err);

typedef struct synth_event {
    int32_t source, destination;
    double time; /* whole seconds, never smaller than the one before */
} synth_event;

typedef struct synth synth;

/* The state before the first event. Takes about 4 * sources * memory + 2048 * destinations bytes.
 */
fr_status synth_open(const synth_parameters *parameters, synth **out, fr_error *err);
void synth_close(synth *s);

/* Draws the next event and observes it. The stream has no end; `events` says how many to take. */
void synth_next(synth *s, synth_event *out);
/* Advances the state by one event, whose ids must be in range (the caller checks them). */
void synth_observe(synth *s, const synth_event *event);
/* p[destinations] = the exact probability of each destination, if the next event is one of
 * `source` at `time` (>= 0). Sums to 1 within 1e-12. O(destinations + memory). */
void synth_probability(const synth *s, int32_t source, double time, double *p);
/* The destination that two uniform numbers in [0, 1) select from that same distribution: the first
 * chooses the component, the second the destination in it. Does not change the state. */
int32_t synth_draw(const synth *s, int32_t source, double time, double component, double within);

#endif
