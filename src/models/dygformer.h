/* dygformer.h - DyGFormer's parameters by number and what it reads of the window, shared by its
 * forward, its fast path and its form with pair memory (lha.h). */
#ifndef FR_MODELS_DYGFORMER_H
#define FR_MODELS_DYGFORMER_H

#include "models/model.h"
#include "models/transformer.h"

#define DYGFORMER_OPTIONS                                                                          \
    "dim heads layers history dropout attention-dropout time-dim time-trainable edge-dim patch "   \
    "identities"

typedef struct dygformer {
    int dim, channel, heads, layers, history, patch, time_dim, edge_dim; /* channel = dim / 4 */
    param_pair time, cooc1, cooc2;
    int node;                                      /* identities [nodes, dim]; -1 = none */
    param_pair patch_node;                         /* the weight only with identities */
    param_pair patch_edge, patch_time, patch_cooc; /* patch_edge.weight only if edge_dim > 0 */
    transformer_layer layer[MODEL_MOST_LAYERS];
    param_pair output, fc1, fc2;
} dygformer;

/* What forward reads of the window (MODELS 3.1). A side is a source at an event, or a candidate at
 * an event: its tokens are itself, then its kept history, oldest first. A sequence is a candidate's
 * source side and its own. Each side is computed once, so the candidates of an event share the
 * source's time and feature codes. Memory: step. */
typedef struct dygformer_inputs {
    int side_tokens, side_patches;
    double *delta;       /* [side tokens] seconds before the event */
    int32_t *token;      /* [side tokens] its event, -1 = the side itself */
    int32_t *node;       /* [side tokens] its node */
    int32_t *side_from;  /* [side patches + 1] first token */
    int tokens, patches; /* of all sequences */
    int32_t *count[2];   /* [tokens] occurrences of its node in the source's and in the candidate's
                            side */
    int most;            /* largest count */
    int32_t *side_patch; /* [patches] the corresponding patch of the side */
    int32_t *from;       /* [patches + 1] first token */
    row_key *keys;       /* [patches] */
    span *spans;         /* [sequences] */
    int32_t *mean_from;  /* [2 sequences + 1] first patch of source side, candidate side, ... */
    real *mean_divisor;  /* [2 sequences] patches of each */
} dygformer_inputs;

bool dygformer_read(const model *m, tape *t, const model_batch *b, dygformer_inputs *in);

/* Declares the parameters; the head's last layer reads `head_width` numbers. */
fr_status dygformer_declare(model *m, dygformer *f, int head_width, fr_error *err);
/* [candidates, dim] after the head's first layer; *z is its input. */
tensor dygformer_hidden(const model *m, tape *t, const model_batch *b, tensor *z);
int dygformer_head(const model *m, int *weights);

#endif
