/* vmath_kernel.h - the elementwise functions with the vectors of one instruction set.
 *
 * Included by vmath.c once per instruction set, with these defined (and undefined again at the
 * end):
 *
 *     KERNEL(name)               the name with the set's suffix
 *     TARGET                     attribute of functions that may use the set
 *     LANES                      floats of a vector
 *     FLOATS, INTS, DOUBLES      vectors of LANES floats, LANES int32, LANES/2 doubles
 *     multiply_add(a, b, c)      a b + c rounded once; multiply_add_double
 *     least(a, b), most(a, b)    a < b ? a : b and a > b ? a : b, so a NaN in b stays
 *     choose(a, b, yes, no)      a < b ? yes : no
 *     scale(x, n)                x 2^n rounded once, n whole and |n| < 200
 *     lookup(table, i)           table[i mod 16] of each lane, the table aligned to a vector
 *
 * Only additions, multiplications, divisions and fused multiply-adds in a fixed order: every set
 * gives the same bits. Coefficients are minimax fits of relative error; the comments give
 * their errors, which are well below those of rounding.
 */

#define INLINE static inline __attribute__((always_inline)) TARGET

INLINE FLOATS KERNEL(all)(float x) { return (FLOATS){0} + x; }

INLINE FLOATS KERNEL(size_of)(FLOATS x) { return (FLOATS)((INTS)x & 0x7fffffff); }

/* size with the sign of x; size >= 0 */
INLINE FLOATS KERNEL(with_sign)(FLOATS size, FLOATS x) {
    return (FLOATS)((INTS)size | ((INTS)x & (int32_t)0x80000000));
}

/* c[0] + c[1] x + ... + c[terms-1] x^(terms-1); terms >= 4. Even and odd powers apart: two short
 * chains of dependent steps instead of a long one. */
INLINE FLOATS KERNEL(polynomial)(FLOATS x, const float *c, int terms) {
    FLOATS square = x * x;
    FLOATS y = KERNEL(all)(c[terms - 1]), z = KERNEL(all)(c[terms - 2]);
#pragma GCC unroll 16
    for (int i = terms - 3; i >= 0; i -= 2) y = multiply_add(y, square, KERNEL(all)(c[i]));
#pragma GCC unroll 16
    for (int i = terms - 4; i >= 0; i -= 2) z = multiply_add(z, square, KERNEL(all)(c[i]));
    return terms % 2 ? multiply_add(z, x, y) : multiply_add(y, x, z);
}

/* exp(n ln 2 + r) = 2^n (1 + r + r^2 Q(r)), |r| <= ln 2 / 2; Q to 3e-9. Beyond the limits the
 * result is 0 or infinity either way. */
INLINE FLOATS KERNEL(exp_of)(FLOATS x) {
    static const float q[] = {0x1p-1f, 0.16666512f, 0.041666187f, 0.0083695985f, 0.0013951717f};
    x = most(KERNEL(all)(-104), least(KERNEL(all)(89), x));
    FLOATS whole = KERNEL(all)(0x1.8p23f); /* adding it leaves no fraction bits */
    FLOATS n = multiply_add(x, KERNEL(all)(0x1.715476p0f), whole) - whole;
    FLOATS r = multiply_add(n, KERNEL(all)(-0x1.62e400p-1f), x); /* exact: ln 2 to 16 bits */
    r = multiply_add(n, KERNEL(all)(-0x1.7f7d1cp-20f), r);
    FLOATS y = multiply_add(KERNEL(polynomial)(r, q, 5), r * r, r) + 1;
    return scale(y, n);
}

/* 1 / (1 + exp(-x)) and, left of 0, exp(x) / (1 + exp(x)) */
INLINE FLOATS KERNEL(sigmoid_of)(FLOATS x) {
    FLOATS e = KERNEL(exp_of)(-KERNEL(size_of)(x));
    return choose(x, KERNEL(all)(0), e, KERNEL(all)(1)) / (e + 1);
}

/* Near 0 x + x^3 P(x^2), P to 3e-9; else 1 - 2 / (exp(2|x|) + 1) */
INLINE FLOATS KERNEL(tanh_of)(FLOATS x) {
    static const float p[] = {-0.333332986f, 0.133319587f, -0.0537866801f, 0.0208053775f,
                              -0.00590586057f};
    FLOATS size = KERNEL(size_of)(x), square = x * x;
    FLOATS near = multiply_add(KERNEL(polynomial)(square, p, 5) * square, size, size);
    FLOATS far = 1 - 2 / (KERNEL(exp_of)(2 * size) + 1);
    return KERNEL(with_sign)(choose(size, KERNEL(all)(0.6f), near, far), x);
}

/* A function given by pieces (vmath.c), at most(t, 0) up to the last piece's middle. The place of t
 * in its piece is exact, whichever of two neighbours rounding chooses. */
INLINE FLOATS KERNEL(by_pieces)(FLOATS t, const float (*piece)[PIECES], int terms) {
    FLOATS whole = KERNEL(all)(0x1.8p23f); /* adding it leaves the number of the piece */
    FLOATS sum = multiply_add(t, KERNEL(all)(1 / PIECE_WIDTH), whole);
    FLOATS r = multiply_add(sum - whole, KERNEL(all)(-PIECE_WIDTH), t);
    FLOATS y = lookup(piece[terms - 1], (INTS)sum);
#pragma GCC unroll 8
    for (int i = terms - 2; i >= 0; i--) y = multiply_add(y, r, lookup(piece[i], (INTS)sum));
    return y;
}

/* |x|, but not beyond the middle of the last piece */
INLINE FLOATS KERNEL(distance)(FLOATS x) {
    return least(KERNEL(all)((PIECES - 1) * PIECE_WIDTH), KERNEL(size_of)(x));
}

/* The normal tail Phi(-t) */
INLINE FLOATS KERNEL(tail_of)(FLOATS t) { return KERNEL(by_pieces)(t, tail_pieces, 6); }

/* Near 0 x + x P(x^2), P to 3e-10; else 1 - 2 Phi(-sqrt(2) |x|) */
INLINE FLOATS KERNEL(erf_of)(FLOATS x) {
    static const float p[] = {0.128379167f,  -0.376126349f,    0.112837195f,   -0.0268607531f,
                              0.0052044359f, -0.000818192668f, 8.53883685e-05f};
    FLOATS size = KERNEL(size_of)(x);
    FLOATS tail = KERNEL(tail_of)(KERNEL(distance)(size * 0x1.6a09e6p0f));
    FLOATS far = multiply_add(tail, KERNEL(all)(-2), KERNEL(all)(1));
    FLOATS near = multiply_add(KERNEL(polynomial)(x * x, p, 7), size, size);
    return KERNEL(with_sign)(choose(size, KERNEL(all)(0.9f), near, far), x);
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|): nothing cancels on either side */
INLINE FLOATS KERNEL(gelu_of)(FLOATS x) {
    FLOATS t = KERNEL(distance)(x);
    return multiply_add(-t, KERNEL(tail_of)(t), most(KERNEL(all)(0), x));
}

/* Phi(x) + x phi(x); its values at t and -t add up to 1 */
INLINE FLOATS KERNEL(gelu_slope)(FLOATS x) {
    FLOATS below = KERNEL(by_pieces)(KERNEL(distance)(x), slope_pieces, 7);
    return choose(x, KERNEL(all)(0), below, 1 - below);
}

/* sin(r) for r = x - (n + shift) pi, negated for odd n + flip. With n + shift below 2^30 the first
 * multiply-add is exact, so the angle keeps all its bits; the second takes the rest of pi to 107
 * bits. Polynomial to 6e-14. */
INLINE DOUBLES KERNEL(wave)(DOUBLES x, double shift, int64_t flip) {
    static const double p[] = {-0.16666666666526928,    0.008333333322329349,
                               -0.00019841266955292975, 2.755697104748302e-06,
                               -2.503084565291717e-08,  1.5418270984989113e-10};
    const DOUBLES none = {0};
    DOUBLES whole = none + 0x1.8p52;
    DOUBLES sum = multiply_add_double(x, none + 0x1.45f306dc9c883p-2, none - shift) + whole;
    DOUBLES n = sum - whole + shift;
    DOUBLES r = multiply_add_double(n, none - 0x1.921fb54442d18p1, x);
    r = multiply_add_double(n, none - 0x1.1a62633145c07p-53, r);
    DOUBLES square = r * r, y = none + p[5];
#pragma GCC unroll 8
    for (int i = 4; i >= 0; i--) y = multiply_add_double(y, square, none + p[i]);
    y = multiply_add_double(y * square, r, r);
    return (DOUBLES)((LONGS)y ^ (((LONGS)sum + flip) << 63));
}

/* The tail of an array goes through the same code, in a separate vector. */
#define EACH(name, of)                                                                             \
    static TARGET void KERNEL(name)(int64_t n, const float *x, float *y) {                         \
        int64_t i = 0;                                                                             \
        FLOATS v;                                                                                  \
        for (; i + LANES <= n; i += LANES) {                                                       \
            memcpy(&v, x + i, sizeof v);                                                           \
            v = KERNEL(of)(v);                                                                     \
            memcpy(y + i, &v, sizeof v);                                                           \
        }                                                                                          \
        if (i == n) return;                                                                        \
        size_t rest = (size_t)(n - i) * sizeof *x;                                                 \
        float part[LANES] = {0};                                                                   \
        memcpy(part, x + i, rest);                                                                 \
        memcpy(&v, part, sizeof v);                                                                \
        v = KERNEL(of)(v);                                                                         \
        memcpy(part, &v, sizeof v);                                                                \
        memcpy(y + i, part, rest);                                                                 \
    }
EACH(exp, exp_of)
EACH(sigmoid, sigmoid_of)
EACH(tanh, tanh_of)
EACH(erf, erf_of)
EACH(gelu, gelu_of)
EACH(gelu_slopes, gelu_slope)
#undef EACH

/* Columns that do not fill whole vectors: exp takes as many neighbours as possible, up to whole
 * rows. */
static TARGET void KERNEL(exp_narrow)(int rows, int width, int count, float *x, float *total) {
    float *at = x;
    for (int k = 0; k < count; k++) {
        float largest = -INFINITY;
        for (int i = 0; i < rows; i++)
            largest = largest > x[i * width + k] ? largest : x[i * width + k];
        for (int i = 0; i < rows; i++) x[i * width + k] -= largest;
    }
    if (count == width)
        KERNEL(exp)((int64_t)rows * width, x, x);
    else
        for (int i = 0; i < rows; i++, at += width) KERNEL(exp)(count, at, at);
    for (int k = 0; k < count; k++) {
        total[k] = 0;
        for (int i = 0; i < rows; i++) total[k] += x[i * width + k];
    }
}

static TARGET void KERNEL(exp_columns)(int rows, int width, float *x, float *total) {
    int j = 0;
    for (; j + LANES <= width; j += LANES) {
        FLOATS largest = KERNEL(all)(-INFINITY), sum = KERNEL(all)(0), v;
        float *at = x + j;
        for (int i = 0; i < rows; i++, at += width) {
            memcpy(&v, at, sizeof v);
            largest = most(largest, v);
        }
        at = x + j;
        for (int i = 0; i < rows; i++, at += width) {
            memcpy(&v, at, sizeof v);
            v = KERNEL(exp_of)(v - largest);
            sum += v;
            memcpy(at, &v, sizeof v);
        }
        memcpy(total + j, &sum, sizeof sum);
    }
    if (j < width) KERNEL(exp_narrow)(rows, width, width - j, x + j, total + j);
}

/* `count` columns of a row of vmath_gelu_norm */
INLINE void KERNEL(gelu_norm_part)(int count, const float *x, float add, float gain, float bias,
                                   const float *rho, float *y) {
    FLOATS v = KERNEL(all)(0), r = v;
    memcpy(&v, x, (size_t)count * sizeof *x);
    memcpy(&r, rho, (size_t)count * sizeof *rho);
    v = KERNEL(gelu_of)(multiply_add(v + add, r * gain, KERNEL(all)(bias)));
    memcpy(y, &v, (size_t)count * sizeof *y);
}

static TARGET void KERNEL(gelu_norm)(int rows, int width, const float *x, int ldx, const float *add,
                                     const float *gain, const float *bias, const float *rho,
                                     float *y) {
    for (int k = 0; k < rows; k++, x += ldx, y += width) {
        float a = add[k], g = gain[k], b = bias[k];
        int j = 0;
        for (; j + LANES <= width; j += LANES)
            KERNEL(gelu_norm_part)(LANES, x + j, a, g, b, rho + j, y + j);
        if (j < width) KERNEL(gelu_norm_part)(width - j, x + j, a, g, b, rho + j, y + j);
    }
}

#define EACH_ANGLE(name, shift, flip)                                                              \
    static TARGET void KERNEL(name)(int64_t n, const double *angle, float *y) {                    \
        for (int64_t i = 0; i < n; i += LANES / 2) {                                               \
            int64_t count = n - i < LANES / 2 ? n - i : LANES / 2;                                 \
            DOUBLES v = {0};                                                                       \
            if (count == LANES / 2)                                                                \
                memcpy(&v, angle + i, sizeof v);                                                   \
            else                                                                                   \
                memcpy(&v, angle + i, (size_t)count * sizeof *angle);                              \
            HALF_FLOATS out = __builtin_convertvector(KERNEL(wave)(v, shift, flip), HALF_FLOATS);  \
            if (count == LANES / 2)                                                                \
                memcpy(y + i, &out, sizeof out);                                                   \
            else                                                                                   \
                memcpy(y + i, &out, (size_t)count * sizeof *y);                                    \
        }                                                                                          \
    }
EACH_ANGLE(cos, 0.5, 1)
EACH_ANGLE(sin, 0.0, 0)
#undef EACH_ANGLE

static const functions KERNEL(functions) = {
    KERNEL(exp),         KERNEL(sigmoid), KERNEL(tanh), KERNEL(erf),         KERNEL(gelu),
    KERNEL(gelu_slopes), KERNEL(cos),     KERNEL(sin),  KERNEL(exp_columns), KERNEL(gelu_norm)};

#undef INLINE
#undef KERNEL
#undef TARGET
#undef LANES
#undef FLOATS
#undef INTS
#undef DOUBLES
#undef LONGS
#undef HALF_FLOATS
#undef multiply_add
#undef multiply_add_double
#undef least
#undef most
#undef choose
#undef scale
#undef lookup
