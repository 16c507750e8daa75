/* events.c - see events.h. */
#include "rank/events.h"

#include "base/memory.h"
#include "base/rng.h"

#include <stdlib.h>

static uint64_t key_of(const fr_window *w, int32_t event, int64_t seed) {
    const rng_key key = {.seed = (uint64_t)seed, .purpose = RNG_EVENTS};
    rng_block bits = rng_bits(key, (uint64_t)(w->first + event), 0);
    return (uint64_t)bits.word[0] << 32 | bits.word[1];
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The largest key of the sample, and how many of its events have this key. Keys of 64 bits are
 * rarely equal, but it is possible. */
static fr_status find_limit(const event_list *l, const fr_window *w, uint64_t *limit,
                            int32_t *equal, fr_error *err) {
    uint64_t *key;
    TRY(ALLOCATE(key, l->part, err));
    for (int32_t k = 0; k < l->part; k++) key[k] = key_of(w, l->first + k, l->seed);
    qsort(key, (size_t)l->part, sizeof *key, by_size);
    *limit = key[l->count - 1];
    *equal = 0;
    for (int32_t k = l->count - 1; k >= 0 && key[k] == *limit; k--) ++*equal;
    free(key);
    return FR_OK;
}

fr_status events_open(event_list *l, const fr_window *w, int64_t sample, int64_t seed,
                      fr_error *err) {
    uint64_t limit;
    int32_t equal, rows = 0;
    *l = (event_list){.first = w->from, .part = w->to - w->from, .count = w->to - w->from};
    if (!sample || sample >= l->part) return FR_OK;
    l->count = (int32_t)sample;
    l->seed = seed;
    TRY(find_limit(l, w, &limit, &equal, err));
    TRY(ALLOCATE(l->event, l->count, err));
    TRY(ALLOCATE(l->row, l->part, err));
    for (int32_t k = 0; k < l->part; k++) {
        uint64_t key = key_of(w, l->first + k, seed);
        bool in = key < limit || (key == limit && equal-- > 0);
        l->row[k] = in ? rows : -1;
        if (in) l->event[rows++] = l->first + k;
    }
    return FR_OK;
}

fr_status events_given(event_list *l, const fr_window *w, const int32_t *event, int32_t count,
                       fr_error *err) {
    *l = (event_list){.first = w->from, .part = w->to - w->from, .count = count};
    TRY(ALLOCATE(l->event, count, err));
    TRY(ALLOCATE(l->row, l->part, err));
    for (int32_t k = 0; k < l->part; k++) l->row[k] = -1;
    for (int32_t k = 0; k < count; k++) {
        l->event[k] = event[k];
        l->row[event[k] - l->first] = k;
    }
    return FR_OK;
}

fr_status events_share(const event_list *all, int number, int count, int64_t shard, event_list *out,
                       fr_error *err) {
    int32_t rows = 0;
    *out = (event_list){.first = all->first, .part = all->part, .seed = all->seed};
    TRY(ALLOCATE(out->row, out->part, err));
    for (int32_t k = 0; k < all->count; k++) out->count += events_owner(k, count, shard) == number;
    TRY(ALLOCATE(out->event, out->count, err));
    for (int32_t k = 0; k < out->part; k++) out->row[k] = -1;
    for (int32_t k = 0; k < all->count; k++) {
        if (events_owner(k, count, shard) != number) continue;
        out->row[events_at(all, k) - all->first] = rows;
        out->event[rows++] = events_at(all, k);
    }
    return FR_OK;
}

void events_close(event_list *l) {
    free(l->event);
    free(l->row);
    *l = (event_list){0};
}
