/* gemm_kernel.h - one panel of a product with the registers of one instruction set.
 *
 * Included by gemm.c once per instruction set, with these defined (and undefined again at the end):
 *
 *     KERNEL(name)         the name with the set's suffix
 *     TARGET               attribute of functions that may use the set
 *     VEC, WIDTH, ROWS     vector type, floats in it, rows of a tile
 *     MASK, mask_of(n)     which of a vector's first n floats are there
 *     zero, load, store, load_part, store_part, spread, multiply_add
 *     keep(v)              v is in a register from here on
 *     turn_four(row, p, out)   out[q] = number p + q of each of WIDTH rows, q = 0..3
 *
 * A tile is ROWS x 2 vectors of C that stay in registers while k runs: 24 of 32 registers with
 * AVX-512 and NEON, 12 of 16 with AVX2. Rows of A are read where they are, one number at a time,
 * each spread over a vector. Numbers of rows are constants of inlined functions, so the loops over
 * them vanish.
 */

/* The initial value of vector j of row i. */
static inline __attribute__((always_inline)) TARGET VEC KERNEL(first)(begin from, int i, int j,
                                                                      bool part, MASK mask) {
    if (!from.at) return zero();
    const float *at = from.at + i * from.ld;
    if (from.spread) return spread(at);
    return part ? load_part(at + j * WIDTH, mask) : load(at + j * WIDTH);
}

/* C[rows, vectors * WIDTH] of one tile. `part` says that C ends within the last vector. */
static inline __attribute__((always_inline)) TARGET void
KERNEL(tile)(int rows, int vectors, bool part, bool a_columns, int k, const float *a, ptrdiff_t lda,
             const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc, MASK mask, begin from) {
    VEC sum[ROWS][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            sum[i][j] = KERNEL(first)(from, i, j, part && j == vectors - 1, mask);
    }
    const int half = ROWS / 2;
    const float *top = a, *low = rows > half ? a + (a_columns ? half : half * lda) : a;
    for (int p = 0; p < k; p++) {
        VEC right[2];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            right[j] = load(b + j * WIDTH);
            keep(right[j]); /* otherwise it is read again for each row */
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const float *from_row = i < half ? top : low;
            VEC left = spread(from_row + (a_columns ? i % half : i % half * lda));
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++) sum[i][j] = multiply_add(left, right[j], sum[i][j]);
        }
        b += ldb;
        top += a_columns ? lda : 1;
        low += a_columns ? lda : 1;
        __asm__("" : "+r"(top), "+r"(low), "+r"(b)); /* otherwise there is a pointer per row */
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            float *to = c + i * ldc + j * WIDTH;
            if (part && j == vectors - 1)
                store_part(to, mask, sum[i][j]);
            else
                store(to, sum[i][j]);
        }
    }
}

/* All rows of a panel, in tiles of nearly equal height. */
#define PANEL(name, vectors, part, a_columns)                                                      \
    static TARGET void KERNEL(name)(int m, int n, int k, const float *a, ptrdiff_t lda,            \
                                    const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc,        \
                                    begin from) {                                                  \
        MASK mask = mask_of(n - (vectors - 1) * WIDTH);                                            \
        int tiles = (m + ROWS - 1) / ROWS, rows = m / tiles, taller = m % tiles;                   \
        for (int t = 0; t < tiles; t++) {                                                          \
            int height = rows + (t < taller);                                                      \
            switch (height) { ROW_CASES(vectors, part, a_columns) }                                \
            a += a_columns ? height : height * lda;                                                \
            c += height * ldc;                                                                     \
            if (from.at) from.at += height * from.ld;                                              \
        }                                                                                          \
    }
#define ROW_CASE(rows, vectors, part, a_columns)                                                   \
    case rows:                                                                                     \
        KERNEL(tile)                                                                               \
        (rows, vectors, part, a_columns, k, a, lda, b, ldb, c, ldc, mask, from);                   \
        break

PANEL(row_whole, 2, false, false)
PANEL(row_two, 2, true, false)
PANEL(row_one, 1, true, false)
PANEL(column_whole, 2, false, true)
PANEL(column_two, 2, true, true)
PANEL(column_one, 1, true, true)

/* Rows of B stored (n, k) that make a vector; past the end the last one again. */
static inline void KERNEL(rows_from)(const float *row[WIDTH], int n, const float *b,
                                     ptrdiff_t ldb) {
    for (int r = 0; r < WIDTH; r++) {
        row[r] = b;
        if (r < n - 1) b += ldb;
    }
}

/* to[k, n] = the transpose of B's rows 0..n-1, rows `width` apart and filled up to whole vectors */
static TARGET void KERNEL(turn)(int n, int k, const float *b, ptrdiff_t ldb, float *to, int width) {
    for (int j = 0; j < n; j += WIDTH) {
        const float *row[WIDTH];
        KERNEL(rows_from)(row, n - j, b + j * ldb, ldb);
        int p = 0;
        for (; p + 4 <= k; p += 4) {
            VEC out[4];
            turn_four(row, p, out);
#pragma GCC unroll 4
            for (int q = 0; q < 4; q++) store(to + (p + q) * width + j, out[q]);
        }
        for (; p < k; p++)
            for (int r = 0; r < WIDTH; r++) to[p * width + j + r] = row[r][p];
    }
}

/* A panel with so few rows that transposing B would take longer than the product: B, stored (n, k),
 * is transposed in registers and used at once. */
static inline __attribute__((always_inline)) TARGET void
KERNEL(thin_tile)(int rows, int vectors, bool a_columns, int n, int k, const float *a,
                  ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc,
                  begin from) {
    const float *row[2][WIDTH];
    VEC sum[THIN][2];
    MASK mask = mask_of(n - (vectors - 1) * WIDTH);
#pragma GCC unroll 2
    for (int j = 0; j < vectors; j++) {
        KERNEL(rows_from)(row[j], n - j * WIDTH, b + j * WIDTH * ldb, ldb);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            sum[i][j] = KERNEL(first)(from, i, j, j == vectors - 1, mask);
    }
    int p = 0;
    for (; p + 4 <= k; p += 4) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            VEC right[4];
            turn_four(row[j], p, right);
#pragma GCC unroll 4
            for (int q = 0; q < 4; q++) {
#pragma GCC unroll 4
                for (int i = 0; i < rows; i++) {
                    VEC left = spread(a_columns ? a + (p + q) * lda + i : a + i * lda + p + q);
                    sum[i][j] = multiply_add(left, right[q], sum[i][j]);
                }
            }
        }
    }
    for (; p < k; p++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            float column[WIDTH];
            for (int r = 0; r < WIDTH; r++) column[r] = row[j][r][p];
            VEC right = load(column);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                VEC left = spread(a_columns ? a + p * lda + i : a + i * lda + p);
                sum[i][j] = multiply_add(left, right, sum[i][j]);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) {
            float *to = c + i * ldc + j * WIDTH;
            if (j == vectors - 1)
                store_part(to, mask, sum[i][j]);
            else
                store(to, sum[i][j]);
        }
    }
}

#define THIN_CASE(rows, vectors, a_columns)                                                        \
    case rows:                                                                                     \
        KERNEL(thin_tile)                                                                          \
        (rows, vectors, a_columns, n, k, a, lda, b, ldb, c, ldc, from);                            \
        break
#define THIN_PANEL(name, vectors, a_columns)                                                       \
    static TARGET void KERNEL(name)(int m, int n, int k, const float *a, ptrdiff_t lda,            \
                                    const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc,        \
                                    begin from) {                                                  \
        switch (m) {                                                                               \
            THIN_CASE(1, vectors, a_columns);                                                      \
            THIN_CASE(2, vectors, a_columns);                                                      \
            THIN_CASE(3, vectors, a_columns);                                                      \
            THIN_CASE(4, vectors, a_columns);                                                      \
        }                                                                                          \
    }
THIN_PANEL(row_thin_one, 1, false)
THIN_PANEL(row_thin_two, 2, false)
THIN_PANEL(column_thin_one, 1, true)
THIN_PANEL(column_thin_two, 2, true)

static const kernel KERNEL(kernel) = {
    .width = WIDTH,
    .turn = KERNEL(turn),
    .thin = {{KERNEL(row_thin_one), KERNEL(row_thin_two)},
             {KERNEL(column_thin_one), KERNEL(column_thin_two)}},
    .panel = {{KERNEL(row_one), KERNEL(row_two), KERNEL(row_whole)},
              {KERNEL(column_one), KERNEL(column_two), KERNEL(column_whole)}}};

#undef PANEL
#undef THIN_PANEL
#undef THIN_CASE
#undef ROW_CASE
#undef ROW_CASES
#undef KERNEL
#undef TARGET
#undef VEC
#undef WIDTH
#undef ROWS
#undef MASK
#undef mask_of
#undef zero
#undef load
#undef store
#undef load_part
#undef store_part
#undef spread
#undef multiply_add
#undef keep
#undef turn_four
