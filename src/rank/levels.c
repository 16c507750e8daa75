/* levels.c - see levels.h. */
#include "rank/levels.h"

#include <string.h>

enum { WORD = 64 };

/* ---- places ---- */

static fr_status check_levels(const levels *l, const int32_t *level, fr_error *err) {
    const fr_window *w = l->w;
    for (int32_t i = 0; i < w->events; i++)
        if (level[i] < 0 || level[i] >= w->events)
            return fail(err, FR_EINPUT, "event %lld: level %d, expected 0 to %d",
                        (long long)(w->first + i), level[i], w->events - 1);
    return FR_OK;
}

/* Stable counting sort: events by the text of their destination's id, then by level. */
static fr_status sort_events(levels *l, const int32_t *level, fr_error *err) {
    const fr_window *w = l->w;
    TRY(check_levels(l, level, err));
    for (int32_t i = 0; i < w->events; i++)
        if (level[i] > l->top) l->top = level[i];
    TRY(TAKE(&l->memory, l->at, (size_t)l->top + 3, err));
    TRY(TAKE(&l->memory, l->after, w->events, err));
    uint32_t *next = l->at + 1; /* of each level, while it is filled */
    for (int32_t i = 0; i < w->events; i++) next[level[i]]++;
    uint32_t sum = (uint32_t)w->destinations; /* those without an event come first */
    for (int32_t k = 0; k <= l->top; k++) {
        uint32_t count = next[k];
        next[k] = sum;
        sum += count;
    }
    for (int32_t k = 0; k < w->destinations; k++) {
        int32_t v = l->who[k];
        for (int32_t j = w->destination_at[v]; j < w->destination_at[v + 1]; j++) {
            int32_t event = w->destination_events[j];
            l->after[event] = next[level[event]]++;
            l->who[l->after[event]] = v;
        }
    }
    memmove(l->at + 2, l->at + 1, ((size_t)l->top + 1) * sizeof *l->at); /* each has moved on */
    l->at[1] = (uint32_t)w->destinations;
    return FR_OK;
}

static fr_status order_places(levels *l, const int32_t *level, fr_error *err) {
    const fr_window *w = l->w;
    size_t places = (size_t)w->destinations + (level ? (size_t)w->events : 0);
    l->words = (uint32_t)(places / WORD + 1);
    TRY(TAKE(&l->memory, l->who, places, err));
    for (int32_t v = 0; v < w->destinations; v++) l->who[l->candidate[v].text] = v;
    if (level) return sort_events(l, level, err);
    TRY(TAKE(&l->memory, l->at, 3, err));
    l->at[2] = (uint32_t)w->destinations; /* level -1 is empty, all are at level 0 */
    return FR_OK;
}

/* ---- who is where ---- */

static void add(level_sums *to, level_sums what, int sign) {
    to->available += sign * what.available;
    to->catalog += sign * what.catalog;
    to->mass += sign * what.mass;
}

/* What a destination counts before event `cut`. */
static level_sums weigh(const levels *l, const level_candidate *c, int32_t cut) {
    bool in = levels_in_catalog(l, c, cut);
    return (level_sums){c->first < cut, in, in ? c->mass : 0};
}

static void set_bits(levels *l, uint32_t place, level_sums what) {
    uint64_t bit = (uint64_t)1 << place % WORD;
    if (what.available) l->available[place / WORD] ^= bit;
    if (what.catalog) l->catalog[place / WORD] ^= bit;
}

static void add_to_tree(levels *l, uint32_t word, level_sums what, int sign) {
    for (uint32_t k = word + 1; k <= l->words; k += k & -k) add(&l->tree[k], what, sign);
}

static void fill(levels *l, int32_t cut) {
    const fr_window *w = l->w;
    for (int32_t i = 0; l->after && i < cut; i++)
        l->candidate[w->destination[i]].place = l->after[i];
    for (int32_t v = 0; v < w->destinations; v++) {
        const level_candidate *c = &l->candidate[v];
        level_sums what = weigh(l, c, cut);
        set_bits(l, c->place, what);
        add(&l->tree[c->place / WORD + 1], what, 1);
        add(&l->all, what, 1);
    }
    for (uint32_t k = 1; k <= l->words; k++)
        if (k + (k & -k) <= l->words) add(&l->tree[k + (k & -k)], l->tree[k], 1);
    l->cut = cut;
}

fr_status levels_open(levels *l, const recorder *r, const int32_t *level, int32_t cut,
                      fr_error *err) {
    const fr_window *w = r->w;
    *l = (levels){.w = w};
    TRY(TAKE(&l->memory, l->candidate, w->destinations, err));
    for (int32_t v = 0; v < w->destinations; v++)
        l->candidate[v] = (level_candidate){.mass = r->mass[v],
                                            .place = (uint32_t)r->text[v],
                                            .first = r->first[v],
                                            .listed = !r->listed[v],
                                            .text = r->text[v],
                                            .stamp = -1};
    TRY(order_places(l, level, err));
    TRY(TAKE(&l->memory, l->available, l->words, err));
    TRY(TAKE(&l->memory, l->catalog, l->words, err));
    TRY(TAKE(&l->memory, l->tree, (size_t)l->words + 1, err));
    fill(l, cut);
    return FR_OK;
}

fr_status levels_copy(levels *l, const levels *from, fr_error *err) {
    *l = *from;
    l->memory = (arena){0};
    TRY(TAKE(&l->memory, l->candidate, l->w->destinations, err));
    TRY(TAKE(&l->memory, l->available, l->words, err));
    TRY(TAKE(&l->memory, l->catalog, l->words, err));
    TRY(TAKE(&l->memory, l->tree, (size_t)l->words + 1, err));
    memcpy(l->candidate, from->candidate, (size_t)l->w->destinations * sizeof *l->candidate);
    memcpy(l->available, from->available, l->words * sizeof *l->available);
    memcpy(l->catalog, from->catalog, l->words * sizeof *l->catalog);
    memcpy(l->tree, from->tree, ((size_t)l->words + 1) * sizeof *l->tree);
    return FR_OK;
}

void levels_close(levels *l) { arena_free(&l->memory); }

void levels_advance(levels *l, int32_t cut) {
    const fr_window *w = l->w;
    for (; l->cut < cut; l->cut++) {
        level_candidate *c = &l->candidate[w->destination[l->cut]];
        uint32_t from = c->place, to = l->after ? l->after[l->cut] : from;
        level_sums before = weigh(l, c, l->cut), now = weigh(l, c, l->cut + 1);
        if (from == to && before.available) continue;
        set_bits(l, from, before);
        set_bits(l, to, now);
        add_to_tree(l, from / WORD, before, -1);
        add_to_tree(l, to / WORD, now, 1);
        add(&l->all, before, -1);
        add(&l->all, now, 1);
        c->place = to;
    }
}

/* ---- counting ---- */

uint32_t levels_place(const levels *l, int32_t level) {
    if (level < -1) return 0;
    return level > l->top ? l->at[l->top + 2] : l->at[level + 1];
}

level_sums levels_below(const levels *l, uint32_t place) {
    level_sums sums = {0};
    uint32_t word = place / WORD;
    uint64_t below = ((uint64_t)1 << place % WORD) - 1;
    for (uint32_t k = word; k; k &= k - 1) add(&sums, l->tree[k], 1);
    sums.available += __builtin_popcountll(l->available[word] & below);
    sums.catalog += __builtin_popcountll(l->catalog[word] & below);
    for (uint64_t rest = l->catalog[word] & below; rest; rest &= rest - 1)
        sums.mass += l->candidate[l->who[(size_t)word * WORD + (size_t)__builtin_ctzll(rest)]].mass;
    return sums;
}

int32_t levels_before(const levels *l, int32_t tied, int32_t above, int32_t destination) {
    int32_t count = 0;
    const level_candidate *own = &l->candidate[destination];
    if (tied < -1) tied = -1;
    if (above > l->top + 1) above = l->top + 1;
    for (int32_t level = tied; level < above; level++) {
        uint32_t end = levels_place(l, level + 1), low = levels_place(l, level), high = end;
        if (own->place >= low && own->place < high) low = high = own->place + 1;
        while (low < high) { /* the first one with a larger text */
            uint32_t middle = low + (high - low) / 2;
            if (l->candidate[l->who[middle]].text <= own->text)
                low = middle + 1;
            else
                high = middle;
        }
        count += levels_below(l, end).catalog - levels_below(l, low).catalog;
    }
    return count;
}
