/* tgn_reads.c - see tgn_reads.h. */
#include "models/tgn_reads.h"

/* ---- distinct places ---- */

/* Gives each place a number, in order of first occurrence. Memory: step. */
typedef struct numbering {
    int64_t *place; /* [count] by number */
    int32_t *slot;  /* [size] number + 1; 0 = free */
    uint64_t size;  /* a power of 2, at least twice as many as there may be */
    int32_t count;
} numbering;

static bool numbering_open(tape *t, numbering *n, size_t most) {
    *n = (numbering){.size = 4};
    while (n->size < 2 * most) n->size *= 2;
    n->place = tape_take(t, most, sizeof *n->place);
    n->slot = tape_take(t, n->size, sizeof *n->slot);
    return !t->status;
}

static int32_t number_of(numbering *n, int64_t place) {
    uint64_t at = ((uint64_t)place * 0x9e3779b97f4a7c15u >> 32) & (n->size - 1);
    for (; n->slot[at]; at = (at + 1) & (n->size - 1))
        if (n->place[n->slot[at] - 1] == place) return n->slot[at] - 1;
    n->place[n->count] = place;
    n->slot[at] = ++n->count;
    return n->count - 1;
}

/* ---- a shard ---- */

/* A row: a node at an event. */
typedef struct row {
    int32_t node, event, part;
    fr_history past;
} row;

/* Events first .. end - 1 of the batch. */
static row *read_rows(const model *m, tape *t, const model_batch *b, int first, int end,
                      tgn_inputs *in) {
    const tgn *c = m->own;
    const int32_t *from = b->from + first, *candidate = b->candidate + from[0];
    int events = end - first;
    in->candidates = from[events] - from[0];
    in->rows = events + in->candidates;
    in->source_row = tape_take(t, (size_t)in->candidates, sizeof *in->source_row);
    in->candidate_row = tape_take(t, (size_t)in->candidates, sizeof *in->candidate_row);
    row *rows = tape_take(t, (size_t)in->rows, sizeof *rows);
    if (t->status) return NULL;
    for (int i = 0, k = 0; i < events; i++) {
        int32_t e = b->event[first + i];
        rows[i] = (row){.node = window_source_node(m->w, m->w->source[e]), .event = e};
        for (int part = 1; k < from[i + 1] - from[0]; k++, part++) {
            int32_t node = window_destination_node(m->w, candidate[k]);
            rows[events + k] = (row){.node = node, .event = e, .part = part};
            in->source_row[k] = i;
            in->candidate_row[k] = events + k;
        }
    }
    for (int i = 0; i < in->rows && !c->identity; i++) {
        int32_t cut = window_cut(m->w, rows[i].event);
        rows[i].past = window_node_history(m->w, rows[i].node, cut, c->neighbors);
        in->keys += rows[i].past.count;
    }
    return rows;
}

static bool take_arrays(tape *t, tgn_inputs *in) {
    size_t rows = (size_t)in->rows, keys = (size_t)in->keys;
    in->row_state = tape_take(t, rows, sizeof *in->row_state);
    in->spans = tape_take(t, rows, sizeof *in->spans);
    in->row_keys = tape_take(t, rows, sizeof *in->row_keys);
    in->weight_keys = tape_take(t, rows, sizeof *in->weight_keys);
    in->key_state = tape_take(t, keys, sizeof *in->key_state);
    in->key_event = tape_take(t, keys, sizeof *in->key_event);
    in->elapsed = tape_take(t, keys, sizeof *in->elapsed);
    in->number = tape_take(t, rows + keys, sizeof *in->number);
    return !t->status;
}

static void read_keys(const tgn *c, const fr_window *w, row r, int at, numbering *n,
                      tgn_inputs *in) {
    int32_t cut = window_cut(w, r.event);
    double now = window_time(w, r.event);
    for (int p = 0; p < r.past.count; p++, at++) {
        int32_t j = r.past.event[p];
        in->key_event[at] = j;
        in->elapsed[at] = now - window_time(w, j);
        in->key_state[at] = number_of(n, tgn_place(c, w, window_other(w, r.node, j), cut));
    }
}

static bool read_shard(const model *m, tape *t, const model_batch *b, int first, int end,
                       tgn_inputs *in) {
    const fr_window *w = m->w;
    numbering n;
    row *rows = read_rows(m, t, b, first, end, in);
    if (!rows || !take_arrays(t, in) || !numbering_open(t, &n, (size_t)in->rows + (size_t)in->keys))
        return false;
    for (int i = 0, at = 0; i < in->rows; i++) {
        row r = rows[i];
        in->row_state[i] = number_of(&n, tgn_place(m->own, w, r.node, window_cut(w, r.event)));
        in->spans[i] = (span){i, i + 1, at, at + r.past.count};
        in->row_keys[i] = (row_key){r.event, r.part};
        /* the rows of one event have different numbers of neighbours, and their random bits would
         * overlap, so each row counts as a separate event */
        uint32_t own = (uint32_t)r.event + (uint32_t)r.part * (uint32_t)w->events;
        in->weight_keys[i] = (row_key){(int32_t)own, 0};
        at += r.past.count;
    }
    in->queries = n.count;
    for (int i = 0; i < in->rows; i++) read_keys(m->own, w, rows[i], in->spans[i].key_from, &n, in);
    in->states = n.count;
    in->place = n.place;
    return true;
}

/* ---- all shards ---- */

/* Numbers the states of all shards, those of rows first. */
static bool number_states(tape *t, tgn_reads *r, numbering *n) {
    size_t most = 0;
    for (int s = 0; s < r->shards; s++) most += (size_t)r->shard[s].states;
    if (!numbering_open(t, n, most)) return false;
    for (int pass = 0; pass < 2; pass++) {
        for (int s = 0; s < r->shards; s++) {
            tgn_inputs *in = &r->shard[s];
            int from = pass ? in->queries : 0, to = pass ? in->states : in->queries;
            for (int k = from; k < to; k++) in->number[k] = number_of(n, in->place[k]);
        }
        if (!pass) r->queries = n->count;
    }
    r->states = n->count;
    return true;
}

/* Where part number `part` begins if `count` things are cut into `parts` equal parts. */
static int part_from(int count, int part, int parts) {
    return (int)((int64_t)count * part / parts);
}

/* Part number p: its share of the states that are queries and of the others, in the order of
 * op_gru. */
static void fill_part(const tgn *c, const numbering *n, tgn_reads *r, int p) {
    tgn_part *part = &r->part[p];
    int others = r->states - r->queries;
    for (int idle = 0; idle < 2; idle++) {
        for (int kind = 0; kind < 2; kind++) {
            int begin = kind ? r->queries : 0, count = kind ? others : r->queries;
            for (int k = begin + part_from(count, p, r->parts);
                 k < begin + part_from(count, p + 1, r->parts); k++) {
                bool pending = n->place[k] < c->nodes && c->pending[n->place[k]];
                if (pending == idle) continue;
                r->home[k] = (tgn_home){p, part->states, kind ? -1 : part->queries};
                if (!kind) part->query[part->queries++] = part->states;
                part->place[part->states++] = n->place[k];
            }
        }
        if (!idle) part->updated = part->states;
    }
}

tgn_reads *tgn_read(const model *m, tape *t, const model_batch *b, int events, int parts) {
    tgn_reads *r = tape_take(t, 1, sizeof *r);
    if (!r) return NULL;
    r->shards = (b->events + events - 1) / events;
    r->parts = parts;
    r->shard = tape_take(t, (size_t)r->shards, sizeof *r->shard);
    r->part = tape_take(t, (size_t)parts, sizeof *r->part);
    for (int s = 0; s < r->shards && !t->status; s++) {
        int first = s * events, end = b->events - first < events ? b->events : first + events;
        if (!read_shard(m, t, b, first, end, &r->shard[s])) return NULL;
    }
    numbering n;
    if (t->status || !number_states(t, r, &n)) return NULL;
    r->home = tape_take(t, (size_t)r->states, sizeof *r->home);
    for (int p = 0; p < parts && !t->status; p++) {
        size_t most = (size_t)(r->states / parts + 2); /* both kinds are rounded up */
        r->part[p].place = tape_take(t, most, sizeof *r->part[p].place);
        r->part[p].query = tape_take(t, most, sizeof *r->part[p].query);
        if (!t->status) fill_part(m->own, &n, r, p);
    }
    return t->status ? NULL : r;
}
