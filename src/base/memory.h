/* memory.h - the three ways to hold memory.
 *
 * arena   many blocks of one lifetime (run, step or worker), freed or reset together.
 * array   one growing list of equal things, amortised O(1) per push.
 * plain   allocate() below, for a single block with an error message.
 *
 * An arena is a list of malloc'd slabs, filled from front to back. Blocks are 64-byte aligned for
 * vector kernels. Nothing is ever moved, so pointers stay valid until reset.
 */
#ifndef FR_BASE_MEMORY_H
#define FR_BASE_MEMORY_H

#include "base/status.h"

typedef struct arena {
    struct arena_slab *slabs; /* newest first */
    size_t used;              /* bytes handed out since the last reset */
} arena;

/* Stores `count` zeroed things of `size` bytes in *out. An empty request gives a valid pointer. */
fr_status arena_take(arena *a, size_t count, size_t size, void **out, fr_error *err);
/* The same without zeroing, for blocks that are written whole before they are read. */
fr_status arena_take_raw(arena *a, size_t count, size_t size, void **out, fr_error *err);
/* Forgets every block and keeps room for the same number of bytes in one slab. */
void arena_reset(arena *a);
void arena_free(arena *a);

/* TAKE(&arena, pointer, count, err): typed arena_take. */
#define TAKE(a, pointer, count, err)                                                               \
    arena_take((a), (size_t)(count), sizeof *(pointer), (void **)&(pointer), (err))

/* Zeroed memory, freed with free(). */
fr_status allocate(size_t count, size_t size, void **out, fr_error *err);
#define ALLOCATE(pointer, count, err)                                                              \
    allocate((size_t)(count), sizeof *(pointer), (void **)&(pointer), (err))

/* A growable array of T: ARRAY(int64_t) ids = {0}; ARRAY_PUSH(&ids, 7, err); free(ids.at). */
#define ARRAY(T)                                                                                   \
    struct {                                                                                       \
        T *at;                                                                                     \
        size_t count, room;                                                                        \
    }
/* Makes room for `extra` more elements; evaluates to an fr_status. */
#define ARRAY_RESERVE(array, extra, err)                                                           \
    array_reserve((void **)&(array)->at, (array)->count, &(array)->room, (extra),                  \
                  sizeof *(array)->at, (err))
/* Appends one element; returns from the calling function on failure. */
#define ARRAY_PUSH(array, value, err)                                                              \
    do {                                                                                           \
        if ((array)->count == (array)->room) TRY(ARRAY_RESERVE((array), 1, (err)));                \
        (array)->at[(array)->count++] = (value);                                                   \
    } while (0)

fr_status array_reserve(void **at, size_t count, size_t *room, size_t extra, size_t size,
                        fr_error *err);

#endif
