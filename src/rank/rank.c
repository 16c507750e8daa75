/* rank.c - see rank.h; a whole ranking run (fullrank.h, chapter 10). */
#include "rank/rank.h"

#include "base/clock.h"
#include "base/context.h"
#include "base/options.h"
#include "base/processes.h"
#include "rank/learned.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fr_option fr_rank_options[FR_OPTIONS_MAX] = {
    {"shard", FR_OPTION_INT, "64", "N", 1, 1 << 20, offsetof(fr_rank_settings, shard),
     "number of events that a thread takes at a time; results do not depend on it"},
    {"met", FR_OPTION_INT, "0", "N", 0, INT32_MAX, offsetof(fr_rank_settings, met),
     "rank only events whose source has met at least N other destinations; 0 = all"},
    {"popularity-power", FR_OPTION_REAL, "1", "POWER", 0, 10,
     offsetof(fr_rank_settings, popularity_power),
     "the popularity sampler draws with probability proportional to training count ^ POWER"},
    {"verify", FR_OPTION_INT, "0", "N", 0, INT32_MAX, offsetof(fr_rank_settings, verify),
     "score up to N events again through the model's plain forward pass and report the "
     "largest difference; for baselines whose ranks are counted, compare N records with "
     "those of score vectors"},
    {"dump-scores", FR_OPTION_TEXT, "", "FILE.npy", 0, 0, offsetof(fr_rank_settings, dump_scores),
     "also write score vectors: float32 [events, N], ascending by id, and FILE.json"},
    {"events", FR_OPTION_TEXT, "all", "WHICH", 0, 0, offsetof(fr_rank_settings, events),
     "the ranked events to dump: all, first:N, every:N, or rows of the stream 5,9,12"},
    {"negatives", FR_OPTION_TEXT, "", "FILE.npy", 0, 0, offsetof(fr_rank_settings, negatives),
     "rank against these lists instead of the catalog: int64 [events of the part, K] of "
     "destination ids, with -1 after the end of a list"},
    {"repeats", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(fr_rank_settings, repeats),
     "the negatives were drawn with repeats: an id that is listed twice counts twice, "
     "and the event's own destination is a tie"},
    {"top", FR_OPTION_INT, "0", "K", 0, INT32_MAX, offsetof(fr_rank_settings, top),
     "also write the K best candidates of every ranked event with names and scores; "
     "among equal scores the smaller id comes first"},
    {"top-output", FR_OPTION_TEXT, "", "FILE.csv", 0, 0, offsetof(fr_rank_settings, top_output),
     "file for the best candidates"},
    {"sample-events", FR_OPTION_INT, "0", "N", 0, INT32_MAX,
     offsetof(fr_rank_settings, sample_events),
     "rank a simple random sample of N test events instead of all; every number is then "
     "labelled as an estimate and has a confidence interval; 0 = all"},
    {"sample-seed", FR_OPTION_INT, "1", "N", 0, 9007199254740992.0,
     offsetof(fr_rank_settings, sample_seed),
     "seed of the sample: scorers with equal seeds have the same events and can be "
     "compared"},
    {"share", FR_OPTION_CHOICE, "events", "events|candidates", 0, 0,
     offsetof(fr_rank_settings, share),
     "what the processes of mpirun share; results do not depend on it"},
    OPTIONS_END(fr_rank_settings)};

/* ---- around the engine ---- */

/* Checks that several processes can do this ranking in the requested way. */
static fr_status check_shared(const run *r, int count, fr_error *err) {
    const fr_rank_settings *s = &r->settings;
    if (s->dump_scores || s->top)
        return fail(err, FR_EUSAGE,
                    "option %s with %d processes, expected one: each has a part of the scores only",
                    s->top ? "top" : "dump-scores", count);
    if (s->negatives && s->share == FR_SHARE_CANDIDATES)
        return fail(err, FR_EUSAGE,
                    "options negatives and share candidates, expected share events: lists are no "
                    "catalog to divide");
    return FR_OK;
}

/* A shard of events that leaves no process without one if there are few. */
static int64_t shared_shard(const run *r, int count) {
    int64_t each = (r->events.count + count - 1) / count;
    return each < 1 ? 1 : each < r->settings.shard ? each : r->settings.shard;
}

/* The records of this process: of its events, or of its candidates. All events stay in r->events.
 */
static fr_status open_records(run *r, int threads, const fr_context *context, fr_error *err) {
    const fr_scorer *scorer = r->scorer;
    int count = processes_count(context), number = processes_number(context), parts = 1;
    const event_list *ranked = &r->events;
    if (count > 1) TRY(check_shared(r, count, err));
    if (count > 1 && r->settings.share == FR_SHARE_CANDIDATES)
        parts = count;
    else if (count > 1) {
        ranked = &r->mine;
        TRY(events_share(&r->events, number, count, shared_shard(r, count), &r->mine, err));
    }
    return recorder_open(&r->records, scorer->window, ranked, scorer->is.catalog_only,
                         r->settings.popularity_power, threads, parts > 1 ? number : 0, parts, err);
}

fr_status run_open(run *r, const fr_scorer *scorer, const fr_rank_settings *settings, int threads,
                   const fr_context *context, fr_error *err) {
    const fr_window *w = scorer->window;
    *r = (run){.scorer = scorer, .started = clock_now()};
    if (w->counterfactual)
        return fail(err, FR_EUSAGE, "%s: a window that an audit has changed has no ranks",
                    scorer->is.name);
    TRY(options_settle(fr_rank_options, settings, &r->settings, sizeof r->settings, err));
    TRY(events_open(&r->events, w, r->settings.sample_events, r->settings.sample_seed, err));
    TRY(open_records(r, threads, context, err));
    if (r->settings.repeats && !r->settings.negatives)
        return fail(err, FR_EUSAGE, "option repeats: is about negatives, and there are none");
    if (!r->settings.dump_scores && r->settings.events && strcmp(r->settings.events, "all") != 0)
        return fail(err, FR_EUSAGE,
                    "option events: found \"%s\" without dump-scores, whose events it chooses; "
                    "expected both or none (sample-events ranks some events)",
                    r->settings.events);
    if (r->settings.negatives) {
        TRY(negatives_open(&r->lists, w, r->settings.negatives, r->settings.repeats, err));
        r->records.lists = &r->lists;
    }
    r->probe[r->probes++] = recorder_probe(&r->records);
    if (r->settings.dump_scores) {
        r->probe[r->probes++] = dump_probe(&r->scores);
        TRY(dump_open(&r->scores, w, &r->events, &r->settings, threads, err));
    }
    if (!r->settings.top) return FR_OK;
    r->probe[r->probes++] = top_probe(&r->best);
    return top_open(&r->best, w, &r->events, scorer->is.catalog_only, &r->settings, threads, err);
}

fr_status run_keep_scores(run *r, fr_error *err) {
    if (r->settings.dump_scores) TRY(dump_commit(&r->scores, err));
    return r->settings.top ? top_commit(&r->best, err) : FR_OK;
}

fr_status run_finish(run *r, ranking_notes notes, fr_ranking **out, fr_error *err) {
    const fr_window *w = r->scorer->window;
    notes.popularity_power = r->settings.popularity_power;
    notes.met = r->settings.met;
    notes.negatives_sha256 = r->lists.sha256;
    notes.events = &r->events;
    for (int32_t k = 0; k < r->events.count; k++)
        if (r->records.records[k].covered || r->records.records[k].avail_n >= 0)
            notes.scores += w->destinations;
    fr_record *records = r->records.records;
    r->records.records = NULL; /* the ranking has them */
    return ranking_make(r->scorer, records, notes, out, err);
}

void run_close(run *r) {
    dump_close(&r->scores);
    top_close(&r->best);
    recorder_close(&r->records);
    negatives_close(&r->lists);
    events_close(&r->events);
    events_close(&r->mine);
}

/* ---- verifying ---- */

/* Where two ways of scoring one event differ. */
static void compare_event(const run *r, const fr_record *record, int32_t event, const float *fast,
                          const float *slow, ranking_notes *notes) {
    const fr_window *w = r->scorer->window;
    int32_t above = 0, tied = -1;
    float positive = slow[w->destination[event]];
    double largest = 0, apart = 0;
    for (int32_t v = 0; v < w->destinations; v++) {
        bool in = window_ranked(w, event, v);
        above += in && slow[v] > positive;
        tied += in && slow[v] == positive;
        largest = fmax(largest, fabs((double)slow[v]));
        apart = fmax(apart, fabs((double)slow[v] - (double)fast[v]));
    }
    if (r->records.lists) {
        negatives_counts c = negatives_count(&r->lists, event - w->from, slow, positive);
        above = c.above;
        tied = c.tied;
    }
    notes->verified++;
    notes->verified_ranks += above != record->above || tied != record->tied;
    if (largest > 0) notes->verified_error = fmax(notes->verified_error, apart / largest);
}

/* Scores some ranked events, evenly spread, again through plain forward, and compares. */
static fr_status verify(const run *r, ranking_notes *notes, const fr_context *context,
                        fr_error *err) {
    const fr_window *w = r->scorer->window;
    fr_scorer_definition plain = {0};
    float *fast = NULL, *slow = NULL;
    int64_t wanted = r->settings.verify;
    int32_t test = r->events.count, step = test > wanted ? (int32_t)(test / wanted) : 1;
    fr_status status = learned_plain(r->scorer, 1, &plain, err);
    if (!status) status = ALLOCATE(fast, w->destinations, err);
    if (!status) status = ALLOCATE(slow, w->destinations, err);
    for (int32_t k = 0; !status && k < test && notes->verified < wanted; k += step) {
        const fr_record *record = &r->records.records[k];
        int32_t event = events_at(&r->events, k);
        fr_query query = {event, w->source[event], window_time(w, event)};
        if (!record->covered) continue;
        context_progress(context, "verify", (uint64_t)k, (uint64_t)test, "events");
        status = context_check(context, err);
        if (!status) status = fr_scorer_score(r->scorer, &query, 1, 0, fast, err);
        if (!status) status = plain.part(plain.state, &query, 1, 0, w->destinations, 0, slow, err);
        if (!status) compare_event(r, record, event, fast, slow, notes);
    }
    if (plain.close && plain.state) plain.close(plain.state);
    free(fast);
    free(slow);
    return status;
}

/* ---- several processes ---- */

/* Stores the records of one process at their rows. */
static fr_status place_records(const run *r, int from, int count, const fr_record *part,
                               size_t size, fr_record *all, fr_error *err) {
    size_t used = 0, records = size / sizeof *part;
    for (int32_t row = 0; row < r->events.count; row++) {
        if (events_owner(row, count, shared_shard(r, count)) != from) continue;
        if (used < records) all[row] = part[used];
        used++;
    }
    if (used * sizeof *part == size) return FR_OK;
    return fail(err, FR_EINPUT, "process %d has %zu records, expected %zu", from, records, used);
}

/* Adds the results of one process to the records of all. */
static fr_status join_part(run *r, int from, int count, const void *part, size_t size,
                           fr_record *all, fr_error *err) {
    if (r->records.sums)
        return recorder_add(&r->records, part, size / sizeof *r->records.sums, from, err);
    return place_records(r, from, count, part, size, all, err);
}

/* Collects the results of all processes at process 0, if none of them failed. It receives from all
 * of them, even if one fails. */
static fr_status join(run *r, const fr_context *context, fr_status status, fr_error *err) {
    int count = processes_count(context), number = processes_number(context);
    recorder *own = &r->records;
    fr_record *all = NULL;
    if (count < 2) return status;
    if (!status && !number && !own->sums) status = ALLOCATE(all, r->events.count, err);
    status = fr_processes_agree(context, status, err);
    if (status) {
        free(all);
        return status;
    }
    const void *mine = own->sums ? (const void *)own->sums : own->records;
    size_t size = (size_t)own->events->count * (own->sums ? sizeof *own->sums : sizeof(fr_record));
    if (all) status = place_records(r, 0, count, mine, size, all, err);
    for (int k = 1; k < count; k++) {
        void *part = NULL;
        size_t got;
        fr_error inner = {0};
        fr_status one = processes_collect(context, k, mine, size, &part, &got, &inner);
        if (!one && !number && !status) one = join_part(r, k, count, part, got, all, &inner);
        if (one && !status) status = fail(err, one, "%s", inner.message);
        free(part);
    }
    if (!status && !number && own->sums) recorder_settle(own);
    if (!status && all) {
        free(own->records);
        own->records = all;
    } else
        free(all);
    return status;
}

/* ---- a whole run ---- */

enum { ALWAYS_CHECKED = 16 }; /* events that are counted and scored */

/* Other probes than the recorder read whole vectors. */
bool run_counts(const run *r) { return r->scorer->is.stand && r->probes == 1; }

fr_status run_events(run *r, fr_scorer *scorer, const event_list *events, counting_check *check,
                     const fr_context *context, fr_error *err) {
    if (run_counts(r)) return counting_run(scorer, &r->records, &r->settings, context, check, err);
    return engine_run(scorer, events, r->probe, r->probes, &r->settings, context, err);
}

fr_status fr_rank_run(fr_scorer *scorer, const fr_rank_settings *settings,
                      const fr_context *context, fr_ranking **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(scorer, err);
    if (scorer->observed > scorer->window->from)
        return fail(err, FR_EUSAGE, "%s has observed test events already: open it again",
                    scorer->is.name);
    run r;
    int scoring = engine_team(scorer, context).threads,
        counting = counting_team(scorer, context).threads;
    fr_status status =
        run_open(&r, scorer, settings, scoring > counting ? scoring : counting, context, err);
    /* `stand` knows the positive, but `score` does not, so their agreement is always checked. */
    bool asked = r.settings.verify > 0;
    counting_check check = {.wanted = asked ? r.settings.verify : ALWAYS_CHECKED,
                            .agree = !asked || processes_number(context)}; /* 0 reports its own */
    if (!status) status = run_events(&r, scorer, r.records.events, &check, context, err);
    status = join(&r, context, status, err);
    if (!status) status = run_keep_scores(&r, err);
    ranking_notes notes = {.seconds = clock_now() - r.started,
                           .verified = asked ? check.verified : 0,
                           .verified_ranks = check.differ};
    bool all = !processes_number(context); /* the others have sent theirs */
    if (!status && all && r.settings.verify && !run_counts(&r))
        status = verify(&r, &notes, context, err);
    if (!status && all) status = run_finish(&r, notes, out, err);
    run_close(&r);
    return status;
}
