/* layers.c - see layers.h. */
#include "models/layers.h"

#include <math.h>
#include <stdio.h>

param_pair layer_add(params *p, int layer, int rows, int cols, param_init weight, param_init bias,
                     double scale, const char *name) {
    char block[24] = "";
    if (layer >= 0) (void)snprintf(block, sizeof block, "layers.%d.", layer);
    param_pair out;
    out.weight = params_add(p, rows, cols, weight, scale, "%s%s.weight", block, name);
    out.bias = params_add(p, 0, rows ? rows : cols, bias, scale, "%s%s.bias", block, name);
    return out;
}

param_pair layer_linear(params *p, int layer, int rows, int cols, const char *name) {
    return layer_add(p, layer, rows, cols, INIT_LINEAR, INIT_LINEAR, 1 / sqrt((double)cols), name);
}

param_pair layer_norm(params *p, int layer, int cols, const char *name) {
    return layer_add(p, layer, 0, cols, INIT_ONE, INIT_ZERO, 0, name);
}

int layer_nodes(params *p, int nodes, int cols) {
    return params_add(p, nodes, cols, INIT_NORMAL, 0.02, "node.weight");
}

param_pair layer_time(params *p, int width, bool trainable) {
    param_pair out;
    out.weight = params_add(p, 0, width, INIT_TIME, 0, "time.weight");
    if (!trainable) params_freeze(p);
    out.bias = params_add(p, 0, width, INIT_ZERO, 0, "time.bias");
    if (!trainable) params_freeze(p);
    return out;
}
