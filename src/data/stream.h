/* stream.h - an imported set inside the library: mapped columns. */
#ifndef FR_DATA_STREAM_H
#define FR_DATA_STREAM_H

#include "base/memory.h"
#include "base/npy.h"
#include "data/verify.h"

/* The words of the ids of a role, for sets whose ids are words. */
typedef struct word_list {
    mapping file;
    ARRAY(const char *) start; /* [words + 1]; word k ends one byte before start k + 1 */
} word_list;

/* Lifetime: run. All arrays are mapped and read-only. */
struct fr_stream {
    fr_stream_facts facts;
    char *name, *folder; /* folder: for messages */
    char sha256[65];     /* of all columns */
    column_record record[COLUMN_FILES];
    int64_t imported; /* when manifest.json was written, in nanoseconds since 1970 */
    npy files[6];
    const int32_t *source, *destination;       /* [events] index into the ids */
    const double *time;                        /* [events] non-decreasing */
    const float *feature;                      /* [events, feature_width] or NULL */
    const int64_t *source_id, *destination_id; /* [sources], [destinations] ascending */
    struct json_t *synth;                      /* parameters of a synthetic stream, else NULL */
    word_list source_word, destination_word;   /* by id; empty if ids are numbers */
};

/* Reads only manifest.json, into a zeroed stream. */
fr_status stream_read_manifest(fr_stream *s, const char *folder, fr_error *err);
/* Hashes all columns, unless opening did, and compares them with the manifest. */
fr_status stream_verify(const fr_stream *s, const fr_context *context, fr_error *err);
/* The error of a row whose source or destination is out of range. */
fr_status stream_bad_id(const fr_stream *s, int64_t row, fr_error *err);

#endif
