/* plans.c - what a long command is about to do, in a line before it does it.
 *
 * Events, candidates and scores are known beforehand; how long they take is not, before some are
 * done. So the time follows: in the bar of a terminal, elsewhere in a line (cli_plan).
 */
#include "cli.h"

#include <string.h>

bool cli_untrained(const char *spec) {
    return !strncmp(spec, "baseline:", 9) || !strcmp(spec, "oracle");
}

void cli_plan_rank(const fr_window *window, const char *spec, int64_t sample) {
    fr_window_facts w = fr_window_get(window);
    int64_t events = w.to - w.from;
    if (cli_untrained(spec) || !strncmp(spec, "counts:", 7)) return; /* done before it is read */
    if (sample && sample < events) events = sample;
    cli_plan("ranks %s test events against %s candidates each: at most %s scores by %s",
             cli_count(events).s, cli_count(w.candidates).s, cli_count(events * w.candidates).s,
             spec);
}

void cli_plan_train(const fr_window *window, const char *model, const fr_training *how) {
    fr_window_facts w = fr_window_get(window);
    cli_plan("trains %s on %s events for %s%s epochs, one negative each: %s scores", model,
             cli_count(w.train).s, how->patience ? "at most " : "", cli_count(how->epochs).s,
             cli_count(2 * w.train * how->epochs).s);
}

void cli_plan_scaling(const fr_window *window, const char *spec, const fr_scaling_settings *how) {
    fr_window_facts w = fr_window_get(window);
    int64_t events = w.to - w.from < how->events ? w.to - w.from : how->events;
    cli_plan("times %s on %s test events with catalogs of up to %s candidates, %s times each, by "
             "one thread",
             spec, cli_count(events).s, cli_count(w.candidates).s, cli_count(how->repeats).s);
}
