/* slices.c - rank records cut by what they say about their events (fullrank.h, chapter 11).
 *
 * A slice is a list of records like any other, so every metric, expectation and draw applies to it
 * as it is. Records are therefore copied, slice by slice, in their original order. The fields
 * belong to the event, not to the scorer, so rankings of the same events have the same slices.
 *
 * A field is a class (repeated or new) or a number. Numbers are cut at their quantiles, so
 * slices have about the same number of events; equal numbers stay together.
 */
#include "base/memory.h"
#include "base/text.h"
#include "eval/definition.h"
#include "rank/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BINS = 1000, MOST_CLASSES = 4 };

typedef struct field {
    fr_definition definition;        /* first, because fr_slice_field_at returns a pointer to it */
    const char *class[MOST_CLASSES]; /* names of the classes; none = a number */
    int64_t bins;                    /* of a number, unless given */
    bool whole;                      /* numbers are whole */
    const char *none;                /* the name of events without the number */
    /* The number or class of every record; not finite = none. */
    fr_status (*values)(const fr_record *records, int64_t count, double *out, fr_error *err);
} field;

/* ---- values ---- */

#define VALUES(name, expression)                                                                   \
    static fr_status name(const fr_record *records, int64_t count, double *out, fr_error *err) {   \
        (void)err;                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const fr_record *r = &records[i];                                                      \
            out[i] = (expression);                                                                 \
        }                                                                                          \
        return FR_OK;                                                                              \
    }
VALUES(repeated_values, r->repeated ? 0 : 1)
VALUES(pair_values, r->pair_count)
VALUES(source_values, r->source_degree)
VALUES(destination_values, r->destination_degree)
VALUES(gap_values, r->gap)
VALUES(time_values, r->time)

/* A record by its node. */
typedef struct visit {
    int64_t node, place;
    int32_t degree;
} visit;

static int by_node(const void *a, const void *b) {
    const visit *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Adds `weight` to the records of nodes that had no past at their first record. Later records of
 * these nodes have a past, but it begins in the ranked part. */
static void mark_new_nodes(visit *visits, int64_t count, double weight, double *out) {
    bool fresh = false;
    qsort(visits, (size_t)count, sizeof *visits, by_node);
    for (int64_t i = 0; i < count; i++) {
        if (!i || visits[i].node != visits[i - 1].node) fresh = visits[i].degree == 0;
        if (fresh) out[visits[i].place] += weight;
    }
}

static fr_status inductive_values(const fr_record *records, int64_t count, double *out,
                                  fr_error *err) {
    visit *visits;
    TRY(ALLOCATE(visits, count, err));
    for (int role = 0; role < 2; role++) {
        for (int64_t i = 0; i < count; i++) {
            const fr_record *r = &records[i];
            visits[i] = (visit){role ? r->destination : r->source, i,
                                role ? r->destination_degree : r->source_degree};
        }
        mark_new_nodes(visits, count, 1 + role, out);
    }
    free(visits);
    return FR_OK;
}

/* ---- the registry ---- */

static const field fields[] = {
    {{"repeated", FR_KIND_SLICE, "repeated and new pairs",
      "Repeated: source and destination have met before the event. New: they have not."},
     .class = {"repeated", "new"},
     .values = repeated_values},
    {{"inductive", FR_KIND_SLICE, "nodes without events before the ranked part",
      "No: both nodes have events before the ranked part. Source, destination, both: the "
      "first record of this node has degree 0, so all its events are in the ranked part. "
      "Nodes are distinguished by role: a node that has only been a source is a new "
      "destination. A new destination is not a candidate of a fixed catalog, so its "
      "events are not ranked."},
     .class = {"no", "source", "destination", "both"},
     .values = inductive_values},
    {{"source-degree", FR_KIND_SLICE, "events of the source so far",
      "The number of events that the source has before the event, source_degree of the record."},
     .bins = 4,
     .whole = true,
     .values = source_values},
    {{"destination-degree", FR_KIND_SLICE, "events of the destination so far",
      "The number of events that the destination has before the event, destination_degree of the "
      "record."},
     .bins = 4,
     .whole = true,
     .values = destination_values},
    {{"pair-count", FR_KIND_SLICE, "meetings of the pair so far",
      "The number of events that source and destination have with each other before the event, "
      "pair_count of the record. 0 is a new pair."},
     .bins = 4,
     .whole = true,
     .values = pair_values},
    {{"gap", FR_KIND_SLICE, "time since the pair last met",
      "The time since source and destination last met, gap of the record, in the data's "
      "unit of time. New pairs have no gap and form a separate slice."},
     .bins = 4,
     .none = "new",
     .values = gap_values},
    {{"time", FR_KIND_SLICE, "time of the event",
      "The time of the event since the window's first one, in the data's unit of time."},
     .bins = 10,
     .values = time_values},
};
enum { FIELDS = sizeof fields / sizeof *fields };

const fr_definition *fr_slice_field_at(int index) {
    return index >= 0 && index < FIELDS ? &fields[index].definition : NULL;
}

/* The field of "time:10" and its number, 0 if there is none; source_degree is source-degree. */
static const field *lookup(const char *text, int64_t *bins) {
    char plain[32];
    (void)snprintf(plain, sizeof plain, "%s", text);
    for (char *c = plain; *c; c++)
        if (*c == '_') *c = '-';
    for (int i = 0; i < FIELDS; i++)
        if (definition_match(plain, fields[i].definition.name, ':', bins)) return &fields[i];
    return NULL;
}

static fr_status find(const char *text, const field **out, int64_t *bins, fr_error *err) {
    *out = lookup(text, bins);
    if (!*out) return definition_unknown("slice", text, fr_slice_field_at, err);
    const char *name = (*out)->definition.name;
    if ((*out)->class[0] && *bins)
        return fail(err, FR_EUSAGE, "%s: has slices of its own, expected %s without a number", text,
                    name);
    if (*bins > MOST_BINS)
        return fail(err, FR_EUSAGE, "%s: expected at most %d slices", text, MOST_BINS);
    if (!*bins) *bins = (*out)->bins;
    return FR_OK;
}

/* ---- cutting ---- */

typedef struct cutting {
    arena memory;
    const field *by;
    double *value; /* [count], of each record */
    double *edge;  /* [edges] slice k has edge[k] <= value < edge[k + 1]; the last edge is beyond */
    int edges;
    fr_slice *slice; /* [slices] those of the edges or classes, then that of records without one */
    int slices;
} cutting;

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Moves the different numbers of a sorted list to its front and returns how many there are. */
static int unique(double *at, int count) {
    int n = 0;
    for (int i = 0; i < count; i++)
        if (!n || at[i] != at[n - 1]) at[n++] = at[i];
    return n;
}

/* Whole edges are easier to read. They are used unless this would merge slices. */
static fr_status make_edges(cutting *c, int64_t count, int64_t bins, fr_error *err) {
    double *sorted, *whole, most;
    int64_t n = 0;
    TRY(TAKE(&c->memory, c->edge, bins + 1, err));
    TRY(TAKE(&c->memory, whole, bins, err));
    TRY(ALLOCATE(sorted, count, err));
    for (int64_t i = 0; i < count; i++)
        if (isfinite(c->value[i])) sorted[n++] = c->value[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    for (int64_t k = 0; n && k < bins; k++) {
        c->edge[k] = sorted[k * n / bins];
        whole[k] = floor(c->edge[k]);
    }
    most = n ? sorted[n - 1] : 0;
    free(sorted);
    if (!n) return FR_OK;
    c->edges = unique(c->edge, (int)bins);
    if (unique(whole, (int)bins) == c->edges)
        memcpy(c->edge, whole, (size_t)c->edges * sizeof *whole);
    double beyond = floor(most) + 1;
    c->edge[c->edges++] = beyond > most ? beyond : nextafter(most, INFINITY);
    return FR_OK;
}

/* "3", "4-17", "[0, 3600)" */
static fr_status make_label(cutting *c, fr_slice *s, fr_error *err) {
    enum { SIZE = 72 };
    char *text, from[32], to[32];
    TRY(TAKE(&c->memory, text, SIZE, err));
    (void)text_real(s->from, false, from, sizeof from);
    (void)text_real(c->by->whole ? s->to - 1 : s->to, false, to, sizeof to);
    if (!c->by->whole)
        (void)snprintf(text, SIZE, "[%s, %s)", from, to);
    else
        (void)snprintf(text, SIZE, strcmp(from, to) ? "%s-%s" : "%s", from, to);
    s->label = text;
    return FR_OK;
}

static fr_status name_slices(cutting *c, fr_error *err) {
    int classes = 0;
    while (classes < MOST_CLASSES && c->by->class[classes]) classes++;
    int cuts = c->edges ? c->edges - 1 : 0;
    c->slices = classes ? classes : cuts + 1;
    TRY(TAKE(&c->memory, c->slice, c->slices, err));
    for (int k = 0; k < c->slices; k++) {
        fr_slice *s = &c->slice[k];
        *s = (fr_slice){.from = NAN, .to = NAN};
        if (classes) {
            s->label = c->by->class[k];
        } else if (k == cuts) {
            s->label = c->by->none ? c->by->none : "none";
        } else {
            s->from = c->edge[k];
            s->to = c->edge[k + 1];
            TRY(make_label(c, s, err));
        }
    }
    return FR_OK;
}

static int slice_of(const cutting *c, double value) {
    if (c->by->class[0]) return (int)value;
    if (!isfinite(value)) return c->slices - 1;
    int low = 0, high = c->slices - 1; /* edge[low] <= value < edge[high] */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (c->edge[middle] <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Copies the records, slice by slice, and leaves out slices without any. */
static fr_status deal(cutting *c, const fr_record *records, int64_t count, fr_error *err) {
    fr_record *copy, **next;
    int kept = 0;
    TRY(TAKE(&c->memory, copy, count, err));
    TRY(TAKE(&c->memory, next, c->slices, err));
    for (int64_t i = 0; i < count; i++) c->slice[slice_of(c, c->value[i])].events++;
    for (int k = 0; k < c->slices; k++) {
        c->slice[k].records = next[k] = copy;
        copy += c->slice[k].events;
    }
    for (int64_t i = 0; i < count; i++) {
        int k = slice_of(c, c->value[i]);
        *next[k]++ = records[i];
        c->slice[k].ranked += records[i].covered;
    }
    for (int k = 0; k < c->slices; k++)
        if (c->slice[k].events) c->slice[kept++] = c->slice[k];
    c->slices = kept;
    return FR_OK;
}

static fr_status cut(cutting *c, const fr_record *records, int64_t count, int64_t bins,
                     fr_error *err) {
    TRY(TAKE(&c->memory, c->value, count, err));
    TRY(c->by->values(records, count, c->value, err));
    if (bins) TRY(make_edges(c, count, bins, err));
    TRY(name_slices(c, err));
    return deal(c, records, count, err);
}

fr_status fr_slices_compute(const fr_record *records, int64_t count, const char *by, fr_slices *out,
                            fr_error *err) {
    cutting *c;
    const field *f;
    int64_t bins;
    NEED(out, err);
    *out = (fr_slices){0};
    NEED(by, err);
    TRY(find(by, &f, &bins, err));
    TRY(check_records(records, count, FR_OOV_EXCLUDE, err));
    TRY(ALLOCATE(c, 1, err));
    c->by = f;
    fr_status status = cut(c, records, count, bins, err);
    *out = (fr_slices){f->definition.name, c->slices, c->slice, c};
    if (status) fr_slices_free(out);
    return status;
}

void fr_slices_free(fr_slices *slices) {
    if (!slices) return;
    cutting *c = slices->memory;
    if (c) {
        arena_free(&c->memory);
        free(c);
    }
    *slices = (fr_slices){0};
}
