/* craft_tables.c - see craft_tables.h.
 *
 * With centred rows E' and P', a key's input is LN0(E_s + P_p) = rho (g0 * (E_s' + P_p')) + b0, so
 * keys and values are rho times the sum of a row per item and a row per slot, plus a constant. The
 * constant of keys adds the same number to all logits of a softmax and is dropped; that of values
 * passes through the softmax, whose weights sum to one, and is part of the output's bias.
 */
#include "models/craft_tables.h"

#include "nn/gemm.h"
#include "nn/lanes.h"

#include <string.h>

/* ---- items and slots ---- */

/* Centred rows of a table, and the same times g0. */
static void centre_rows(int rows, int dim, const real *table, const real *gain, double *centred,
                        real *scaled) {
    for (int i = 0; i < rows; i++, table += dim, centred += dim, scaled += dim) {
        double mean = 0;
        for (int k = 0; k < dim; k++) mean += table[k] / (double)dim;
        for (int k = 0; k < dim; k++) {
            centred[k] = table[k] - mean;
            scaled[k] = (real)(gain[k] * centred[k]);
        }
    }
}

static void make_queries(craft_tables *t, const real *gain, const real *bias) {
    int dim = t->c->dim;
    size_t room = (size_t)t->room;
    for (int v = 0; v < t->m->w->destinations; v++) {
        const double *row = t->item_centred + (size_t)v * (size_t)dim;
        double sum = 0;
        for (int k = 0; k < dim; k++) sum += row[k] * row[k];
        double rho = 1 / sqrt(sum / dim + CRAFT_EPS);
        for (int k = 0; k < dim; k++)
            t->q0[(size_t)k * room + (size_t)v] = (real)(row[k] * rho * gain[k] + bias[k]);
    }
    param_pair query = t->c->layer[0].query;
    for (int k = 0; k < dim; k++)
        for (size_t v = 0; v < room; v++)
            t->query0[(size_t)k * room + v] = model_value(t->m, query.bias)[k];
    gemm_nn(dim, t->room, dim, model_value(t->m, query.weight), dim, t->q0, t->room, t->query0,
            t->room, true);
}

/* *out = scale * (weight x) for rows x */
static fr_status project(craft_tables *t, int rows, const real *x, int weight, double scale,
                         real **out, fr_error *err) {
    int dim = t->c->dim;
    size_t size = (size_t)rows * (size_t)dim;
    TRY(TAKE(&t->memory, *out, size, err));
    gemm_nt(rows, dim, dim, x, dim, model_value(t->m, weight), dim, *out, dim, false);
    for (size_t k = 0; k < size; k++) (*out)[k] *= (real)scale;
    return FR_OK;
}

/* *out = rows of `in` numbers minus the mean of all rows */
static fr_status centre_outputs(craft_tables *t, int in, const real *x, real **out, fr_error *err) {
    int dim = t->c->dim;
    TRY(TAKE(&t->memory, *out, (size_t)dim * (size_t)in, err));
    for (int j = 0; j < in; j++) {
        double mean = 0;
        for (int i = 0; i < dim; i++) mean += x[i * in + j] / (double)dim;
        for (int i = 0; i < dim; i++) (*out)[i * in + j] = (real)(x[i * in + j] - mean);
    }
    return FR_OK;
}

/* x[dim] = the mean of the norms of all empty slots, which consist of positions only */
static void mean_of_slots(const craft_tables *t, double *x) {
    const craft *c = t->c;
    const real *gain = model_value(t->m, c->input_norm.weight),
               *bias = model_value(t->m, c->input_norm.bias);
    for (int k = 0; k < c->dim; k++) x[k] = bias[k];
    for (int p = 0; p < c->attend; p++) {
        const real *row = model_value(t->m, c->position) + p * c->dim;
        double mean = 0, square = 0;
        for (int k = 0; k < c->dim; k++) mean += row[k] / (double)c->dim;
        for (int k = 0; k < c->dim; k++) square += (row[k] - mean) * (row[k] - mean) / c->dim;
        double rho = 1 / sqrt(square + CRAFT_EPS) / c->attend;
        for (int k = 0; k < c->dim; k++) x[k] += (row[k] - mean) * rho * gain[k];
    }
}

/* *out = the branch of a source without history: WO of zero, or of the values of empty slots, which
 * are all equal */
static fr_status make_no_history(craft_tables *t, const craft_layer *y, real **out, fr_error *err) {
    int dim = t->c->dim;
    const real *value = model_value(t->m, y->value.weight),
               *weight = model_value(t->m, y->out.weight);
    double x[1024], v[1024]; /* the largest dim */
    real branch[1024];
    memcpy(branch, model_value(t->m, y->out.bias), (size_t)dim * sizeof *branch);
    if (t->c->pad) {
        mean_of_slots(t, x);
        for (int j = 0; j < dim; j++) {
            v[j] = model_value(t->m, y->value.bias)[j];
            for (int k = 0; k < dim; k++) v[j] += value[j * dim + k] * x[k];
        }
        for (int i = 0; i < dim; i++) {
            double sum = branch[i];
            for (int j = 0; j < dim; j++) sum += weight[i * dim + j] * v[j];
            branch[i] = (real)sum;
        }
    }
    return centre_outputs(t, 1, branch, out, err);
}

static fr_status make_layer(craft_tables *t, int l, const real *items, const real *slots,
                            fr_error *err) {
    const craft *c = t->c;
    const craft_layer *y = &c->layer[l];
    craft_layer_tables *to = &t->layer[l];
    int dim = c->dim, n = c->items;
    double scale = 1 / sqrt((double)(dim / c->heads));
    TRY(project(t, n, items, y->key.weight, scale, &to->key_item, err));
    TRY(project(t, t->slots, slots, y->key.weight, scale, &to->key_slot, err));
    TRY(project(t, n, items, y->value.weight, 1, &to->value_item, err));
    TRY(project(t, t->slots, slots, y->value.weight, 1, &to->value_slot, err));
    TRY(centre_outputs(t, dim, model_value(t->m, y->out.weight), &to->out_weight, err));
    TRY(make_no_history(t, y, &to->no_history, err));
    TRY(centre_outputs(t, 4 * dim, model_value(t->m, y->ffn2.weight), &to->ffn2_weight, err));
    TRY(centre_outputs(t, 1, model_value(t->m, y->ffn2.bias), &to->ffn2_bias, err));
    TRY(TAKE(&t->memory, to->out_bias, dim, err));
    const real *value = model_value(t->m, y->value.weight), *out = model_value(t->m, y->out.weight),
               *shift = model_value(t->m, c->input_norm.bias);
    double sum[1024], mean = 0; /* the largest dim */
    for (int i = 0; i < dim; i++) sum[i] = model_value(t->m, y->out.bias)[i];
    for (int j = 0; j < dim; j++) {
        double shared = model_value(t->m, y->value.bias)[j];
        for (int k = 0; k < dim; k++) shared += (double)value[j * dim + k] * shift[k];
        for (int i = 0; i < dim; i++) sum[i] += out[i * dim + j] * shared;
    }
    for (int i = 0; i < dim; i++) mean += sum[i] / dim;
    for (int i = 0; i < dim; i++) to->out_bias[i] = (real)(sum[i] - mean);
    return FR_OK;
}

/* ---- head ---- */

/* A code LN(weight x + bias) through the columns from `column` of the head's first layer [.., z].
 */
static fr_status make_code(craft_tables *t, craft_code *code, param_pair line, param_pair norm,
                           const real *first, int column, fr_error *err) {
    int dim = t->c->dim;
    const real *w = model_value(t->m, line.weight), *b = model_value(t->m, line.bias);
    const real *gain = model_value(t->m, norm.weight), *bias = model_value(t->m, norm.bias);
    double w_mean = 0, b_mean = 0, cross = 0;
    TRY(TAKE(&t->memory, code->slope, t->head_rows, err));
    TRY(TAKE(&t->memory, code->offset, t->head_rows, err));
    TRY(TAKE(&t->memory, code->constant, t->head_rows, err));
    for (int k = 0; k < dim; k++) {
        w_mean += w[k] / (double)dim;
        b_mean += b[k] / (double)dim;
    }
    for (int k = 0; k < dim; k++) {
        double slope = w[k] - w_mean, offset = b[k] - b_mean;
        code->square += slope * slope / dim;
        cross += slope * offset / dim;
        for (int j = 0; j < t->head_rows; j++) {
            double head = first[j * t->c->z + column + k];
            code->slope[j] += head * gain[k] * slope;
            code->offset[j] += head * gain[k] * offset;
            code->constant[j] += head * bias[k];
        }
    }
    /* The variance is a sum of squares along the weights and orthogonal to them, so nothing
     * cancels. */
    if (code->square > 0) code->centre = -cross / code->square;
    for (int k = 0; k < dim; k++) {
        double beside = b[k] - b_mean + code->centre * (w[k] - w_mean);
        code->rest += beside * beside / dim;
    }
    return FR_OK;
}

static fr_status make_head(craft_tables *t, fr_error *err) {
    const craft *c = t->c;
    param_pair pair = c->head_layers == 2 ? c->fc1 : c->fc2;
    const real *first = model_value(t->m, pair.weight);
    const craft_code *e = &t->elapsed, *r = &t->repeats;
    t->head_rows = c->head_layers == 2 ? c->z : 1;
    t->codes = c->repeat ? 4 : 2;
    int width = c->dim + t->codes;
    TRY(make_code(t, &t->elapsed, c->elapsed, c->elapsed_norm, first, c->dim, err));
    if (c->repeat)
        TRY(make_code(t, &t->repeats, c->repeats, c->repeat_norm, first, 2 * c->dim, err));
    TRY(TAKE(&t->memory, t->head, (size_t)t->head_rows * (size_t)width, err));
    TRY(TAKE(&t->memory, t->constant, t->head_rows, err));
    for (int k = 0; k < t->head_rows; k++) {
        real *row = t->head + k * width, *code = row + c->dim;
        double constant = model_value(t->m, pair.bias)[k] + e->constant[k];
        if (c->repeat) constant += r->constant[k] + craft_rho(r, 0) * r->offset[k];
        t->constant[k] = (real)constant;
        memcpy(row, first + k * c->z, (size_t)c->dim * sizeof *row);
        code[0] = (real)e->slope[k];
        code[1] = (real)e->offset[k];
        if (!c->repeat) continue;
        code[2] = (real)r->slope[k];
        code[3] = (real)r->offset[k];
    }
    return FR_OK;
}

/* ---- all ---- */

static int longest_history(const craft *c, const fr_window *w) {
    int longest = 0;
    for (int32_t u = 0; u < w->sources; u++) {
        int32_t events = window_node_events(w, window_source_node(w, u)).count;
        if (events > longest) longest = events;
    }
    return longest < c->attend ? longest : c->attend;
}

static fr_status make_tables(craft_tables *t, arena *step, fr_error *err) {
    const craft *c = t->c;
    int dim = c->dim, n = c->items;
    size_t item_size = (size_t)n * (size_t)dim, slot_size = (size_t)t->slots * (size_t)dim;
    size_t column_size = (size_t)dim * (size_t)t->room;
    real *items, *slots; /* [items, dim], [slots, dim] g0 * centred rows */
    TRY(TAKE(step, items, item_size, err));
    TRY(TAKE(step, slots, slot_size, err));
    TRY(TAKE(&t->memory, t->item_centred, item_size, err));
    TRY(TAKE(&t->memory, t->slot_centred, slot_size, err));
    TRY(TAKE(&t->memory, t->q0, column_size, err));
    TRY(TAKE(&t->memory, t->query0, column_size, err));
    const real *gain = model_value(t->m, c->input_norm.weight);
    centre_rows(n, dim, model_value(t->m, c->item), gain, t->item_centred, items);
    centre_rows(t->slots, dim, model_value(t->m, c->position), gain, t->slot_centred, slots);
    make_queries(t, gain, model_value(t->m, c->input_norm.bias));
    for (int l = 0; l < c->layers; l++) TRY(make_layer(t, l, items, slots, err));
    return make_head(t, err);
}

fr_status craft_tables_open(craft_tables *t, const model *m, fr_error *err) {
    *t = (craft_tables){.m = m, .c = m->own};
    t->slots = longest_history(t->c, m->w);
    t->room = lanes_round_up(t->c->items + LANES - 1);
    arena step = {0};
    fr_status status = make_tables(t, &step, err);
    arena_free(&step);
    return status;
}

void craft_tables_free(craft_tables *t) { arena_free(&t->memory); }
