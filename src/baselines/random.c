/* random.c - pure chance: scores are drawn by counter for each event and destination, in any order.
 */
#include "base/rng.h"
#include "baselines/baseline.h"

#include <stdlib.h>

static fr_status score_part(void *state, const fr_query *queries, int count, int32_t from,
                            int32_t to, int worker, float *scores, fr_error *err) {
    (void)count, (void)worker, (void)err;
    const rng_key *key = state;
    for (int32_t v = from / 4 * 4; v < to; v += 4) {
        rng_block bits = rng_bits(*key, (uint64_t)queries->event, (uint32_t)v / 4);
        for (int32_t k = v < from ? from - v : 0; k < 4 && v + k < to; k++)
            scores[v + k - from] = (float)(bits.word[k] >> 8) * 0x1p-24f;
    }
    return FR_OK;
}

static fr_status open_random(const fr_window *w, const void *settings, int64_t seed,
                             fr_scorer_definition *out, fr_error *err) {
    (void)w, (void)settings;
    rng_key *key;
    TRY(ALLOCATE(key, 1, err));
    *key = (rng_key){.seed = (uint64_t)seed, .purpose = RNG_BASELINE};
    *out = (fr_scorer_definition){
        .state = key, .workers = FR_WORKERS_ANY, .close = free, .part = score_part, .tile = 8192};
    return FR_OK;
}

const fr_scorer_kind baseline_random = {
    "random", "scores drawn at random",
    "Every destination gets a uniform random score in [0, 1) for every event. Its MRR "
    "is that of pure chance: about H(N)/N for a catalog of N.",
    .open = open_random};
