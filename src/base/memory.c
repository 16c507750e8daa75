/* memory.c - see memory.h. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, SLAB_BYTES = 1 << 16 };

struct arena_slab {
    struct arena_slab *next;
    size_t size, used; /* bytes after the header; `used` is a multiple of ALIGNMENT */
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static bool overflows(size_t count, size_t size) { return size && count > (SIZE_MAX / 2) / size; }

fr_status arena_take_raw(arena *a, size_t count, size_t size, void **out, fr_error *err) {
    if (overflows(count, size)) return fail_memory(err, SIZE_MAX);
    size_t bytes = (count * size + ALIGNMENT) & ~(size_t)(ALIGNMENT - 1); /* at least one */
    struct arena_slab *slab = a->slabs;
    if (!slab || slab->size - slab->used < bytes) {
        size_t room = bytes > SLAB_BYTES ? bytes : SLAB_BYTES;
        slab = aligned_alloc(ALIGNMENT, sizeof *slab + room);
        if (!slab) return fail_memory(err, bytes);
        *slab = (struct arena_slab){.next = a->slabs, .size = room};
        a->slabs = slab;
    }
    *out = slab->bytes + slab->used;
    slab->used += bytes;
    a->used += bytes;
    return FR_OK;
}

fr_status arena_take(arena *a, size_t count, size_t size, void **out, fr_error *err) {
    TRY(arena_take_raw(a, count, size, out, err));
    memset(*out, 0, count * size);
    return FR_OK;
}

void arena_reset(arena *a) {
    size_t total = a->used + a->used / (4 * ALIGNMENT) * ALIGNMENT; /* room for a larger step */
    if (a->slabs && a->slabs->next) { /* next time one slab is enough */
        arena_free(a);
        struct arena_slab *slab = aligned_alloc(ALIGNMENT, sizeof *slab + total);
        if (slab) *slab = (struct arena_slab){.size = total};
        a->slabs = slab; /* if there is none, the next take makes one */
    }
    if (a->slabs) a->slabs->used = 0;
    a->used = 0;
}

void arena_free(arena *a) {
    for (struct arena_slab *slab = a->slabs, *next; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    *a = (arena){0};
}

fr_status allocate(size_t count, size_t size, void **out, fr_error *err) {
    *out = overflows(count, size) ? NULL : calloc(count ? count : 1, size ? size : 1);
    return *out ? FR_OK : fail_memory(err, count * size);
}

fr_status array_reserve(void **at, size_t count, size_t *room, size_t extra, size_t size,
                        fr_error *err) {
    if (extra <= *room - count) return FR_OK;
    if (extra > SIZE_MAX / 2 - count) return fail_memory(err, SIZE_MAX);
    size_t want = *room + *room / 2;
    if (want < count + extra) want = count + extra;
    if (want < 16) want = 16;
    void *moved = overflows(want, size) ? NULL : realloc(*at, want * size);
    if (!moved) return fail_memory(err, want * size);
    *at = moved;
    *room = want;
    return FR_OK;
}
