/* synthesize.c - synthetic streams on disk (fullrank.h, chapter 7): synth draws, columns writes. */
#define _GNU_SOURCE
#include "base/options.h"
#include "data/columns.h"
#include "data/synth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fr_option fr_synth_options[FR_OPTIONS_MAX] = {
    {"preset", FR_OPTION_TEXT, "tiny", "tiny|wikipedia|reddit|mooc|lastfm", 0, 0,
     offsetof(fr_synth, preset), "the data set to imitate"},
    {"seed", FR_OPTION_INT, "1", "N", 0, 0x1p53, offsetof(fr_synth, seed),
     "seed of the random numbers"},
    {"events", FR_OPTION_INT, "0", "N", 0, 1e12, offsetof(fr_synth, events),
     "length of the stream; 0 = the preset's own"},
    {"parameters", FR_OPTION_TEXT, "", "LIST", 0, 0, offsetof(fr_synth, parameters),
     "changes to the preset, such as repeat=0.9,drift=0 (`--list` shows them)"},
    OPTIONS_END(fr_synth)};

const char *fr_synth_preset_at(int index, const char **help) {
    for (int i = 0; synth_presets[i].name; i++) {
        if (i != index) continue;
        if (help) *help = synth_presets[i].help;
        return synth_presets[i].name;
    }
    return NULL;
}

const fr_option *fr_synth_parameters(void) { return synth_options; }

fr_status synth_find_parameters(const fr_synth *settings, synth_parameters *out, fr_error *err) {
    TRY(synth_preset_find(settings->preset ? settings->preset : "tiny", out, err));
    out->seed = settings->seed;
    if (settings->events) out->events = settings->events;
    if (!settings->parameters) return FR_OK;
    char *text = strdup(settings->parameters), *rest = text;
    if (!text) return fail_memory(err, strlen(settings->parameters));
    fr_status status = FR_OK;
    for (char *entry; !status && (entry = strsep(&rest, ","));) {
        char *value = strchr(entry, '=');
        if (value) *value++ = 0;
        status = value ? fr_options_set(synth_options, out, entry, value, err)
                       : fail(err, FR_EUSAGE,
                              "option parameters: found \"%s\", expected name=value", entry);
    }
    free(text);
    return status;
}

static fr_status draw_events(synth *s, int64_t count, columns *out, const fr_context *context,
                             fr_error *err) {
    enum { BLOCK = 4096 };
    int64_t source[BLOCK], destination[BLOCK];
    double time[BLOCK];
    for (int64_t done = 0; done < count;) {
        int64_t n = count - done < BLOCK ? count - done : BLOCK;
        for (int64_t k = 0; k < n; k++) {
            synth_event e;
            synth_next(s, &e);
            source[k] = e.source;
            destination[k] = e.destination;
            time[k] = e.time;
        }
        TRY(columns_put(out, n, source, destination, time, NULL, NULL, err));
        done += n;
        TRY(context_check(context, err));
        context_progress(context, "draw", (uint64_t)done, (uint64_t)count, "events");
    }
    return FR_OK;
}

fr_status fr_synth_make(const fr_synth *settings, const char *output, const fr_context *context,
                        fr_error *err) {
    fr_synth own;
    synth_parameters p;
    synth *s = NULL;
    columns out = {0};
    NEED(output, err);
    TRY(options_settle(fr_synth_options, settings, &own, sizeof own, err));
    settings = &own;
    json_t *parameters = json_object();
    fr_status status = parameters ? synth_find_parameters(settings, &p, err) : fail_memory(err, 0);
    if (!status) status = synth_to_json(&p, parameters, err);
    if (!status) status = synth_open(&p, &s, err);
    if (!status) status = columns_open(&out, output, settings->force, 0, false, err);
    if (!status) status = draw_events(s, p.events, &out, context, err);
    if (!status) {
        char name[64];
        (void)snprintf(name, sizeof name, "synthetic %s, seed %lld",
                       settings->preset ? settings->preset : "tiny", (long long)p.seed);
        columns_finish finish = {.origin = json_pack("{s:s}", "name", name),
                                 .synth = json_incref(parameters)};
        status = columns_close(&out, finish, context, err);
    }
    columns_discard(&out);
    synth_close(s);
    json_decref(parameters);
    return status;
}
