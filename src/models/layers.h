/* layers.h - how models declare their layers: weight, then bias, which is also their order in the
 * checkpoint (MODELS 9).
 *
 * A layer of block l is named "layers.l.NAME"; outside the blocks (layer -1) it is just NAME. The
 * initial values are those of MODELS 1.7. */
#ifndef FR_MODELS_LAYERS_H
#define FR_MODELS_LAYERS_H

#include "nn/params.h"

/* A matrix (rows, cols), or with rows 0 a vector of cols, and a bias of as many numbers as it has
 * outputs; `scale` is that of both. */
param_pair layer_add(params *p, int layer, int rows, int cols, param_init weight, param_init bias,
                     double scale, const char *name);
/* "linear": both uniform, by the number of inputs. */
param_pair layer_linear(params *p, int layer, int rows, int cols, const char *name);
/* A layer norm. */
param_pair layer_norm(params *p, int layer, int cols, const char *name);
/* The identities of nodes, by number: a table (nodes, cols). */
int layer_nodes(params *p, int nodes, int cols);
/* The time encoder (MODELS 1.3), frozen unless it is trainable. */
param_pair layer_time(params *p, int width, bool trainable);

#endif
