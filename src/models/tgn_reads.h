/* tgn_reads.h - what forward reads: nodes at times, their neighbours, and the states of both.
 *
 * The events of a step are read in shards; the states they name are numbered together, so the
 * work for a state (applying a pending message, its query) is done once for all its readers. States
 * are cut into parts, which are computed one by one; shards and parts depend only on the events.
 */
#ifndef FR_MODELS_TGN_READS_H
#define FR_MODELS_TGN_READS_H

#include "models/tgn.h"

/* What the events of one shard read. Rows are the sources of all events, then all candidates; keys
 * are their neighbours, row by row. */
typedef struct tgn_inputs {
    int rows, keys, candidates;
    int states, queries;                 /* distinct ones; the first `queries` are those of rows */
    int64_t *place;                      /* [states] see tgn.h */
    int32_t *number;                     /* [states] among those of all shards */
    int32_t *row_state;                  /* [rows] numbers of states here */
    int32_t *key_state;                  /* [keys] */
    int32_t *key_event;                  /* [keys] */
    double *elapsed;                     /* [keys] t - t_j */
    span *spans;                         /* [rows] */
    row_key *row_keys;                   /* [rows] for dropout */
    row_key *weight_keys;                /* [rows] */
    int32_t *source_row, *candidate_row; /* [candidates] */
    tensor s, query;                     /* [states, dim], [queries, any] as the shard sees them */
} tgn_inputs;

/* Some of the states. */
typedef struct tgn_part {
    int states, updated, queries; /* the first `updated` states have a message */
    int64_t *place;               /* [states] */
    int32_t *query;               /* [queries] numbers of states here */
    tensor s, query_made;         /* [states, dim], [queries, any] */
} tgn_part;

/* Where a state is. */
typedef struct tgn_home {
    int32_t part, state, query; /* -1 = no query */
} tgn_home;

typedef struct tgn_reads {
    int shards, parts;
    int states, queries; /* distinct ones of all shards; queries come first */
    tgn_inputs *shard;
    tgn_part *part;
    tgn_home *home; /* [states] */
} tgn_reads;

/* Reads the events in shards of `events` each. Memory: the tape's step; NULL if it has failed. */
tgn_reads *tgn_read(const model *m, tape *t, const model_batch *b, int events, int parts);

#endif
