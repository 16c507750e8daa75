/* checkpoint.h - models on disk: safetensors with everything needed to use them again (MODELS 9).
 */
#ifndef FR_MODELS_CHECKPOINT_H
#define FR_MODELS_CHECKPOINT_H

#include "models/model.h"
#include "nn/safetensors.h"

/* What makes a run the run it is, but for its length: a metadata key and its value. */
typedef struct checkpoint_entry {
    char key[32]; /* option keys with '_', as MODELS 1.9 spells them */
    char value[80];
} checkpoint_entry;
enum { CHECKPOINT_ENTRIES = 40 };
/* Fills out[CHECKPOINT_ENTRIES] and returns how many there are. */
int checkpoint_entries(const model *m, const fr_training *t, checkpoint_entry *out);

/* Writes parameters by name, the ids behind the dense numbers (vocab.src, vocab.dst) and the
 * metadata: how it is trained, and how many of its epochs are done. */
fr_status checkpoint_save(const model *m, const fr_training *training, int64_t done,
                          const char *path, fr_error *err);
/* Opens a model for a window. The window must be the one it was trained on: same ids, same length,
 * same training prefix; else events it has seen in training might be ranked. */
fr_status checkpoint_load(model *m, const char *path, const fr_window *w, fr_error *err);

/* For files that hold a model among other things: adds it to a writer, takes it from an open file.
 */
fr_status checkpoint_add(const model *m, const fr_training *training, int64_t done,
                         safetensors_writer *w, fr_error *err);
fr_status checkpoint_take(model *m, const safetensors *file, const fr_window *w, fr_error *err);

#endif
