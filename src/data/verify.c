/* verify.c - see verify.h, and fullrank.h, chapter 4. */
#define _GNU_SOURCE
#include "data/verify.h"

#include "base/memory.h"
#include "base/os.h"
#include "base/sha256.h"
#include "data/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const column_files[COLUMN_FILES] = {
    "source.npy",          "destination.npy", "time.npy",         "source_ids.npy",
    "destination_ids.npy", "features.npy",    "source_words.txt", "destination_words.txt"};

#define AGAIN "it was changed after the import; import the data again"

/* ---- records ---- */

fr_status verify_record(const char *folder, column_record record[COLUMN_FILES], char all[65],
                        const fr_context *context, fr_error *err) {
    sha256 hash;
    TRY(sha256_start(&hash, err));
    fr_status status = FR_OK;
    for (int k = 0; !status && k < COLUMN_FILES; k++) {
        if (!record[k].there) continue;
        mapping file = {0};
        char *path = path_join(folder, column_files[k]);
        status = path ? mapping_open(path, &file, err) : fail_memory(err, 0);
        if (!status) status = mapping_sha256(&file, context, record[k].sha256, err);
        if (!status) sha256_add(&hash, record[k].sha256, 64);
        record[k].bytes = (int64_t)file.size;
        mapping_close(&file);
        free(path);
    }
    sha256_end(&hash, status ? NULL : all);
    return status;
}

json_t *verify_to_json(const column_record record[COLUMN_FILES]) {
    json_t *files = json_object();
    for (int k = 0; files && k < COLUMN_FILES; k++) {
        if (!record[k].there) continue;
        json_t *one = json_pack("{s:I, s:s}", "bytes", (json_int_t)record[k].bytes, "sha256",
                                record[k].sha256);
        if (json_object_set_new(files, column_files[k], one)) {
            json_decref(files);
            files = NULL;
        }
    }
    return files;
}

fr_status verify_from_json(const json_t *manifest, const char *path,
                           column_record record[COLUMN_FILES], fr_error *err) {
    const json_t *files = json_object_get(manifest, "files");
    for (int k = 0; k < COLUMN_FILES; k++) {
        record[k].bytes = -1;
        record[k].sha256[0] = 0;
        if (!files || !record[k].there) continue;
        json_t *one = json_object_get(files, column_files[k]);
        json_int_t bytes = -1;
        const char *sha = NULL;
        if (json_unpack(one, "{s:I, s:s}", "bytes", &bytes, "sha256", &sha) || bytes < 0 ||
            strlen(sha) != 64)
            return fail(err, FR_EINPUT, "%s: says nothing of size and sha256 of %s", path,
                        column_files[k]);
        record[k].bytes = bytes;
        memcpy(record[k].sha256, sha, 65);
    }
    return FR_OK;
}

void verify_set_times(const char *folder, const column_record record[COLUMN_FILES]) {
    struct stat facts;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    if (!fstatat(fd, "manifest.json", &facts, AT_SYMLINK_NOFOLLOW)) {
        int64_t at = os_modified(&facts), second = 1000000000;
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                          {.tv_sec = at / second, .tv_nsec = at % second}};
        for (int k = 0; k < COLUMN_FILES; k++)
            if (record[k].there) (void)utimensat(fd, column_files[k], times, AT_SYMLINK_NOFOLLOW);
    }
    close(fd);
}

/* ---- comparing ---- */

fr_status verify_sizes(const char *folder, const column_record record[COLUMN_FILES],
                       fr_error *err) {
    for (int k = 0; k < COLUMN_FILES; k++) {
        if (!record[k].there || record[k].bytes < 0) continue;
        char *path = path_join(folder, column_files[k]);
        if (!path) return fail_memory(err, 0);
        struct stat facts;
        fr_status status = FR_OK;
        if (stat(path, &facts))
            status = fail_errno(err, "%s: cannot be read", path);
        else if (S_ISREG(facts.st_mode) && facts.st_size != record[k].bytes)
            status = fail(err, FR_EINPUT, "%s: %lld bytes, expected %lld: " AGAIN, path,
                          (long long)facts.st_size, (long long)record[k].bytes);
        free(path);
        TRY(status);
    }
    return FR_OK;
}

fr_status verify_mapped(const char *folder, const mapping *const file[COLUMN_FILES],
                        const column_record record[COLUMN_FILES], const char *all,
                        const fr_context *context, fr_error *err) {
    char found[65] = "";
    sha256 hash;
    TRY(sha256_start(&hash, err));
    fr_status status = FR_OK;
    for (int k = 0; !status && k < COLUMN_FILES; k++) {
        if (!record[k].there) continue;
        status = mapping_sha256(file[k], context, found, err);
        if (!status && record[k].sha256[0] && strcmp(found, record[k].sha256) != 0)
            status = fail(err, FR_EINPUT, "%s/%s: sha256 %.12s..., expected %.12s...: " AGAIN,
                          folder, column_files[k], found, record[k].sha256);
        if (!status) sha256_add(&hash, found, 64);
    }
    sha256_end(&hash, status ? NULL : found);
    if (status || !strcmp(found, all)) return status;
    return fail(err, FR_EINPUT,
                "%s: columns with sha256 %.12s..., expected %.12s... as in manifest.json: a file "
                "was changed after the import; import the data again",
                folder, found, all);
}

/* ---- a whole directory ---- */

/* Describes one column as it is now. */
static fr_status look_at(const char *folder, int k, const column_record *expected,
                         const fr_context *context, fr_data_file *out, fr_error *err) {
    *out = (fr_data_file){.name = column_files[k], .bytes = -1};
    (void)snprintf(out->expected, sizeof out->expected, "%s", expected->sha256);
    char *path = path_join(folder, column_files[k]);
    if (!path) return fail_memory(err, 0);
    mapping file;
    fr_status status = mapping_open(path, &file, NULL);
    if (!status) {
        out->bytes = (int64_t)file.size;
        status = mapping_sha256(&file, context, out->sha256, err);
        out->same = !status && (!expected->sha256[0] || !strcmp(out->sha256, expected->sha256));
        mapping_close(&file);
    } else if (status != FR_ENOMEM) {
        status = FR_OK; /* the table shows that it is missing */
    }
    free(path);
    return status;
}

fr_status fr_data_verify(const char *folder, const fr_context *context,
                         fr_data_file out[FR_DATA_FILES], int *count, fr_error *err) {
    fr_stream *s;
    NEED(folder, err);
    NEED(out, err);
    NEED(count, err);
    *count = 0;
    TRY(ALLOCATE(s, 1, err));
    fr_status status = stream_read_manifest(s, folder, err);
    sha256 hash = {0};
    char all[65];
    if (!status) status = sha256_start(&hash, err);
    for (int k = 0; !status && k < COLUMN_FILES; k++) {
        if (!s->record[k].there) continue;
        fr_data_file *one = &out[(*count)++];
        status = look_at(folder, k, &s->record[k], context, one, err);
        if (!status) sha256_add(&hash, one->sha256, strlen(one->sha256));
    }
    sha256_end(&hash, status ? NULL : all);
    if (!status && strcmp(all, s->sha256)) {
        const fr_data_file *bad = NULL;
        for (int k = *count; k-- > 0;)
            if (!out[k].same) bad = &out[k];
        if (!bad)
            status =
                fail(err, FR_EINPUT,
                     "%s: columns with sha256 %.12s..., expected %.12s... as in manifest.json: "
                     "a file was changed after the import; import the data again",
                     folder, all, s->sha256);
        else if (bad->bytes < 0)
            status = fail(err, FR_EINPUT, "%s/%s: cannot be read; import the data again", folder,
                          bad->name);
        else
            status = fail(err, FR_EINPUT, "%s/%s: sha256 %.12s..., expected %.12s...: " AGAIN,
                          folder, bad->name, bad->sha256, bad->expected);
    }
    fr_stream_close(s);
    if (status) return status;
    TRY(fr_stream_open(folder, NULL, context, &s, err)); /* finds what hashes cannot show */
    fr_stream_close(s);
    return FR_OK;
}
