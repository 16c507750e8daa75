/* bench_patch_rank.c - the speed of ranking with the patch transformer, as a share of the
 * machine's product rate.
 *
 *     bench_patch_rank FILE.csv[.gz] [EVENTS [TURNS]]      200 test events, best of 20 turns each
 *
 * One thread. Events are scored TURNS times, as many at once as the scorer takes. A product of the
 * shape of the head's is timed in turn. The smallest time of each counts, so that other programs
 * do not matter. Random parameters in the shape that the paper's authors used. The first rate
 * counts the products as they are computed, the second one also GELU, softmax and norms. The third
 * one counts the products of the unfolded form: with tables, but with every vector of a candidate.
 */
#include "base/memory.h"
#include "models/model.h"
#include "nn/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { D = 64, WIDTH = 128, MOST = 64 };

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of ten products [D, D] [D, WIDTH]. */
static double time_product(void) {
    static real a[D * D], b[D * WIDTH], c[D * WIDTH];
    double start = now();
    for (int k = 0; k < 10; k++) gemm_nn(D, WIDTH, D, a, D, b, WIDTH, c, WIDTH, true);
    return now() - start;
}

/* Operations on a number in functions that are no products, as vmath_kernel.h writes them; a fused
 * multiply-add counts as two. */
enum { GELU = 19, NORM = 7, SOFTMAX = 26 };

/* Operations of the products for candidates and, once per event, for the source's patches; all
 * other ones; and the products for candidates in the unfolded form. */
typedef struct work {
    double candidates, source, other, unfolded;
} work;

static void add_work(const model *m, int32_t event, work *to) {
    const fr_window *w = m->w;
    const fr_model_settings *s = &m->settings;
    int32_t cut = window_cut(w, event);
    int past = window_source_history(w, w->source[event], cut, (int32_t)s->history).count;
    int n = past ? (int)((past + s->patch - 1) / s->patch) : 1;
    int per = 2 * (n + 1) * (n + 1) + 2 * D * (2 * n + 2); /* MODELS 13.4 */
    int other = D * (GELU + NORM) + n * SOFTMAX;
    /* Wa q, logits, c, the head of s (and q and c), its last layer (and s . e(v)) */
    int parts = m->kind == &model_patch ? 3 : 1;
    int unfolded = 2 * D * (D + 2 * n + parts * D + (parts + 1) / 2);
    if (m->kind == &model_patch) {
        per += 2 * D * (D + 2 * n + 1);
        other += D * GELU;
    } else {
        other += D; /* ReLU */
    }
    to->candidates += (double)per * w->destinations;
    to->source += 2.0 * n * D * (double)(s->patch * (D + s->time_dim) + s->patch * D);
    to->source += 2.0 * n * D * D * (double)(12 * s->layers + (m->kind == &model_patch ? 4 : 3));
    to->other += (double)other * w->destinations;
    to->unfolded += (double)unfolded * w->destinations;
    to->other += (double)(n * D * (s->patch + 1) * (GELU + NORM));
    to->other += (double)(s->layers * n * (D * (4 * GELU + 2 * NORM) + s->heads * n * SOFTMAX));
}

static fr_status report(const fr_window *w, const char *name, int events, int turns,
                        fr_error *err) {
    model m;
    fr_model_settings settings = {.size = sizeof settings,
                                  .dim = D,
                                  .heads = 4,
                                  .layers = 2,
                                  .history = 20,
                                  .patch = 2,
                                  .time_dim = 32,
                                  .gamma = 0.9};
    fr_scorer_definition scorer = {0};
    float *scores = NULL;
    TRY(model_open(&m, name, &settings, w, 7, err));
    if (m.kind->memory) m.kind->memory->reset(&m);
    fr_status status = m.kind->memory ? m.kind->memory->replay(&m, w->train, NULL, err) : FR_OK;
    if (!status) status = m.kind->fast(&m, 1, &scorer, err);
    if (!status) status = ALLOCATE(scores, MOST * (size_t)w->destinations, err);
    work done = {0};
    double seconds = 0, product = 1e9;
    int32_t count = 0, many = scorer.many > 1 ? scorer.many : 1;
    for (int32_t e = w->train; !status && e + many <= w->events && count < events; e += many) {
        double best = 1e9;
        fr_query query[MOST];
        for (int32_t k = 0; k < many; k++) {
            query[k] = (fr_query){e + k, w->source[e + k], w->time[e + k]};
            add_work(&m, e + k, &done);
        }
        for (int turn = 0; !status && turn < turns; turn++) {
            double start = now(), took;
            status = scorer.part(scorer.state, query, many, 0, w->destinations, 0, scores, err);
            if ((took = now() - start) < best) best = took;
            if ((took = time_product()) < product) product = took;
        }
        seconds += best;
        count += many;
    }
    double all = done.candidates + done.source;
    double rate = 1e-9 * all / seconds, peak = 1e-9 * 10 * 2 * D * D * WIDTH / product;
    double total = 1e-9 * (all + done.other) / seconds;
    double unfolded = 1e-9 * (done.unfolded + done.source) / seconds;
    if (!status)
        (void)printf("%-9s %.4f ms per event, %.0f FLOP per candidate and %.2f MFLOP per event, "
                     "%.1f GFLOP/s: %.0f %% of the product rate, %.1f; with all other operations "
                     "%.0f %%, unfolded %.0f %%\n",
                     name, 1e3 * seconds / count, done.candidates / count / w->destinations,
                     1e-6 * done.source / count, rate, 100 * rate / peak, peak, 100 * total / peak,
                     100 * unfolded / peak);
    free(scores);
    if (scorer.state) scorer.close(scorer.state);
    model_close(&m);
    return status;
}

int main(int argc, char **argv) {
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *w = NULL;
    fr_protocol protocol = {.size = sizeof protocol, .window = 32768, .train_share = 0.85};
    if (argc < 2) {
        (void)fprintf(stderr, "usage: bench_patch_rank FILE.csv[.gz] [EVENTS [TURNS]]\n");
        return 2;
    }
    int events = argc > 2 ? atoi(argv[2]) : 200, turns = argc > 3 ? atoi(argv[3]) : 20;
    fr_status status = fr_stream_open(argv[1], NULL, NULL, &stream, &err);
    if (!status) status = fr_window_open(stream, &protocol, NULL, &w, &err);
    if (!status) status = report(w, "patch", events, turns, &err);
    if (!status) status = report(w, "patch-lha", events, turns, &err);
    fr_window_close(w);
    fr_stream_close(stream);
    if (status) (void)fprintf(stderr, "%s\n", err.message);
    return status ? 1 : 0;
}
