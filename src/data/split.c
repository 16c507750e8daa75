/* split.c - see split.h. */
#include "data/split.h"

#include "base/number.h"
#include "data/date.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

static fr_status read_order(const char *text, int *order, int32_t *batch, fr_error *err) {
    char *end;
    *order = FR_ORDER_STREAM;
    *batch = 1;
    if (!text || !strcmp(text, "stream")) return FR_OK;
    if (!strcmp(text, "strict")) {
        *order = FR_ORDER_STRICT;
        return FR_OK;
    }
    long long size = strncmp(text, "batch:", 6) ? 0 : strtoll(text + 6, &end, 10);
    if (size < 1 || size > INT32_MAX || *end || !number_digit(text[6]))
        return fail(err, FR_EUSAGE,
                    "option order: found \"%s\", expected stream, strict or batch:N with N from 1 "
                    "to %d",
                    text, INT32_MAX);
    *batch = (int32_t)size;
    if (size > 1) *order = FR_ORDER_BATCH; /* batches of one event are the stream's own order */
    return FR_OK;
}

static void cut_strictly(fr_window *w) {
    for (int32_t i = 1; i < w->events; i++)
        w->cut[i] = w->time[i] > w->time[i - 1] ? i : w->cut[i - 1];
}

/* Batches start again with each part. Training has its own batches, so the past of a training event
 * is that of stream order. */
static void cut_by_batches(fr_window *w) {
    for (int32_t i = 0; i < w->events; i++) {
        int32_t part = i < w->train + w->val ? w->train : w->train + w->val;
        w->cut[i] = i < w->train ? i : i - (i - part) % w->batch;
    }
}

fr_status split_cuts(fr_window *w, fr_error *err) {
    TRY(read_order(w->protocol.order, &w->order, &w->batch, err));
    if (w->order == FR_ORDER_STREAM) return FR_OK;
    TRY(TAKE(&w->memory, w->cut, w->events, err));
    if (w->order == FR_ORDER_STRICT)
        cut_strictly(w);
    else
        cut_by_batches(w);
    return FR_OK;
}

/* ---- parts ---- */

enum { BY_SHARE, BY_QUANTILE, BY_COLUMN, BY_ROWS, BY_TIMES };

typedef struct split {
    int by;       /* BY_* */
    double at[2]; /* rows or times where validation and test begin; one number: they are equal */
} split;

static fr_status bad_split(const char *text, fr_error *err) {
    return fail(
        err, FR_EUSAGE,
        "option split: found \"%s\", expected share, quantile, column, rows:A,B or "
        "times:A,B with A <= B, where validation and test begin; times are numbers or dates "
        "such as 2024-01-31",
        text);
}

/* A row, a time or, if it is a time, a date; *end is where it ends, `from` if it is none. */
static double read_limit(const char *from, bool rows, const char **end) {
    double value = 0;
    if (!rows && date_begins(from)) {
        *end = date_read(from, true, &value);
        if (!*end) *end = from;
        return value;
    }
    char *after;
    value = number_read(from, &after);
    *end = after;
    return value;
}

static fr_status read_split(const char *text, split *out, fr_error *err) {
    static const char *const words[] = {"share", "quantile", "column"};
    *out = (split){.by = BY_SHARE};
    if (!text) return FR_OK;
    for (int k = 0; k < 3; k++) {
        out->by = k;
        if (!strcmp(text, words[k])) return FR_OK;
    }
    const char *colon = strchr(text, ':');
    bool rows = !strncmp(text, "rows:", 5);
    if (!rows && strncmp(text, "times:", 6)) return bad_split(text, err);
    out->by = rows ? BY_ROWS : BY_TIMES;
    const char *p = colon;
    for (int k = 0; k < 2; k++) {
        const char *end;
        out->at[k] = read_limit(p + 1, rows, &end);
        if (end == p + 1 || !isfinite(out->at[k]) || (*end && (k || *end != ',')))
            return bad_split(text, err);
        if (rows && (out->at[k] < 0 || out->at[k] != floor(out->at[k])))
            return bad_split(text, err);
        if (!*end && !k) { /* no validation */
            out->at[1] = out->at[0];
            return FR_OK;
        }
        p = end;
    }
    return out->at[0] <= out->at[1] ? FR_OK : bad_split(text, err);
}

fr_status split_check(const fr_protocol *protocol, fr_error *err) {
    int order;
    int32_t batch;
    split s;
    TRY(read_order(protocol->order, &order, &batch, err));
    return read_split(protocol->split, &s, err);
}

/* The q-quantile of ascending times, linear between neighbours: NumPy's default, with its two forms
 * of the last step, so thresholds have the same bits. */
static double quantile(const double *time, int32_t count, double q) {
    double place = (count - 1) * q, below = floor(place), weight = place - below;
    if (place >= count - 1) return time[count - 1];
    double a = time[(int32_t)below], b = time[(int32_t)below + 1], step = b - a;
    return weight >= 0.5 ? b - step * (1 - weight) : a + step * weight;
}

/* Events with a time below the limit, or up to it. */
static int32_t count_times(const fr_window *w, double limit, bool including) {
    int32_t low = 0, high = w->events;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (w->time[middle] < limit || (including && w->time[middle] == limit))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int32_t count_rows(const fr_window *w, double row) {
    double count = row - (double)w->first;
    return count < 0 ? 0 : count > w->events ? w->events : (int32_t)count;
}

static fr_status find_parts(const fr_window *w, const split *s, int32_t end[2], fr_error *err) {
    double share[2] = {w->protocol.train_share, w->protocol.train_share + w->protocol.val_share};
    const fr_stream_facts *f = &w->stream->facts;
    if (share[1] > 1)
        return fail(err, FR_EUSAGE,
                    "options train-share and val-share: %g and %g, expected a sum of at most 1",
                    share[0], w->protocol.val_share);
    for (int k = 0; k < 2; k++) {
        switch (s->by) {
        case BY_SHARE: end[k] = (int32_t)floor(share[k] * w->events); break;
        case BY_QUANTILE:
            end[k] = count_times(w, quantile(w->time, w->events, share[k]), true);
            break;
        case BY_COLUMN:
            if (f->split_train < 0)
                return fail(err, FR_EINPUT, "%s: no split column, but the split is by it",
                            w->stream->name);
            end[k] = count_rows(w, (double)(f->split_train + (k ? f->split_val : 0)));
            break;
        case BY_ROWS: end[k] = count_rows(w, s->at[k]); break;
        case BY_TIMES: end[k] = count_times(w, s->at[k], false); break;
        }
    }
    return FR_OK;
}

fr_status split_parts(fr_window *w, fr_error *err) {
    split s;
    int32_t end[2];
    TRY(read_split(w->protocol.split, &s, err));
    TRY(find_parts(w, &s, end, err));
    bool test = w->protocol.part == FR_PART_TEST;
    w->train = end[0];
    w->val = end[1] - end[0];
    w->from = test ? end[1] : end[0];
    w->to = test ? w->events : end[1];
    if (w->train >= 1 && w->to > w->from) return FR_OK;
    return fail(err, FR_EINPUT,
                "%s: split %s with train share %g and val share %g leaves %d of %d events for "
                "training, %d for validation and %d for test, expected at least 1 for training and "
                "1 for %s",
                w->stream->name, w->protocol.split, w->protocol.train_share, w->protocol.val_share,
                w->train, w->events, w->val, w->events - end[1], test ? "test" : "validation");
}
