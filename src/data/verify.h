/* verify.h - checks that the columns of an imported set have not changed.
 *
 * manifest.json has the size and SHA-256 of every column, and all columns have the modification
 * time of manifest.json (import sets it). So sizes and times show whether anything was written
 * later. A copy of the directory may have other times; then the content is hashed.
 * Small sets are hashed every time.
 */
#ifndef FR_DATA_VERIFY_H
#define FR_DATA_VERIFY_H

#include "base/file.h"
#include "base/json.h"

/* The columns in the order of their common hash, whether or not a set has them. */
enum { COLUMN_FILES = 8, COLUMN_FEATURES = 5, COLUMN_WORDS = 6 };
extern const char *const column_files[COLUMN_FILES];

/* The record of one column at import. */
typedef struct column_record {
    bool there;      /* the set has it */
    int64_t bytes;   /* -1: unknown, the manifest is of an earlier version */
    char sha256[65]; /* "": the same */
} column_record;

/* Hashes the columns of `folder` that are `there`; fills the rest of their records and the hash of
 * them all: SHA-256 over the hashes of the files. */
fr_status verify_record(const char *folder, column_record record[COLUMN_FILES], char all[65],
                        const fr_context *context, fr_error *err);
/* The records as the manifest's "files"; NULL when out of memory. */
json_t *verify_to_json(const column_record record[COLUMN_FILES]);
/* Reads them back; `there` is set already. A manifest without "files" is fine. */
fr_status verify_from_json(const json_t *manifest, const char *path,
                           column_record record[COLUMN_FILES], fr_error *err);
/* Gives every column the time of manifest.json. No error: columns with other times are hashed. */
void verify_set_times(const char *folder, const column_record record[COLUMN_FILES]);

/* Sizes only, before anything is mapped. */
fr_status verify_sizes(const char *folder, const column_record record[COLUMN_FILES], fr_error *err);
/* Hashes the mapped columns and compares them with the records and the common hash. */
fr_status verify_mapped(const char *folder, const mapping *const file[COLUMN_FILES],
                        const column_record record[COLUMN_FILES], const char *all,
                        const fr_context *context, fr_error *err);

#endif
