/* rng.c - see rng.h. */
#include "base/rng.h"

#include <Random123/philox.h>
#include <math.h>

rng_block rng_bits(rng_key key, uint64_t event, uint32_t draw) {
    philox4x32_ctr_t counter = {
        {draw, (uint32_t)event, key.epoch, (uint32_t)key.purpose << 24 | (uint32_t)(event >> 32)}};
    philox4x32_key_t seed = {{(uint32_t)key.seed, (uint32_t)(key.seed >> 32)}};
    philox4x32_ctr_t bits = philox4x32(counter, seed);
    return (rng_block){{bits.v[0], bits.v[1], bits.v[2], bits.v[3]}};
}

/* ---- many blocks ---- */

enum { LANES = 16 };

/* Philox 4x32-10 on LANES counters that differ in their first word, side by side, so that the
 * compiler can use vectors. Constants as in the paper. */
static inline __attribute__((always_inline)) void philox_lanes(rng_key key, uint64_t event,
                                                               uint32_t draw, rng_block *out) {
    uint32_t a[LANES], b[LANES], c[LANES], d[LANES];
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int j = 0; j < LANES; j++) {
        a[j] = draw + (uint32_t)j;
        b[j] = (uint32_t)event;
        c[j] = key.epoch;
        d[j] = (uint32_t)key.purpose << 24 | (uint32_t)(event >> 32);
    }
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        for (int j = 0; j < LANES; j++) {
            uint64_t left = (uint64_t)a[j] * 0xD2511F53u, right = (uint64_t)c[j] * 0xCD9E8D57u;
            a[j] = (uint32_t)(right >> 32) ^ b[j] ^ k0;
            b[j] = (uint32_t)right;
            c[j] = (uint32_t)(left >> 32) ^ d[j] ^ k1;
            d[j] = (uint32_t)left;
        }
    }
    for (int j = 0; j < LANES; j++) out[j] = (rng_block){{a[j], b[j], c[j], d[j]}};
}

static void lanes_plain(rng_key key, uint64_t event, uint32_t draw, rng_block *out) {
    philox_lanes(key, event, draw, out);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void lanes_avx2(rng_key key, uint64_t event, uint32_t draw,
                                                       rng_block *out) {
    philox_lanes(key, event, draw, out);
}
#endif

void rng_fill(rng_key key, uint64_t event, uint32_t draw, int count, rng_block *out) {
    void (*lanes)(rng_key, uint64_t, uint32_t, rng_block *) = lanes_plain;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) lanes = lanes_avx2;
#endif
    for (; count >= LANES; count -= LANES, draw += LANES, out += LANES)
        lanes(key, event, draw, out);
    for (; count > 0; count--) *out++ = rng_bits(key, event, draw++);
}

/* ---- numbers ---- */

static double unit(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

double rng_uniform(rng_key key, uint64_t event, uint32_t draw) {
    rng_block b = rng_bits(key, event, draw);
    return unit(b.word[0], b.word[1]);
}

void rng_normal(rng_key key, uint64_t event, uint32_t draw, double out[2]) {
    rng_block b = rng_bits(key, event, draw);
    double radius = sqrt(-2 * log(1 - unit(b.word[0], b.word[1]))); /* Box-Muller; 1-u is never 0 */
    double angle = 2 * 3.14159265358979323846 * unit(b.word[2], b.word[3]);
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

uint32_t rng_below(rng_key key, uint64_t event, uint32_t draw, uint32_t n) {
    /* Lemire's method: the high half of word * n is uniform once the few low halves that would make
     * some values more likely than others are rejected. A block has four tries; they all fail with
     * a chance of at most 2^-4 (n just above 2^31), and further blocks use the spare epoch bits. */
    uint32_t reject = (uint32_t)(-n) % n;
    for (uint32_t round = 0;; round++) {
        rng_key k = key;
        k.epoch ^= round << 24; /* epochs stay below 2^24; round 0 leaves the key alone */
        rng_block b = rng_bits(k, event, draw);
        for (int i = 0; i < 4; i++) {
            uint64_t product = (uint64_t)b.word[i] * n;
            if ((uint32_t)product >= reject) return (uint32_t)(product >> 32);
        }
    }
}
