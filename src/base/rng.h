/* rng.h - random numbers without a generator: value = f(seed, purpose, epoch, event, draw).
 *
 * Philox 4x32-10 (Salmon et al., SC'11; Random123) turns a 128-bit counter and a 64-bit key into
 * 128 random bits. The key is the seed; the counter says what the number is for. So any thread can
 * compute any number at any time and in any order, and a resumed run needs no stored state.
 *
 *   counter  = draw, event (low 32), epoch, purpose (8 bits) | event (high 24)
 *
 * So events must be below 2^56, and epochs below 2^24 (rng_below uses the bits above for its rare
 * retries).
 */
#ifndef FR_BASE_RNG_H
#define FR_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* One value per independent stream. Runs depend on the values, so only append. */
typedef enum rng_purpose {
    RNG_TEST,
    RNG_SYNTH_WORLD, /* tables of a synthetic stream */
    RNG_SYNTH_EVENT, /* its events */
    RNG_BASELINE,    /* the random scorer */
    RNG_DRAWS,       /* nested draws of negatives */
    RNG_INIT,        /* initial parameters */
    RNG_SHUFFLE,     /* order of training events */
    RNG_NEGATIVE,    /* negatives of training */
    RNG_DROPOUT,
    RNG_MINIMAL,   /* negatives of the minimal scorer */
    RNG_SCALING,   /* order of growing catalogs */
    RNG_BOOTSTRAP, /* blocks of events drawn with replacement */
    RNG_SIGNS,     /* signs of blocks in permutation tests */
    RNG_PROJECT,   /* pairs, labels and directions of interventions */
    RNG_EVENTS,    /* samples of test events */
    RNG_AUDIT,     /* audited events, and the changes around them */
} rng_purpose;

typedef struct rng_key {
    uint64_t seed;
    rng_purpose purpose;
    uint32_t epoch;
} rng_key;

typedef struct rng_block {
    uint32_t word[4];
} rng_block;

/* The 128 bits at (key, event, draw). */
rng_block rng_bits(rng_key key, uint64_t event, uint32_t draw);

/* out[i] = rng_bits(key, event, draw + i), many at a time: several times faster than one by one. */
void rng_fill(rng_key key, uint64_t event, uint32_t draw, int count, rng_block *out);

/* Uniform in [0, 1) with 53 bits; independent for each draw. */
double rng_uniform(rng_key key, uint64_t event, uint32_t draw);
/* Two independent standard normals. */
void rng_normal(rng_key key, uint64_t event, uint32_t draw, double out[2]);
/* Uniform in 0..n-1, exactly (multiply and reject; n >= 1). */
uint32_t rng_below(rng_key key, uint64_t event, uint32_t draw, uint32_t n);
/* Puts list[count], of at most 2^32 elements of at most 16 bytes, in random order (Fisher-Yates).
 */
void rng_shuffle(rng_key key, void *list, int64_t count, size_t size);

#endif
