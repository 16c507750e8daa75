/* rng.c - see rng.h. */
#include "base/rng.h"

#include "base/simd.h"

#include <Random123/philox.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

rng_block rng_bits(rng_key key, uint64_t event, uint32_t draw) {
    philox4x32_ctr_t counter = {
        {draw, (uint32_t)event, key.epoch, (uint32_t)key.purpose << 24 | (uint32_t)(event >> 32)}};
    philox4x32_key_t seed = {{(uint32_t)key.seed, (uint32_t)(key.seed >> 32)}};
    philox4x32_ctr_t bits = philox4x32(counter, seed);
    return (rng_block){{bits.v[0], bits.v[1], bits.v[2], bits.v[3]}};
}

/* ---- many blocks ---- */

#ifdef SIMD_X86
enum { LANES = 16 };

/* Philox 4x32-10 on LANES counters that differ in their first word. Each word sits in the low half
 * of a 64-bit lane, where the instruction multiplies; the high halves are never read. Constants as
 * in the paper. */
__attribute__((target("avx2"))) static void fill_lanes(rng_key key, uint64_t event, uint32_t draw,
                                                       rng_block *out) {
    enum { GROUPS = LANES / 4 };
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    __m256i a[GROUPS], b[GROUPS], c[GROUPS], d[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        uint32_t first = draw + 4 * (uint32_t)g;
        a[g] = _mm256_setr_epi64x(first, first + 1, first + 2, first + 3);
        b[g] = _mm256_set1_epi64x((uint32_t)event);
        c[g] = _mm256_set1_epi64x(key.epoch);
        d[g] = _mm256_set1_epi64x((uint32_t)key.purpose << 24 | (uint32_t)(event >> 32));
    }
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
        for (int g = 0; g < GROUPS; g++) {
            __m256i left = _mm256_mul_epu32(a[g], m0), right = _mm256_mul_epu32(c[g], m1);
            a[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(right, 32), b[g]), key0);
            c[g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(left, 32), d[g]), key1);
            b[g] = right;
            d[g] = left;
        }
    }
    for (int g = 0; g < GROUPS; g++) {
        __m256i ab = _mm256_or_si256(_mm256_and_si256(a[g], low), _mm256_slli_epi64(b[g], 32));
        __m256i cd = _mm256_or_si256(_mm256_and_si256(c[g], low), _mm256_slli_epi64(d[g], 32));
        __m256i even = _mm256_unpacklo_epi64(ab, cd), odd = _mm256_unpackhi_epi64(ab, cd);
        __m128i *to = (__m128i *)(void *)&out[4 * g];
        _mm_storeu_si128(to, _mm256_castsi256_si128(even));
        _mm_storeu_si128(to + 1, _mm256_castsi256_si128(odd));
        _mm_storeu_si128(to + 2, _mm256_extracti128_si256(even, 1));
        _mm_storeu_si128(to + 3, _mm256_extracti128_si256(odd, 1));
    }
}
#endif

void rng_fill(rng_key key, uint64_t event, uint32_t draw, int count, rng_block *out) {
#ifdef SIMD_X86
    if (simd_now() >= SIMD_AVX2) {
        for (; count >= LANES; count -= LANES, draw += LANES, out += LANES)
            fill_lanes(key, event, draw, out);
        if (count > 2) { /* the rest, through a full set of lanes */
            rng_block rest[LANES];
            fill_lanes(key, event, draw, rest);
            memcpy(out, rest, (size_t)count * sizeof *out);
            return;
        }
    }
#endif
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

void rng_shuffle(rng_key key, void *list, int64_t count, size_t size) {
    char *at = list, swap[16];
    for (int64_t i = count - 1; i > 0; i--) {
        size_t j = rng_below(key, (uint64_t)i, 0, (uint32_t)i + 1);
        char *here = at + (size_t)i * size, *there = at + j * size;
        memcpy(swap, here, size);
        memcpy(here, there, size);
        memcpy(there, swap, size);
    }
}
