/* rank.c - opening scorers by name, and a whole ranking run (fullrank.h, chapters 9 and 10). */
#include "base/clock.h"
#include "base/context.h"
#include "base/options.h"
#include "baselines/baseline.h"
#include "rank/dump.h"
#include "rank/learned.h"
#include "rank/oracle.h"
#include "rank/ranking.h"
#include "rank/record.h"
#include "rank/scores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fr_option fr_rank_options[] = {
    {"shard", FR_OPTION_INT, "64", "N", 1, 1 << 20, offsetof(fr_rank_settings, shard),
     "events a thread takes at a time; results do not depend on it"},
    {"met", FR_OPTION_INT, "0", "N", 0, INT32_MAX, offsetof(fr_rank_settings, met),
     "rank only events whose source has met N other destinations or more; 0 = all"},
    {"popularity-power", FR_OPTION_REAL, "1", "POWER", 0, 10,
     offsetof(fr_rank_settings, popularity_power),
     "the popularity sampler draws with probability proportional to training count ^ POWER"},
    {"verify", FR_OPTION_INT, "0", "N", 0, INT32_MAX, offsetof(fr_rank_settings, verify),
     "score up to N events again through the model's plain forward and report the largest "
     "difference"},
    {"dump-scores", FR_OPTION_TEXT, "", "FILE.npy", 0, 0, offsetof(fr_rank_settings, dump_scores),
     "also write score vectors: float32 [events, N], ascending by id, and FILE.json beside it"},
    {"events", FR_OPTION_TEXT, "all", "WHICH", 0, 0, offsetof(fr_rank_settings, events),
     "which ranked events to dump: all, first:N, every:N, or rows of the stream 5,9,12"},
    {0}};

/* The part of `spec` behind `prefix`, NULL if it does not begin with it. */
static const char *behind(const char *spec, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(spec, prefix, n) ? NULL : spec + n;
}

fr_status fr_scorer_open(const char *spec, const fr_window *window, int64_t seed,
                         const fr_context *context, fr_scorer *out, fr_error *err) {
    NEED(out, err);
    *out = (fr_scorer){0};
    NEED(spec, err);
    NEED(window, err);
    if (strlen(spec) >= sizeof out->name)
        return fail(err, FR_EUSAGE, "a scorer of %zu bytes, expected at most %zu", strlen(spec),
                    sizeof out->name - 1);
    const char *rest, *file = NULL;
    fr_status status;
    if ((rest = behind(spec, "baseline:")))
        status = baseline_open(rest, window, seed, out, err);
    else if ((rest = behind(spec, "scores:")))
        status = scores_open(file = rest, window, out, err);
    else if (!strcmp(spec, "oracle"))
        status = oracle_open(window, context, out, err);
    else if (strlen(spec) > 12 && !strcmp(spec + strlen(spec) - 12, ".safetensors"))
        status = learned_open(file = spec, window, context, out, err);
    else
        status = fail(err, FR_EUSAGE,
                      "unknown scorer %s, expected FILE.safetensors, baseline:NAME, "
                      "scores:FILE.npy or oracle",
                      spec);
    (void)snprintf(out->name, sizeof out->name, "%s", spec);
    out->window = window;
    if (!out->model[0]) out->seed = seed; /* a checkpoint has the seed of its training */
    if (!status && file) status = ranking_hash_file(file, out->sha256, err);
    if (status) fr_scorer_close(out);
    return status;
}

void fr_scorer_close(fr_scorer *scorer) {
    if (!scorer) return;
    if (scorer->close && scorer->state) scorer->close(scorer->state);
    *scorer = (fr_scorer){0};
}

/* Scores some ranked events, evenly spread, again through plain forward, and compares. */
static fr_status verify(const fr_window *w, const fr_scorer *scorer, const recorder *r,
                        int64_t wanted, ranking_notes *notes, const fr_context *context,
                        fr_error *err) {
    fr_scorer plain = {0};
    float *fast = NULL, *slow = NULL;
    int32_t test = w->events - w->train, step = test > wanted ? (int32_t)(test / wanted) : 1;
    fr_status status = learned_plain(scorer, 1, &plain, err);
    if (!status) status = ALLOCATE(fast, w->destinations, err);
    if (!status) status = ALLOCATE(slow, w->destinations, err);
    for (int32_t k = 0; !status && k < test && notes->verified < wanted; k += step) {
        const fr_record *record = &r->records[k];
        int32_t event = w->train + k, above = 0, tied = -1;
        fr_query query = {event, w->source[event], window_time(w, event)};
        if (!record->covered) continue;
        context_progress(context, "verify", (uint64_t)k, (uint64_t)test, "events");
        status = context_check(context, err);
        if (!status) status = scorer->score(scorer->state, &query, 0, fast, err);
        if (!status) status = plain.score(plain.state, &query, 0, slow, err);
        if (status) break;
        float positive = slow[w->destination[event]];
        double largest = 0, apart = 0;
        for (int32_t v = 0; v < w->destinations; v++) {
            bool in = w->catalog_kind == CATALOG_TIME
                          ? window_candidate(w, event, v)
                          : w->catalog_place[v] >= 0 && v != window_self(w, w->source[event]);
            above += in && slow[v] > positive;
            tied += in && slow[v] == positive;
            largest = fmax(largest, fabs((double)slow[v]));
            apart = fmax(apart, fabs((double)slow[v] - (double)fast[v]));
        }
        notes->verified++;
        notes->verified_ranks += above != record->above || tied != record->tied;
        if (largest > 0) notes->verified_error = fmax(notes->verified_error, apart / largest);
    }
    fr_scorer_close(&plain);
    free(fast);
    free(slow);
    return status;
}

/* Is the scorer one that can rank this window? */
static fr_status check_scorer(const fr_window *window, const fr_scorer *scorer, fr_error *err) {
    NEED(window, err);
    NEED(scorer, err);
    NEED(scorer->score, err);
    if (!memchr(scorer->name, 0, sizeof scorer->name) ||
        !memchr(scorer->model, 0, sizeof scorer->model) ||
        !memchr(scorer->objective, 0, sizeof scorer->objective) ||
        !memchr(scorer->sha256, 0, sizeof scorer->sha256))
        return fail(err, FR_EUSAGE, "a text of the scorer has no end: zero the struct first");
    if (scorer->window && scorer->window != window)
        return fail(err, FR_EUSAGE, "%s was opened for another window", scorer->name);
    if (scorer->workers < 0)
        return fail(err, FR_EUSAGE, "%s: %d workers, expected 0 (any number) or more", scorer->name,
                    scorer->workers);
    if (scorer->observe && (scorer->start < 0 || scorer->start > window->train))
        return fail(err, FR_EUSAGE, "%s: start is %d, expected 0 to %d, the first test event",
                    scorer->name, scorer->start, window->train);
    if (scorer->catalog_only && window->catalog_kind == CATALOG_TIME)
        return fail(err, FR_EINPUT, "%s scores a fixed catalog only, not the time-available one",
                    scorer->name);
    return FR_OK;
}

fr_status fr_rank_run(const fr_window *window, fr_scorer *scorer, const fr_rank_settings *settings,
                      const fr_context *context, fr_ranking **out, fr_error *err) {
    fr_rank_settings own;
    NEED(out, err);
    *out = NULL;
    TRY(check_scorer(window, scorer, err));
    TRY(options_settle(fr_rank_options, settings, &own, sizeof own, err));
    settings = &own;
    recorder records = {0};
    dump scores = {0};
    probe probes[2];
    int count = 0;
    double start = clock_now();
    fr_status status =
        recorder_open(&records, window, scorer->catalog_only, settings->popularity_power, err);
    if (!status) probes[count++] = recorder_probe(&records);
    if (!status && settings->dump_scores) {
        status = dump_open(&scores, window, settings, engine_team(scorer, context).threads, err);
        probes[count++] = dump_probe(&scores);
    }
    if (!status) status = engine_run(window, scorer, probes, count, settings, context, err);
    if (!status && settings->dump_scores) status = dump_commit(&scores, err);
    ranking_notes notes = {.popularity_power = settings->popularity_power,
                           .met = settings->met,
                           .seconds = clock_now() - start};
    if (!status && settings->verify)
        status = verify(window, scorer, &records, settings->verify, &notes, context, err);
    if (!status) {
        for (int32_t k = 0; k < window->events - window->train; k++)
            if (records.records[k].covered || records.records[k].avail_n >= 0)
                notes.scores += window->destinations;
        status = ranking_make(window, scorer, records.records, notes, out, err);
        records.records = NULL; /* the ranking has them */
    }
    dump_close(&scores);
    recorder_close(&records);
    return status;
}
