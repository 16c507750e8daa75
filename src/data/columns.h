/* columns.h - the directory of .npy columns that import and synthesis write.
 *
 * Rows are put in any order of time; ids get codes on the way. Finishing turns codes into dense
 * indices (ascending by original id), sorts by time if rows were out of order, and moves the
 * directory into place. In order (the usual case) times and features are written once. Out of
 * order, rows of (time, row, source, destination) are sorted in runs of bounded size and merged;
 * features follow by row number. So memory is bounded by the number of distinct ids, not of rows.
 * The parts of a split must follow each other in order of time, so two counts in the manifest are
 * enough.
 *
 *   source.npy destination.npy  int32 [events], index into the ids
 *   time.npy                    float64 [events], non-decreasing
 *   features.npy                float32 [events, width], only if width > 0
 *   source_ids.npy destination_ids.npy  int64, ascending
 *   source_words.txt destination_words.txt  only if ids are words: line k is the word of id k
 *   manifest.json
 */
#ifndef FR_DATA_COLUMNS_H
#define FR_DATA_COLUMNS_H

#include "base/context.h"
#include "base/json.h"
#include "base/npy.h"
#include "data/ids.h"
#include "data/layout.h"

/* Number of rows of each part of a split, in the order of reading. */
typedef struct part_counts {
    int64_t rows[PARTS];
    int last;          /* part of the previous row */
    int64_t misplaced; /* 1 + input row of the first one that belongs before it; 0 = none */
    int found, behind; /* its part, and that of the previous row */
} part_counts;

typedef struct columns {
    staging place;
    int64_t width, rows;
    int64_t late;                 /* rows with a smaller time than an earlier row */
    double first_time, last_time; /* smallest and largest */
    id_table sources, destinations;
    npy_writer source, destination, time, feature; /* the first two hold codes until the end */
    bool split;
    part_counts parts; /* if `split` */
    npy_writer part;   /* if `split`: in input order, needed only if rows are out of order */
} columns;

/* What finishing needs besides the rows. */
typedef struct columns_finish {
    const word_table *source_words, *destination_words; /* NULL: ids are numbers */
    const char *input; /* name of the file, for messages about the split */
    bool one_based;  /* DyGLib ids: from 1, destinations after the sources if roles are separate */
    bool shared_ids; /* one id space for both roles */
    json_t *origin;  /* goes to the manifest as "source"; its reference is taken, even on failure */
    json_t *synth;   /* parameters of a synthetic stream or NULL; its reference is taken too */
} columns_finish;

/* Checks that `output` can be opened, for long work before the first row. */
fr_status columns_check(const char *output, bool force, fr_error *err);
/* `split`: rows have a part. */
fr_status columns_open(columns *c, const char *output, bool force, int64_t width, bool split,
                       fr_error *err);
/* Appends rows; `feature` is [count, width], NULL if width is 0; `part` [count], NULL without a
 * split. */
fr_status columns_put(columns *c, int64_t count, const int64_t *source, const int64_t *destination,
                      const double *time, const float *feature, const uint8_t *part, fr_error *err);
fr_status columns_close(columns *c, columns_finish finish, const fr_context *context,
                        fr_error *err);
/* Removes unfinished files; harmless after finishing. */
void columns_discard(columns *c);

#endif
