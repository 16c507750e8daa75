/* statistic.h - resampling of metrics that are not a mean over events, such as a median (PROTOCOL
 * 11).
 *
 * For a mean the bootstrap needs only sums per block (bootstrap.h). Any other metric is computed
 * again from the records of a resample, in O(records) per resample. Blocks and signs equal those of
 * bootstrap.h for the same seed, so both ways agree on a mean. One thread does a whole resample, so
 * the bits are the same with any number of threads.
 */
#ifndef FR_EVAL_STATISTIC_H
#define FR_EVAL_STATISTIC_H

#include "base/memory.h"
#include "eval/bootstrap.h"

/* Consecutive records cut into blocks. */
typedef struct event_blocks {
    int64_t ranked; /* events */
    int64_t blocks;
    int64_t *start;  /* [blocks + 1] first record of each; in an arena of the caller's */
    int64_t largest; /* records of one block */
} event_blocks;

/* Blocks of `size` events for which ranked[count] is true; the others belong to the block of the
 * ranked events before them. */
fr_status blocks_cut(const bool *ranked, int64_t count, int64_t size, arena *memory,
                     event_blocks *out, fr_error *err);

/* A ranking whose metrics are resampled. */
typedef struct block_records {
    const fr_record *records;
    int oov;
    const event_blocks *cut;
} block_records;

/* out[resamples][names]: the metrics over blocks drawn with replacement. */
fr_status statistic_drawn(const block_records *from, const char *const *name, int names,
                          resampling how, const fr_context *context, double *out, fr_error *err);

/* A permutation test: where bootstrap_flips gives a block the sign -, the two rankings exchange
 * their records. Adds the metric of the second minus that of the first to out[resamples]. */
fr_status statistic_swapped(const block_records *first, const block_records *second,
                            const char *name, resampling how, const fr_context *context,
                            double *out, fr_error *err);

#endif
