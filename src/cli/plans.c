/* plans.c - one line that says what a long command is about to do.
 *
 * Events, candidates and scores are known beforehand. Their time is estimated from the usual rates
 * of the model (fr_model), which hold for its default settings. The measured time is shown later:
 * in the bar of a terminal, elsewhere in a line (cli_plan). */
#include "cli.h"

#include <string.h>
#include <unistd.h>

typedef struct phrase {
    char s[64];
} phrase;

/* ", about 0:31 by usual rates", or nothing if the scorer is not one of our models. `work` is in
 * microseconds at those rates. */
static phrase about(const fr_model *model, double work, const fr_context *context) {
    enum { RATED = 2 }; /* the rates are for this many cores */
    phrase out = {""};
    long cores = sysconf(_SC_NPROCESSORS_ONLN), used = context->threads;
    if (cores < 1) cores = 1;
    if (used < 1 || used > cores) used = cores;
    double seconds = work * 1e-6 * RATED / (double)used;
    if (model)
        (void)snprintf(out.s, sizeof out.s, ", about %s by usual rates",
                       cli_duration(seconds < 1 ? 1 : seconds).s);
    return out;
}

bool cli_untrained(const char *spec) {
    return !strncmp(spec, "baseline:", 9) || !strcmp(spec, "oracle");
}

void cli_plan_rank(const fr_window *window, const fr_scorer *scorer, const char *spec,
                   int64_t sample, const fr_context *context) {
    fr_window_facts w = fr_window_get(window);
    int64_t events = w.to - w.from;
    if (cli_untrained(spec)) return; /* it ends before anyone can read the line */
    if (sample && sample < events) events = sample;
    const fr_model *model = fr_model_find(fr_scorer_get(scorer).model);
    int64_t scores = events * w.candidates;
    cli_plan("ranks %s test events against %s candidates each: at most %s scores by %s%s",
             cli_count(events).s, cli_count(w.candidates).s, cli_count(scores).s, spec,
             about(model, model ? (double)scores * model->score_time : 0, context).s);
}

void cli_plan_train(const fr_window *window, const char *name, const fr_training *how,
                    const fr_context *context) {
    fr_window_facts w = fr_window_get(window);
    const fr_model *model = fr_model_find(name);
    int64_t events = w.train * how->epochs;
    cli_plan("trains %s on %s events for %s%s epochs, one negative each: %s scores%s", name,
             cli_count(w.train).s, how->patience ? "at most " : "", cli_count(how->epochs).s,
             cli_count(2 * events).s,
             about(model, model ? (double)events * model->event_time : 0, context).s);
}

void cli_plan_scaling(const fr_window *window, const char *spec, const fr_scaling_settings *how) {
    fr_window_facts w = fr_window_get(window);
    int64_t events = w.to - w.from < how->events ? w.to - w.from : how->events;
    cli_plan("times %s on %s test events with catalogs of up to %s candidates, %s times each, by "
             "one thread",
             spec, cli_count(events).s, cli_count(w.candidates).s, cli_count(how->repeats).s);
}
