/* checkpoint.h - models on disk: safetensors with everything needed to use them again (MODELS 9).
 */
#ifndef FR_MODELS_CHECKPOINT_H
#define FR_MODELS_CHECKPOINT_H

#include "models/model.h"
#include "nn/safetensors.h"

/* What identifies a run, except its length: a metadata key and its value. */
typedef struct checkpoint_entry {
    char key[32]; /* option keys with '_', as in MODELS 1.9 */
    char value[80];
} checkpoint_entry;
enum { CHECKPOINT_ENTRIES = 40 };
/* Fills out[CHECKPOINT_ENTRIES] and returns how many there are. */
int checkpoint_entries(const model *m, const fr_training *t, checkpoint_entry *out);

/* Writes parameters by name, the original ids of the dense numbers (vocab.src, vocab.dst) and the
 * metadata: settings of the training, and the number of epochs done. */
fr_status checkpoint_save(const model *m, const fr_training *training, int64_t done,
                          const char *path, fr_error *err);
/* Opens a model for a window. The window must be the one it was trained on: same ids, same length,
 * same training prefix. Otherwise events of its training might be ranked. */
fr_status checkpoint_load(model *m, const char *path, const fr_window *w, fr_error *err);

/* For files that also contain other things: adds a model to a writer, reads it from an open file.
 */
fr_status checkpoint_add(const model *m, const fr_training *training, int64_t done,
                         safetensors_writer *w, fr_error *err);
fr_status checkpoint_take(model *m, const safetensors *file, const fr_window *w, fr_error *err);

#endif
