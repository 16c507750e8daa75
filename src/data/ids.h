/* ids.h - from the ids of a file to dense numbers.
 *
 * Two small tables. `id_table` gives each distinct id of a role a code in order of first
 * appearance; at the end ids are sorted and every code gets its rank, the dense index. Small ids,
 * as in public sets, are looked up in a plain array; the rest in a hash table.
 * `word_table` does the first step for ids that are words. Memory grows only with distinct ids.
 */
#ifndef FR_DATA_IDS_H
#define FR_DATA_IDS_H

#include "base/memory.h"

enum { ID_DIRECT = 1 << 22 }; /* ids below this use the plain array: at most 16 MB */

typedef struct id_table {
    int32_t *direct; /* [direct_room] code + 1 of small ids, 0 = not met */
    int64_t direct_room;
    int32_t *slots; /* [slot_count] code + 1 of the others, by hash; a power of two */
    size_t slot_count, large;
    ARRAY(int64_t) ids; /* by code */
} id_table;

/* The general case of id_code. */
fr_status id_code_slow(id_table *t, int64_t id, int32_t *code, fr_error *err);

/* The code of `id` (>= 0), new if it was not met before. */
static inline fr_status id_code(id_table *t, int64_t id, int32_t *code, fr_error *err) {
    if (id < t->direct_room && t->direct[id]) {
        *code = t->direct[id] - 1;
        return FR_OK;
    }
    return id_code_slow(t, id, code, err);
}

/* Sorts the ids ascending. *rank[code] = dense index of the id that had `code`; the caller frees
 * it. */
fr_status id_table_sort(id_table *t, int32_t **rank, fr_error *err);
void id_table_free(id_table *t);

typedef struct word_table {
    ARRAY(char) text;    /* all words, each with a final 0 */
    ARRAY(size_t) start; /* of word k in text */
    int64_t *slots;      /* [slot_count] word + 1 */
    size_t slot_count;
} word_table;

/* The number of a word, new if it was not met before. */
fr_status word_code(word_table *t, const char *word, size_t length, int64_t *code, fr_error *err);
static inline const char *word_text(const word_table *t, int64_t word) {
    return t->text.at + t->start.at[word];
}
/* order[k] = the word at place k in byte order; the caller frees it. */
fr_status word_table_sort(const word_table *t, int64_t **order, fr_error *err);
void word_table_free(word_table *t);

#endif
