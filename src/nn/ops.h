/* ops.h - the operations of models. All take the tape first and return a new tensor.
 *
 * Variable-length histories are ragged: rows of all events one after the other, and `span`s that
 * say which query rows attend to which key rows. Heads are column slices. Parameters are named by
 * their numbers.
 */
#ifndef FR_NN_OPS_H
#define FR_NN_OPS_H

#include "nn/tape.h"

/* y[i] = table[index[i]], zeros if it is -1; index must live as long as the step */
tensor op_rows(tape *t, int table, int n, const int32_t *index);
/* Numbers from outside, copied: a constant. */
tensor op_input(tape *t, int rows, int cols, const real *v);
/* y[i] = x[index[i]], zeros if it is -1; index must live as long as the step */
tensor op_take(tape *t, tensor x, int n, const int32_t *index);
/* y[i] = (sum of x[from[i]] .. x[from[i+1]-1]) / divisor[i], n of them; an empty sum is 0 */
tensor op_mean(tape *t, tensor x, int n, const int32_t *from, const real *divisor);
/* y[i] = sum over tokens j = from[i] .. from[i+1]-1 of W_s x[j] + bias with s = j - from[i]; W_s is
 * columns s * width .. of the weight (out, slots * width); `from` must live as long as the step */
tensor op_patches(tape *t, tensor x, int n, const int32_t *from, int weight, int bias);
/* y[i,k] = cos(w_k delta_i + b_k), the angle in double; a constant if the weights are frozen */
tensor op_time(tape *t, int rows, const double *delta, int weight, int bias);
/* The weights of a GRU by number: (3 d, in), (3 d, d), (3 d), (3 d), row blocks r, z, n. */
typedef struct gru_params {
    int input, hidden, input_bias, hidden_bias;
} gru_params;
/* y[rows, d] with y[i] = GRU(x[i], s[i]) for the rows of x, a constant that begins with the states:
 * x[i] = [ s[i] ; .. ]. The caller sets the rows after them, to constants. */
tensor op_gru(tape *t, tensor x, int rows, const gru_params *w);
/* The same from both sides of the gates, input [n, 3 d] and hidden [n, 3 d], and the states s[n,
 * d], a constant. */
tensor op_gates(tape *t, tensor input, tensor hidden, tensor s, int rows);
/* y = x W^T + b; W (out, in); bias -1 = none */
tensor op_linear(tape *t, tensor x, int weight, int bias);
/* y[i] = W [ x[i] ; more[index[i]] ] + b, or W [ more[index[i]] ; x[i] ] + b if `more_first`: the
 * product with `more` is made once for each of its rows; index must live as long as the step */
tensor op_linear_beside(tape *t, tensor x, tensor more, const int32_t *index, bool more_first,
                        int weight, int bias);
/* Across rows: rows out[g] .. out[g+1]-1 of y are W[:outs, :ins] x + b[:outs] of the rows in[g] ..
 * in[g+1]-1 of x, column by column, for each group g; W (most outs, most ins). `in` and `out` must
 * live as long as the step. */
tensor op_slots(tape *t, tensor x, int weight, int bias, int groups, const int32_t *in,
                const int32_t *out);
/* y = gain * (x - mean) / sqrt(var + eps) + bias over each row, biased variance */
tensor op_norm(tape *t, tensor x, int gain, int bias, double eps);
tensor op_add(tape *t, tensor a, tensor b);
/* y[i] = scale * a[i] . b[i] */
tensor op_dot(tape *t, tensor a, tensor b, double scale);
tensor op_gelu(tape *t, tensor x);
tensor op_relu(tape *t, tensor x);
/* max(x, 0) + slope * min(x, 0), one slope */
tensor op_prelu(tape *t, tensor x, int slope);
/* y[i] = x[i] * weight + bias for scalars x; weight (cols, 1), bias (cols) */
tensor op_code(tape *t, int n, const real *x, int weight, int bias);
/* y = W2 Drop(GELU(W1 x + b1)) + b2 in one: the same as four ops, faster. {weight, bias} of both
 * layers; dropout as op_dropout, none if `site` is negative. */
tensor op_mlp(tape *t, tensor x, const int first[2], const int second[2], int site,
              const row_key *keys);
/* [a ; b ; ...] by columns */
tensor op_concat(tape *t, int count, const tensor *parts);
/* Inverted dropout at the tape's rate; `site` (0..31) and the keys[rows] choose the bits. The same
 * tensor if the rate is 0. */
tensor op_dropout(tape *t, tensor x, int site, const row_key *keys);

/* x + Drop(more), stored in x: for residual sums, where only a norm reads x in between. The
 * backward steps of the ops that made or read x must not need its values. */
tensor op_residual(tape *t, tensor x, tensor more, int site, const row_key *keys);

/* Queries from..to-1 attend to keys from..to-1. */
typedef struct span {
    int query_from, query_to, key_from, key_to;
} span;

static inline int span_queries(span s) { return s.query_to - s.query_from; }
static inline int span_keys(span s) { return s.key_to - s.key_from; }

/* Scaled dot-product attention with `heads` column slices; dropout on the weights at `site`, bits
 * by the key of the query row. A query without keys gets the zero vector. */
tensor op_attention(tape *t, tensor query, tensor key, tensor value, int heads, const span *spans,
                    int count, int site, const row_key *keys);

/* The same of queries, keys and values side by side, [rows, 3 d]. */
tensor op_attention_joint(tape *t, tensor qkv, int heads, const span *spans, int count, int site,
                          const row_key *keys);

/* The same result for few queries over many keys, without projecting the keys (attention.c): key
 * and value are the numbers of their weights (d, width of x) and of the value's bias, -1 = none;
 * the key's bias does not matter. Every query is in one span. */
tensor op_attention_folded(tape *t, tensor query, tensor x, int key, int value, int value_bias,
                           int heads, const span *spans, int count, int site, const row_key *keys);

/* Its two halves. First the query in the space of unprojected keys: U = Q_h WK_h of each head, one
 * after the other; WK (d, e), U [rows, heads * e]. */
tensor op_fold(tape *t, tensor query, int key, int heads);
/* Keys in parts: row p is [ x[index[p]] ; more[p] ]; index NULL: x[p]; more may have no columns. If
 * `more` is a constant, its side of the gradient is not formed. x is not a constant. */
typedef struct key_rows {
    int rows;
    tensor x, more;
    const int32_t *index; /* [rows] lives as long as the step */
} key_rows;
/* Then the rest. `asks` (NULL = row by row) says which row of u a query uses; every span has one
 * query then, in order. */
tensor op_attention_over(tape *t, tensor u, const int32_t *asks, const key_rows *over, int value,
                         int value_bias, int heads, const span *spans, int count, int site,
                         const row_key *keys);

/* ---- kernels, for ops and fast paths ---- */

/* Sums in sixteen fixed lanes. */
real kernel_sum(int n, const real *x);
real kernel_dot(int n, const real *x, const real *y);
/* Dropout factors (0 or 1 / keep) [heads, queries, n] of attention weights, by the keys of the
 * queries; room for queries * heads * (n + 7). */
void kernel_drop_weights(const tape *t, int site, int heads, int queries, int n,
                         const row_key *keys, real *room, real *factor);

/* Dropout factors (0 or 1 / keep) of rows, as op_dropout uses them. */
void kernel_dropout(const tape *t, int rows, int cols, int site, const row_key *keys, real *factor);

/* y[rows, cols] = gain * hat + bias with hat = (x - mean) * rho, rho = 1 / sqrt(var + eps) of each
 * row, after x += more, a residual. more [rows, cols], hat [rows, cols] and rho [rows] may be NULL;
 * they do not overlap; cols <= 1024. */
void kernel_norm(int rows, int cols, real *x, const real *more, const real *gain, const real *bias,
                 double eps, real *hat, real *rho, real *y);
/* y[outs, cols] = W[:outs, :ins] x[ins, cols] + b[:outs]: a group of op_slots; ld of W. */
void kernel_slots(int outs, int ins, int cols, const real *w, int ld, const real *b, const real *x,
                  real *y);
/* Softmax of scale * x over each row of x[rows, n], in place. */
void kernel_softmax(int rows, int n, real scale, real *x);

/* One row of op_time. n at most 1024. */
void kernel_time(int n, const real *weight, const real *bias, double delta, real *y);

typedef struct gru_weights {
    const real *input, *hidden, *input_bias, *hidden_bias; /* as in gru_params */
    const real *both, *both_bias; /* [2 dim, dim], [2 dim] of s in r and z */
} gru_weights;
/* Sets `both` from the others: r and z add up both sides, and x begins with s, so its weights may
 * be added beforehand. `room` is for 2 dim (dim + 1) numbers. */
void kernel_gru_join(int in, int dim, gru_weights *w, real *room);
/* y[i] = GRU(x[i], s[i]) with x[i] = [ s[i] ; .. ]; x [rows, in], y [rows, dim]; gates is room for
 * [rows, 3 dim] and [rows, dim]. */
void kernel_gru(int rows, int in, int dim, const real *x, const gru_weights *w, real *gates,
                real *y);

#endif
