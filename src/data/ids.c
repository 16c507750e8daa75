/* ids.c - see ids.h. */
#include "data/ids.h"

#include "base/os.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x) { /* every input bit reaches the top bits */
    x ^= x >> 32;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

/* ---- numbers ---- */

static fr_status grow_direct(id_table *t, int64_t id, fr_error *err) {
    int64_t room = t->direct_room ? t->direct_room : 1024;
    while (room <= id) room *= 2;
    int32_t *moved = realloc(t->direct, (size_t)room * sizeof *moved);
    if (!moved) return fail_memory(err, (size_t)room * sizeof *moved);
    memset(moved + t->direct_room, 0, (size_t)(room - t->direct_room) * sizeof *moved);
    t->direct = moved;
    t->direct_room = room;
    return FR_OK;
}

/* The slot that holds `id`, or the empty one where it belongs. */
static int32_t *find_slot(id_table *t, int64_t id) {
    size_t at = mix((uint64_t)id) & (t->slot_count - 1);
    while (t->slots[at] && t->ids.at[t->slots[at] - 1] != id) at = (at + 1) & (t->slot_count - 1);
    return &t->slots[at];
}

static fr_status grow_slots(id_table *t, fr_error *err) {
    size_t count = t->slot_count ? t->slot_count * 2 : 1024;
    int32_t *old = t->slots, *fresh;
    size_t old_count = t->slot_count;
    TRY(ALLOCATE(fresh, count, err));
    t->slots = fresh;
    t->slot_count = count;
    for (size_t i = 0; i < old_count; i++)
        if (old[i]) *find_slot(t, t->ids.at[old[i] - 1]) = old[i];
    free(old);
    return FR_OK;
}

fr_status id_code_slow(id_table *t, int64_t id, int32_t *code, fr_error *err) {
    int32_t *entry;
    if (id < ID_DIRECT) {
        if (id >= t->direct_room) TRY(grow_direct(t, id, err));
        entry = &t->direct[id];
    } else {
        if (t->large * 2 >= t->slot_count) TRY(grow_slots(t, err));
        entry = find_slot(t, id);
        t->large += !*entry;
    }
    if (!*entry) {
        if (t->ids.count == INT32_MAX)
            return fail(err, FR_EINPUT, "more than %d distinct ids of one role", INT32_MAX);
        ARRAY_PUSH(&t->ids, id, err);
        *entry = (int32_t)t->ids.count;
    }
    *code = *entry - 1;
    return FR_OK;
}

/* The places of `ids` in ascending order: sorted by digits of 11 bits, the lowest digit first; each
 * pass is stable. `spare` is room for n places. */
static void order_ids(const int64_t *ids, size_t n, int32_t *order, int32_t *spare) {
    enum { BITS = 11, DIGITS = 1 << BITS };
    int64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        order[i] = (int32_t)i;
        if (ids[i] > most) most = ids[i];
    }
    for (int shift = 0; shift < 63 && most >> shift; shift += BITS) {
        size_t start[DIGITS + 1] = {0};
        for (size_t i = 0; i < n; i++) start[(ids[i] >> shift & (DIGITS - 1)) + 1]++;
        for (int d = 0; d < DIGITS; d++) start[d + 1] += start[d];
        for (size_t i = 0; i < n; i++) {
            int64_t digit = ids[order[i]] >> shift & (DIGITS - 1);
            spare[start[digit]++] = order[i];
        }
        memcpy(order, spare, n * sizeof *order);
    }
}

fr_status id_table_sort(id_table *t, int32_t **rank, fr_error *err) {
    size_t n = t->ids.count;
    int32_t *order = NULL;
    int64_t *sorted = NULL;
    *rank = NULL;
    fr_status status = ALLOCATE(order, n, err);
    if (!status) status = ALLOCATE(sorted, n, err);
    if (!status) status = ALLOCATE(*rank, n, err);
    if (!status) {
        order_ids(t->ids.at, n, order, *rank); /* *rank is spare room until here */
        for (size_t i = 0; i < n; i++) {
            (*rank)[order[i]] = (int32_t)i;
            sorted[i] = t->ids.at[order[i]];
        }
        if (n) memcpy(t->ids.at, sorted, n * sizeof *sorted);
    }
    free(order);
    free(sorted);
    return status;
}

void id_table_free(id_table *t) {
    free(t->direct);
    free(t->slots);
    free(t->ids.at);
    *t = (id_table){0};
}

/* ---- words ---- */

static uint64_t hash_word(const char *word, size_t length) { /* FNV-1a */
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)word[i]) * 0x100000001b3u;
    return mix(h);
}

static int64_t *find_word(word_table *t, const char *word, size_t length) {
    size_t at = hash_word(word, length) & (t->slot_count - 1);
    for (; t->slots[at]; at = (at + 1) & (t->slot_count - 1)) {
        const char *text = word_text(t, t->slots[at] - 1);
        if (!strncmp(text, word, length) && !text[length]) break;
    }
    return &t->slots[at];
}

static fr_status grow_words(word_table *t, fr_error *err) {
    size_t count = t->slot_count ? t->slot_count * 2 : 1024;
    int64_t *fresh;
    TRY(ALLOCATE(fresh, count, err));
    free(t->slots);
    t->slots = fresh;
    t->slot_count = count;
    for (size_t k = 0; k < t->start.count; k++) {
        const char *text = word_text(t, (int64_t)k);
        *find_word(t, text, strlen(text)) = (int64_t)k + 1;
    }
    return FR_OK;
}

fr_status word_code(word_table *t, const char *word, size_t length, int64_t *code, fr_error *err) {
    if (t->start.count * 2 >= t->slot_count) TRY(grow_words(t, err));
    int64_t *slot = find_word(t, word, length);
    if (!*slot) {
        TRY(ARRAY_RESERVE(&t->text, length + 1, err));
        ARRAY_PUSH(&t->start, t->text.count, err);
        memcpy(t->text.at + t->text.count, word, length);
        t->text.at[t->text.count + length] = 0;
        t->text.count += length + 1;
        *slot = (int64_t)t->start.count;
    }
    *code = *slot - 1;
    return FR_OK;
}

static int by_text(const void *a, const void *b, void *table) {
    const word_table *t = table;
    return strcmp(word_text(t, *(const int64_t *)a), word_text(t, *(const int64_t *)b));
}

fr_status word_table_sort(const word_table *t, int64_t **order, fr_error *err) {
    TRY(ALLOCATE(*order, t->start.count, err));
    for (size_t k = 0; k < t->start.count; k++) (*order)[k] = (int64_t)k;
    os_sort(*order, t->start.count, sizeof **order, by_text, (void *)(uintptr_t)t);
    return FR_OK;
}

void word_table_free(word_table *t) {
    free(t->text.at);
    free(t->start.at);
    free(t->slots);
    *t = (word_table){0};
}
