/* parts.h - fuzz inputs that stand for files which belong together.
 *
 * What the library opens is a folder, a pair of files or a checkpoint of some window; random bytes
 * for all of it would be refused at the first check. So a target makes good files once, from a
 * tiny stream, and an input says what to change in them. It is a sequence of parts:
 *
 *     FLAGS @@KIND BYTES @@KIND BYTES ...
 *
 * FLAGS is one byte, KIND a letter that the target gives a meaning: a file to be replaced, the data
 * of a column, or edits. An edit of JSON is a line NAME=VALUE: NAME is a key, wherever it stands
 * first, or the number of a value in the order of the document; VALUE is JSON or else a text;
 * nothing removes it. An edit of bytes is three of them: a place from 0 to 65,535 and a value. */
#ifndef FR_TESTS_FUZZ_PARTS_H
#define FR_TESTS_FUZZ_PARTS_H

#include "fuzz.h"

#include "data/window.h"

#include <jansson.h>

enum { FUZZ_PATH = 512 };

/* FOLDER/NAME. The folder belongs to this process, in $TMPDIR or in memory, and is removed at its
 * end. */
const char *fuzz_path(char out[FUZZ_PATH], const char *name);
void fuzz_write(const char *name, const void *bytes, size_t size);
void fuzz_write_json(const char *name, const json_t *root);
/* A .npy with a header for this data: `type` such as "<i4"; width 0 = one dimension. */
void fuzz_write_npy(const char *name, const char *type, size_t item, size_t width,
                    const uint8_t *bytes, size_t size);

/* All bytes of a file; the caller frees them. */
typedef struct fuzz_bytes {
    uint8_t *at;
    size_t size;
} fuzz_bytes;
fuzz_bytes fuzz_read(const char *path);

/* The next part of *rest; false after the last. */
typedef struct fuzz_part {
    char kind;
    const uint8_t *at;
    size_t size;
} fuzz_part;
bool fuzz_next(fuzz_part *rest, fuzz_part *out);

/* A part as text that ends with 0; the caller frees it. */
char *fuzz_text(fuzz_part part);

void fuzz_edit_json(json_t *root, fuzz_part edits);
void fuzz_edit_bytes(uint8_t *bytes, size_t size, fuzz_part edits);

/* For preparations, which must not fail. */
void fuzz_must(fr_status status, const fr_error *err);
/* A failure says why, in one line. */
void fuzz_reason(fr_status status, const fr_error *err);

/* A window of a tiny synthetic stream; all work on it uses 1 thread. */
const fr_window *fuzz_window(void);
extern const fr_context fuzz_context;

/* Trains the model of this number, modulo the number of models, for one epoch. Returns the folder
 * of the run and its settings. */
const char *fuzz_train(int number, const char **name, fr_model_settings *shape,
                       fr_training *training);
/* A safetensors file with edits: @@h of the header, @@b of the data, @@l the data's length in two
 * bytes, @@R replaces it all. Written as `name`. */
void fuzz_write_tensors(const char *name, fuzz_bytes good, fuzz_part rest);

#endif
