/* fuzz_stream.c - changed directories of columns: refused with a one-line reason, or a stream that
 * can be exported, cut into windows, counted and ranked. There are two valid ones to start from: a
 * synthetic one, and one of words with features (FLAGS & 1). FLAGS & 2: strict order, & 4: the
 * time-available catalog. Counts and hashes in the manifest follow the columns; edits come after
 * that.
 *
 *     @@m edits of manifest.json  @@M manifest.json itself
 *     @@s @@d @@t @@f source, destination, time, features: the data; large letters: the .npy itself
 *     @@i @@j ids of sources and destinations, in the same way
 *     @@w @@x words of sources and destinations */
#include "parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct file {
    const char *name, *type;
    size_t item;
    char data; /* letter of the part; the large letter is the file itself */
    const char *count;
} files[] = {{"source.npy", "<i4", 4, 's', "events"},
             {"destination.npy", "<i4", 4, 'd', NULL},
             {"time.npy", "<f8", 8, 't', NULL},
             {"source_ids.npy", "<i8", 8, 'i', "sources"},
             {"destination_ids.npy", "<i8", 8, 'j', "destinations"},
             {"features.npy", "<f4", 4, 'f', NULL},
             {"source_words.txt", NULL, 0, 'w', NULL},
             {"destination_words.txt", NULL, 0, 'x', NULL}};
enum { FILES = sizeof files / sizeof *files };

typedef struct good_stream {
    json_t *manifest;
    fuzz_bytes file[FILES]; /* .at NULL = it has none */
} good_stream;

static good_stream load(const char *name) {
    good_stream out = {0};
    char path[FUZZ_PATH], inside[64];
    struct stat facts;
    (void)snprintf(inside, sizeof inside, "%s/manifest.json", name);
    out.manifest = json_load_file(fuzz_path(path, inside), 0, NULL);
    if (!out.manifest) abort();
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(inside, sizeof inside, "%s/%s", name, files[i].name);
        if (!stat(fuzz_path(path, inside), &facts)) out.file[i] = fuzz_read(path);
    }
    return out;
}

static const good_stream *good(bool words) {
    static good_stream streams[2];
    static const char table[] = "source,destination,time,f1,f2\na,x,1,0.5,1\nb,y,2,0,1\n"
                                "a,y,2,1,1\nc,x,3,2,0\na,z,4,0,0\nb,x,5,1,2\n";
    if (streams[words].manifest) return &streams[words];
    char path[FUZZ_PATH], input[FUZZ_PATH];
    fr_error err = {0};
    fr_import import = {.size = sizeof import, .ids = FR_IDS_WORDS};
    (void)fuzz_window(); /* makes "stream" */
    if (words) {
        fuzz_write("words.csv", table, sizeof table - 1);
        fuzz_must(fr_import_file(fuzz_path(input, "words.csv"), fuzz_path(path, "words"), &import,
                                 &fuzz_context, &err),
                  &err);
    }
    streams[words] = load(words ? "words" : "stream");
    (void)mkdir(fuzz_path(path, "changed"), 0777);
    return &streams[words];
}

/* Gives the manifest the hashes of the present columns; otherwise nothing else would be checked. */
static void seal(const good_stream *g, json_t *manifest) {
    column_record record[COLUMN_FILES] = {0};
    char path[FUZZ_PATH], sha[65];
    for (int i = 0; i < FILES; i++) record[i].there = g->file[i].at != NULL;
    fuzz_must(verify_record(fuzz_path(path, "changed"), record, sha, NULL, NULL), NULL);
    (void)json_object_set_new(manifest, "sha256", json_string(sha));
    (void)json_object_set_new(manifest, "files", verify_to_json(record));
}

static void write_stream(const good_stream *g, fuzz_part rest) {
    json_t *manifest = json_deep_copy(g->manifest);
    fuzz_part given[FILES] = {0}, whole = {0};
    char name[64];
    fuzz_part parts = rest;
    for (fuzz_part p; fuzz_next(&parts, &p);) {
        if (p.kind == 'M') whole = p;
        for (int i = 0; i < FILES; i++)
            if ((p.kind | 32) == files[i].data) given[i] = p;
    }
    for (int i = 0; i < FILES; i++) {
        const struct file *f = &files[i];
        (void)snprintf(name, sizeof name, "changed/%s", f->name);
        size_t width = f->data == 'f'
                           ? (size_t)json_integer_value(json_object_get(manifest, "feature_width"))
                           : 0;
        if (given[i].at && f->type && given[i].kind == f->data) {
            fuzz_write_npy(name, f->type, f->item, width, given[i].at, given[i].size);
            if (f->count)
                (void)json_object_set_new(manifest, f->count,
                                          json_integer((json_int_t)(given[i].size / f->item)));
        } else if (given[i].at)
            fuzz_write(name, given[i].at, given[i].size);
        else if (g->file[i].at)
            fuzz_write(name, g->file[i].at, g->file[i].size);
    }
    seal(g, manifest);
    for (fuzz_part p; fuzz_next(&rest, &p);)
        if (p.kind == 'm') fuzz_edit_json(manifest, p);
    if (whole.at)
        fuzz_write("changed/manifest.json", whole.at, whole.size);
    else
        fuzz_write_json("changed/manifest.json", manifest);
    json_decref(manifest);
}

static void rank(const fr_window *w, const char *spec) {
    static fr_scorer *scorer;
    fr_error err = {0};
    fr_rank_settings settings = {0};
    fr_ranking *ranking = NULL;
    fr_metric_value value;
    const char *metric = "mrr";
    fuzz_must(fr_options_defaults(fr_rank_options, &settings, &err), &err);
    fr_status status = fr_scorer_open(spec, w, 1, &fuzz_context, &scorer, &err);
    fuzz_reason(status, &err);
    if (!status) {
        status = fr_rank_run(scorer, &settings, &fuzz_context, &ranking, &err);
        fuzz_reason(status, &err);
        fr_scorer_close(scorer);
    }
    if (!status) { /* metrics accept what ranking makes */
        fr_ranking_facts f = fr_ranking_get(ranking);
        if (fr_metrics_compute(f.records, f.count, f.oov, &metric, 1, &value, &err)) abort();
        fr_ranking_close(ranking);
    }
    fr_options_free(fr_rank_options, &settings);
}

static void use(const fr_stream *s, int flags) {
    char path[FUZZ_PATH], catalog[] = "time", strict[] = "strict";
    fr_error err = {0};
    fr_protocol protocol = {0};
    fr_window *window = NULL;
    fr_facts facts;
    fuzz_reason(fr_stream_export(s, fuzz_path(path, "export.csv"), true, &fuzz_context, &err),
                &err);
    fuzz_must(fr_options_defaults(fr_protocol_options, &protocol, &err), &err);
    char *standard = protocol.catalog, *order = protocol.order;
    if (flags & 2) protocol.order = strict;
    if (flags & 4) protocol.catalog = catalog;
    fr_status status = fr_window_open(s, &protocol, &fuzz_context, &window, &err);
    fuzz_reason(status, &err);
    protocol.catalog = standard;
    protocol.order = order;
    if (!status) {
        fuzz_reason(fr_facts_compute(window, window, &fuzz_context, &facts, &err), &err);
        rank(window, "baseline:recency");
        if (s->synth) rank(window, "oracle");
        fr_window_close(window);
    }
    fr_options_free(fr_protocol_options, &protocol);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char path[FUZZ_PATH];
    fr_error err = {0};
    fr_stream *stream = NULL;
    if (!size) return 0;
    write_stream(good(bytes[0] & 1), (fuzz_part){.at = bytes + 1, .size = size - 1});
    fr_status status =
        fr_stream_open(fuzz_path(path, "changed"), NULL, &fuzz_context, &stream, &err);
    fuzz_reason(status, &err);
    if (!status) use(stream, bytes[0]);
    fr_stream_close(stream);
    return 0;
}
