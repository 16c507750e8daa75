/* craft_tables.h - the parts of CRAFT(-R) that depend only on the checkpoint (MODELS 2.6).
 *
 * Tables of candidates are by columns, [dim, room]: a candidate is a column, and `room` leaves at
 * least 15 zero columns after the last one, so blocks can be extended to whole vectors.
 */
#ifndef FR_MODELS_CRAFT_TABLES_H
#define FR_MODELS_CRAFT_TABLES_H

#include "models/craft.h"

static const double CRAFT_EPS = 1e-12;

typedef struct craft_layer_tables {
    real *key_item, *key_slot;     /* [items, dim], [slots, dim], with 1/sqrt(head width) */
    real *value_item, *value_slot; /* the same for values */
    /* The two branches end in a norm. The mean over the outputs is subtracted from weights and
     * biases, so their results have mean 0. */
    real *out_weight;  /* [dim, dim] */
    real *out_bias;    /* [dim] including the contribution that all values share */
    real *no_history;  /* [dim] the branch without history */
    real *ffn2_weight; /* [dim, 4 dim] */
    real *ffn2_bias;   /* [dim] */
} craft_layer_tables;

/* The code of a number x as the head's first rows see it: rho(x) (x slope + offset) + constant,
 * rho(x) = (square (x - centre)^2 + rest + eps)^(-1/2). */
typedef struct craft_code {
    double square, centre, rest;
    double *slope, *offset, *constant; /* [head rows] */
} craft_code;

typedef struct craft_tables {
    const model *m;
    const craft *c;
    arena memory;                        /* run; the caller may add to it */
    int slots;                           /* longest history there is, at most c->attend */
    int room;                            /* columns of tables */
    double *item_centred, *slot_centred; /* [items, dim], [slots, dim] rows minus means */
    real *q0;                            /* [dim, room] LN0(E) */
    real *query0;                        /* [dim, room] the first layer's queries */
    craft_layer_tables layer[MODEL_MOST_LAYERS];
    int head_rows;
    int codes;      /* inputs of the head's first layer per candidate, in addition to q */
    real *head;     /* [head rows, dim + codes] of q, rho x, rho of the elapsed time, and if there
                     * are repeats rho n, rho - rho(0) of theirs */
    real *constant; /* [head rows] bias and codes of a candidate not met */
    craft_code elapsed, repeats;
} craft_tables;

/* The tables must be freed even on failure. */
fr_status craft_tables_open(craft_tables *t, const model *m, fr_error *err);
void craft_tables_free(craft_tables *t);

static inline double craft_rho(const craft_code *c, double x) {
    double from_centre = x - c->centre;
    return 1 / sqrt(from_centre * from_centre * c->square + c->rest + CRAFT_EPS);
}

#endif
