/* layout.h - the roles of the columns of an interaction file.
 *
 * They are decided once, from the first line and the first row of events: the separator, whether
 * the first line has names, and the role of every column. Names are recognised in the spellings of
 * the public sets (docs/formats.md); `columns` overrides them.
 */
#ifndef FR_DATA_LAYOUT_H
#define FR_DATA_LAYOUT_H

#include "base/memory.h"

/* The parts of a split, in order of time, as a ROLE_SPLIT column numbers them. */
enum { PART_TRAIN, PART_VAL, PART_TEST, PARTS };

typedef enum role {
    ROLE_SKIP,
    ROLE_SOURCE,
    ROLE_DESTINATION,
    ROLE_TIME,
    ROLE_SPLIT, /* the part of the split an event belongs to (TGB-Seq) */
    ROLE_INDEX, /* row number in a separate feature file (DyGLib) */
    ROLE_FEATURE,
} role;

typedef struct layout {
    char separator;    /* ',' '\t' ';' or ' ' (any run of spaces and tabs) */
    bool named;        /* the first line has names */
    bool dyglib;       /* header ",u,i,ts,label,idx": ids from 1, features in a .npy */
    int fields;        /* columns per row */
    role *roles;       /* [fields] */
    int width;         /* number of ROLE_FEATURE columns */
    bool split;        /* there is a ROLE_SPLIT column */
    char ignored[256]; /* names of columns that are unexpectedly unused; "" = none */
} layout;

/* `first` is the first line, `row` the first one of events (the same line if there are no names);
 * both end at their newline or 0. `columns` may be NULL. `name` and
 * `line`, the number of the first line, are for messages. */
fr_status layout_detect(layout *out, const char *first, const char *row, int64_t line,
                        const char *columns, const char *name, fr_error *err);
void layout_free(layout *l);

/* "source", "time", ...: the role in words, for messages. */
const char *role_name(role r);

#endif
