/* forecast.c - see forecast.h. */
#include "study/forecast.h"

#include "base/clock.h"
#include "base/context.h"
#include "base/file.h"
#include "study/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The cost of a unit, as a multiple of one ranking by its model. */
static const double rankings[UNIT_KINDS] = {[UNIT_RANK] = 1,
                                            [UNIT_MEMBERSHIP] = 0.2,
                                            [UNIT_PROJECT] = 4,
                                            [UNIT_SCALING] = 0.5,
                                            [UNIT_BATCHES] = 3};

/* The number of events of a data set, estimated without reading it: a row of a table has about 25
 * bytes, or 8 if it is packed. */
static int64_t events_in(const plan_data *d) {
    enum { USUAL = 131072, PLAIN = 25, PACKED = 8 };
    const json_t *drawn = json_object_get(d->synth, "events");
    if (json_is_integer(drawn)) return json_integer_value(drawn);
    struct stat file;
    if (!d->path || stat(d->path, &file)) return USUAL;
    bool folder = S_ISDIR(file.st_mode);
    char *times = folder ? path_join(d->path, "time.npy") : NULL;
    bool found = !folder || (times && !stat(times, &file));
    free(times);
    if (!found) return USUAL;
    size_t size = strlen(d->path);
    bool packed = size > 3 && !strcmp(d->path + size - 3, ".gz");
    return 1 + file.st_size / (folder ? (off_t)sizeof(double) : packed ? PACKED : PLAIN);
}

/* Events of a unit's window. */
static double events_of(const plan *p, const plan_unit *u) {
    int64_t window = u->diagnostic ? p->diagnostic_window : p->protocol.window;
    int64_t all = events_in(&p->data[u->data]);
    return (double)(window && window < all ? window : all);
}

static double stated_cost(const plan *p, const plan_unit *u) {
    enum { CANDIDATES = 800 };
    double events = events_of(p, u), trained = events * p->protocol.train_share;
    if (!u->trained) return 0.02 + events * 3e-6; /* data, facts, baselines */
    const fr_model *known = fr_model_find(u->model);
    double event = known ? known->event_time : 50, score = known ? known->score_time : 5;
    if (u->kind == UNIT_TRAIN) {
        fr_model_settings shape = {.size = sizeof shape};
        fr_training how = {.size = sizeof how};
        double epochs = plan_settings(p, u, &shape, &how, NULL) ? 3 : (double)how.epochs;
        return trained * epochs * event * 1e-6;
    }
    return 0.02 + (events - trained) * CANDIDATES * score * 1e-6 * rankings[u->kind];
}

/* The ratio of real to stated cost of finished units, similar ones first. If there are none, others
 * are used, and a tenth of all work counts at the assumed rates, so that one unusual unit does not
 * change everything. */
static double correction(const fr_study *s, const plan_unit *u) {
    const forecast *f = s->forecast;
    double took[3] = {0}, stated[3] = {0}, prior = 0;
    for (int64_t i = 0; i < f->units; i++) {
        const plan_unit *v = &s->plan.units.at[i];
        prior += f->stated[i] / 10;
        if (!(f->took[i] > 0)) continue;
        bool kind = v->kind == u->kind && v->trained == u->trained;
        bool alike = kind && v->diagnostic == u->diagnostic &&
                     (v->model && u->model ? !strcmp(v->model, u->model) : v->model == u->model);
        for (int k = 0; k < 3; k++) {
            if (k == 0 ? !alike : k == 1 ? !kind : v->trained != u->trained) continue;
            took[k] += f->took[i];
            stated[k] += f->stated[i];
        }
    }
    for (int k = 0; k < 3; k++)
        if (stated[k] > 0) return k ? (took[k] + prior) / (stated[k] + prior) : took[0] / stated[0];
    return 1;
}

/* Computes the sums again; there are few units. */
static void look_ahead(fr_study *s) {
    forecast *f = s->forecast;
    f->before = f->after = 0;
    f->finished = 0;
    for (int64_t i = 0; i < f->units; i++) {
        const plan_unit *u = &s->plan.units.at[i];
        double expected = isnan(f->took[i]) ? f->stated[i] * correction(s, u) : 0;
        if (!isnan(f->took[i]))
            f->before += f->took[i], f->finished++;
        else if (i == f->now)
            f->expected = expected;
        else
            f->after += expected;
    }
}

static fr_status take_unit(void *user, const unit_row *row, fr_error *err) {
    fr_study *s = user;
    (void)err;
    bool done = !strcmp(row->status, "done");
    bool skipped = !strcmp(row->status, "skipped");
    if (done || skipped)
        s->forecast->took[row->unit - s->plan.units.at] =
            done && !isnan(row->seconds) ? row->seconds : 0;
    s->forecast->skipped += skipped;
    return FR_OK;
}

fr_status forecast_open(fr_study *s, int hands, fr_error *err) {
    TRY(ALLOCATE(s->forecast, 1, err));
    forecast *f = s->forecast;
    *f = (forecast){.units = (int64_t)s->plan.units.count, .now = -1, .hands = hands};
    TRY(ALLOCATE(f->stated, f->units, err));
    TRY(ALLOCATE(f->took, f->units, err));
    for (int64_t i = 0; i < f->units; i++) {
        f->stated[i] = stated_cost(&s->plan, &s->plan.units.at[i]);
        f->took[i] = NAN;
    }
    TRY(results_units(&s->book, &s->plan, take_unit, s, err));
    look_ahead(s);
    return FR_OK;
}

void forecast_close(fr_study *s) {
    if (!s->forecast) return;
    free(s->forecast->stated);
    free(s->forecast->took);
    free(s->forecast);
    s->forecast = NULL;
}

void forecast_say(const fr_study *s) {
    const forecast *f = s->forecast;
    int64_t kinds[UNIT_KINDS] = {0}, left = f->units - f->finished;
    char list[256] = "";
    size_t used = 0;
    for (int64_t i = 0; i < f->units; i++)
        if (isnan(f->took[i])) kinds[s->plan.units.at[i].kind]++;
    for (int k = 0; k < UNIT_KINDS; k++)
        if (kinds[k] && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%lld %s", used ? ", " : "",
                                     (long long)kinds[k], unit_kind_name[k]);
    if (!left) return;
    double seconds = f->after / f->hands;
    context_log(s->caller, FR_NOTICE,
                "%s: %lld of %lld units to do (%s), about %.*f %s, estimated from %s", s->plan.name,
                (long long)left, (long long)(f->units - f->skipped), list, seconds < 3600 ? 0 : 1,
                seconds < 120    ? fmax(2, seconds)
                : seconds < 3600 ? seconds / 60
                                 : seconds / 3600,
                seconds < 120    ? "seconds"
                : seconds < 3600 ? "minutes"
                                 : "hours",
                f->before > 0 ? "finished units" : "usual rates and corrected on the way");
}

void forecast_begin(fr_study *s, const plan_unit *unit) {
    forecast *f = s->forecast;
    if (!f) return;
    f->now = unit - s->plan.units.at;
    f->took[f->now] = NAN; /* it may have been done with other inputs */
    f->began = f->stage_began = clock_now();
    f->first = f->last = f->total = 0;
    look_ahead(s);
    forecast_tell(s, NULL, 0, 0);
}

void forecast_end(fr_study *s, const plan_unit *unit, double seconds) {
    forecast *f = s->forecast;
    int64_t number = unit - s->plan.units.at;
    if (!f || !isnan(f->took[number])) return;
    f->took[number] = seconds;
    if (f->now == number) f->now = -1;
    look_ahead(s);
}

/* Seconds until the present unit is done: as expected, but at least as long as its stage will take.
 */
static double unit_left(forecast *f, uint64_t done, uint64_t total) {
    double time = clock_now(), left = f->expected - (time - f->began);
    if (done < f->last || total != f->total) {
        f->first = done;
        f->stage_began = time;
    }
    f->last = done;
    f->total = total;
    double stage = 0;
    if (done > f->first && total > done)
        stage = (time - f->stage_began) / (double)(done - f->first) * (double)(total - done);
    return fmax(fmax(left, stage), 0);
}

void forecast_tell(const fr_study *s, const char *stage, uint64_t done, uint64_t total) {
    forecast *f = s->forecast;
    char text[256];
    if (!f) return;
    const char *key = f->now < 0 ? "units" : s->plan.units.at[f->now].key;
    if (s->plan.datas == 1 && strchr(key, '/')) key = strchr(key, '/') + 1; /* always the same */
    (void)snprintf(text, sizeof text, "%lld/%lld %s%s%s", (long long)(f->finished - f->skipped),
                   (long long)(f->units - f->skipped), key, stage ? ": " : "", stage ? stage : "");
    double so_far = f->before / f->hands, left = f->after / f->hands;
    if (f->now >= 0) {
        so_far += clock_now() - f->began;
        left += unit_left(f, done, total);
    }
    double all = so_far + left;
    context_progress(s->caller, text, (uint64_t)(so_far * 1e3), (uint64_t)(all * 1e3), "ms");
}
