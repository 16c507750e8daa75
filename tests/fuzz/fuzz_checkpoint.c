/* fuzz_checkpoint.c - changed checkpoints of all models, opened for the window they were trained
 * on: refused with a one-line reason, or a scorer that can rank. FLAGS is the number of the model;
 * the parts are those of fuzz_write_tensors. */
#include "parts.h"

#include <stdlib.h>

enum { MODELS = 16 };

static const fuzz_bytes *good_checkpoint(int number) {
    static fuzz_bytes good[MODELS];
    fuzz_bytes *one = &good[number];
    if (one->at) return one;
    const char *name;
    fr_model_settings shape;
    fr_training training;
    char path[2 * FUZZ_PATH];
    const char *run = fuzz_train(number, &name, &shape, &training);
    (void)snprintf(path, sizeof path, "%s/model.safetensors", run);
    *one = fuzz_read(path);
    return one;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!size) return 0;
    static fr_scorer *scorer;
    char path[FUZZ_PATH];
    fr_error err = {0};
    fr_rank_settings settings = {0};
    fr_ranking *ranking = NULL;
    const fr_window *w = fuzz_window();
    fuzz_write_tensors("model.safetensors", *good_checkpoint(bytes[0] % MODELS),
                       (fuzz_part){.at = bytes + 1, .size = size - 1});
    fuzz_must(fr_options_defaults(fr_rank_options, &settings, &err), &err);
    settings.met = 3; /* few events */
    fr_status status =
        fr_scorer_open(fuzz_path(path, "model.safetensors"), w, 1, &fuzz_context, &scorer, &err);
    fuzz_reason(status, &err);
    if (!status) {
        status = fr_rank_run(scorer, &settings, &fuzz_context, &ranking, &err);
        fuzz_reason(status, &err);
        fr_ranking_close(ranking);
        fr_scorer_close(scorer);
    }
    fr_options_free(fr_rank_options, &settings);
    return 0;
}
