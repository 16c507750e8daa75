/* csv.h - interaction files row by row: the streaming reader of import.
 *
 * Rows come in blocks of fixed arrays; memory does not grow with the file. A block is parsed
 * straight out of the read buffer in one pass over the bytes: no tokens, no copies. If a
 * field is unusual (blanks, quotes, an error), it is parsed again by a slower, careful path.
 */
#ifndef FR_DATA_CSV_H
#define FR_DATA_CSV_H

#include "base/context.h"
#include "data/ids.h"
#include "data/input.h"
#include "data/layout.h"

typedef struct csv_rows {
    int64_t count;
    int64_t *source, *destination; /* [count] original ids, or numbers of words */
    double *time;                  /* [count] finite */
    uint8_t *part;  /* [count] PART_* of the split; NULL if there is no such column */
    int64_t *index; /* [count] ROLE_INDEX column, for DyGLib files */
    float *feature; /* [count, width] finite */
} csv_rows;

typedef struct csv {
    input in;
    layout layout;
    int64_t rows_per_block;
    csv_rows block;
    char *buffer; /* [room + 16]: unread bytes, always ending in a newline while rows are parsed */
    size_t room, at, end, complete; /* complete: after the last whole line */
    size_t piece;                   /* bytes read at once */
    int64_t line;                   /* number of the line at `at`, from 1 */
    bool ended;
    word_table *source_words, *destination_words; /* NULL: ids are numbers; may be the same table */
    enum { TIMES_UNKNOWN, TIMES_NUMBERS, TIMES_DATES } times; /* the first row decides */
    /* the error that the row parser found */
    int bad_field;
    const char *bad_text;
    bool bad_number; /* an id that is not a number, but may be a word */
} csv;

/* Opens the file of `in`, which the reader takes over (it closes it even on failure). The caller
 * owns the word tables, which may be NULL; `columns` as in fr_import. */
fr_status csv_open(csv *c, input in, const char *columns, word_table *source_words,
                   word_table *destination_words, const fr_context *context, fr_error *err);
/* The next rows in c->block; count 0 = the end. */
fr_status csv_next(csv *c, fr_error *err);
void csv_close(csv *c);

#endif
