/* fuzz_state.c - changed states of training runs, which are then resumed: refused with a one-line
 * reason and left as they are, or one more epoch. FLAGS % 16 is the number of the model; without
 * FLAGS & 128 nothing is left to train, which is faster; the parts are those of fuzz_write_tensors.
 */
#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODELS = 16 };

typedef struct good_run {
    fuzz_bytes state;
    const char *name;
    fr_model_settings shape;
    fr_training training;
} good_run;

static const good_run *good(int number) {
    static good_run runs[MODELS];
    good_run *one = &runs[number];
    if (one->state.at) return one;
    char path[2 * FUZZ_PATH];
    const char *run = fuzz_train(number, &one->name, &one->shape, &one->training);
    (void)snprintf(path, sizeof path, "%s/state.safetensors", run);
    one->state = fuzz_read(path);
    return one;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!size) return 0;
    char path[FUZZ_PATH], state[FUZZ_PATH];
    fr_error err = {0};
    const good_run *run = good(bytes[0] % MODELS);
    (void)mkdir(fuzz_path(path, "resumed"), 0777);
    fuzz_write_tensors("resumed/state.safetensors", run->state,
                       (fuzz_part){.at = bytes + 1, .size = size - 1});
    fuzz_bytes before = fuzz_read(fuzz_path(state, "resumed/state.safetensors"));
    fr_training training = run->training;
    training.resume = true;
    training.epochs += bytes[0] >> 7;
    fr_status status =
        fr_train_run(fuzz_window(), run->name, &run->shape, &training, path, &fuzz_context, &err);
    fuzz_reason(status, &err);
    fuzz_bytes after = fuzz_read(state);
    if (status && (before.size != after.size || memcmp(before.at, after.at, after.size))) abort();
    free(before.at);
    free(after.at);
    static const char *const made[] = {"resumed/state.safetensors", "resumed/model.safetensors",
                                       "resumed/train.json"};
    for (int i = 0; i < 3; i++) (void)unlink(fuzz_path(path, made[i]));
    return 0;
}
