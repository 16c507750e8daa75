/* parts.c - see parts.h. */
#define _GNU_SOURCE
#include "parts.h"

#include "models/model.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const fr_context fuzz_context = {.threads = 1};

/* ---- files ---- */

static char folder[FUZZ_PATH / 2];

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *where) {
    (void)facts, (void)type, (void)where;
    return remove(path);
}

static void remove_folder(void) { (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

static void make_folder(void) {
    struct stat facts;
    const char *given = getenv("TMPDIR"), *memory = "/dev/shm";
    if (!given) given = !stat(memory, &facts) && !access(memory, W_OK) ? memory : "/tmp";
    (void)snprintf(folder, sizeof folder, "%s/fuzz.XXXXXX", given);
    if (!mkdtemp(folder)) abort();
    (void)atexit(remove_folder);
}

const char *fuzz_path(char out[FUZZ_PATH], const char *name) {
    if (!folder[0]) make_folder();
    (void)snprintf(out, FUZZ_PATH, "%s/%s", folder, name);
    return out;
}

void fuzz_write(const char *name, const void *bytes, size_t size) {
    char path[FUZZ_PATH];
    int fd = open(fuzz_path(path, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || (size && write(fd, bytes, size) != (ssize_t)size)) abort();
    (void)close(fd);
}

void fuzz_write_json(const char *name, const json_t *root) {
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text) abort();
    fuzz_write(name, text, strlen(text));
    free(text);
}

void fuzz_write_npy(const char *name, const char *type, size_t item, size_t width,
                    const uint8_t *bytes, size_t size) {
    enum { HEADER = 128 };
    size_t rows = size / (item * (width ? width : 1)), data = rows * item * (width ? width : 1);
    uint8_t *file = malloc(HEADER + data);
    char shape[64];
    if (width)
        (void)snprintf(shape, sizeof shape, "(%zu, %zu)", rows, width);
    else
        (void)snprintf(shape, sizeof shape, "(%zu,)", rows);
    if (!file) abort();
    memset(file, ' ', HEADER);
    memcpy(file, "\x93NUMPY\1\0\x76\0", 10);
    int n = snprintf((char *)file + 10, HEADER - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    file[10 + n] = ' ';
    file[HEADER - 1] = '\n';
    if (data) memcpy(file + HEADER, bytes, data);
    fuzz_write(name, file, HEADER + data);
    free(file);
}

fuzz_bytes fuzz_read(const char *path) {
    FILE *file = fopen(path, "rb");
    fuzz_bytes out = {0};
    if (!file || fseek(file, 0, SEEK_END)) abort();
    out.size = (size_t)ftell(file);
    rewind(file);
    out.at = malloc(out.size + 1);
    if (!out.at || fread(out.at, 1, out.size, file) != out.size) abort();
    (void)fclose(file);
    out.at[out.size] = 0;
    return out;
}

/* ---- parts and edits ---- */

bool fuzz_next(fuzz_part *rest, fuzz_part *out) {
    const uint8_t *start = rest->size < 3 ? NULL : memmem(rest->at, rest->size - 1, "@@", 2);
    if (!start) return false;
    size_t skipped = (size_t)(start - rest->at) + 3;
    *out = (fuzz_part){.kind = (char)start[2], .at = start + 3, .size = rest->size - skipped};
    const uint8_t *end = out->size < 3 ? NULL : memmem(out->at, out->size, "@@", 2);
    *rest = (fuzz_part){.at = end, .size = end ? out->size - (size_t)(end - out->at) : 0};
    out->size -= rest->size;
    return true;
}

char *fuzz_text(fuzz_part part) {
    char *text = malloc(part.size + 1);
    if (!text) abort();
    if (part.size) memcpy(text, part.at, part.size);
    text[part.size] = 0;
    return text;
}

/* A value of a document and where it is kept. */
typedef struct place {
    json_t *parent;
    const char *key; /* NULL: element `index` of an array */
    size_t index;
} place;

typedef struct search {
    const char *name; /* NULL: by number */
    size_t left;
    place found;
} search;

static bool find(json_t *at, search *s) {
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(at)) json_object_foreach(at, key, value) {
            s->found = (place){at, key, 0};
            if (s->name ? !strcmp(key, s->name) : s->left-- == 0) return true;
            if (find(value, s)) return true;
        }
    if (json_is_array(at)) json_array_foreach(at, i, value) {
            s->found = (place){at, NULL, i};
            if (!s->name && s->left-- == 0) return true;
            if (find(value, s)) return true;
        }
    return false;
}

static void edit(json_t *root, char *line) {
    char *value = strchr(line, '='), *end;
    if (!value) return;
    *value++ = 0;
    search s = {.left = strtoul(line, &end, 10) & 0xffff};
    if (*end || end == line) s.name = line;
    if (!find(root, &s)) {
        if (s.name && *value) (void)json_object_set_new(root, line, json_string(value));
        return;
    }
    place p = s.found;
    json_t *fresh = json_loads(value, JSON_DECODE_ANY, NULL);
    if (!fresh && *value) fresh = json_string(value);
    char *key = p.key ? strdup(p.key) : NULL; /* the old entry's goes with it */
    if (!*value && p.key)
        (void)json_object_del(p.parent, key);
    else if (!*value)
        (void)json_array_remove(p.parent, p.index);
    else if (fresh && p.key)
        (void)json_object_set(p.parent, key, fresh);
    else if (fresh)
        (void)json_array_set(p.parent, p.index, fresh);
    free(key);
    json_decref(fresh);
}

void fuzz_edit_json(json_t *root, fuzz_part edits) {
    while (edits.size) {
        const uint8_t *end = memchr(edits.at, '\n', edits.size);
        size_t n = end ? (size_t)(end - edits.at) : edits.size;
        char *line = fuzz_text((fuzz_part){.at = edits.at, .size = n});
        edit(root, line);
        free(line);
        n += end != NULL;
        edits.at += n;
        edits.size -= n;
    }
}

void fuzz_edit_bytes(uint8_t *bytes, size_t size, fuzz_part edits) {
    for (; edits.size >= 3 && size; edits.at += 3, edits.size -= 3)
        bytes[(size_t)(edits.at[0] | edits.at[1] << 8) % size] = edits.at[2];
}

/* ---- promises ---- */

void fuzz_must(fr_status status, const fr_error *err) {
    if (!status) return;
    (void)fprintf(stderr, "the preparation failed: %s\n", err->message);
    abort();
}

void fuzz_reason(fr_status status, const fr_error *err) {
    if (status && (err->code != status || !err->message[0] || strpbrk(err->message, "\r\n")))
        abort();
}

/* ---- something to work with ---- */

static fr_stream *stream;
static fr_window *window;

static void close_window(void) {
    fr_window_close(window);
    fr_stream_close(stream);
}

const fr_window *fuzz_window(void) {
    char path[FUZZ_PATH];
    fr_error err = {0};
    fr_synth synth = {0};
    fr_protocol protocol = {0};
    if (window) return window;
    fuzz_path(path, "stream");
    fuzz_must(fr_options_defaults(fr_synth_options, &synth, &err), &err);
    synth.events = 80;
    fuzz_must(fr_synth_make(&synth, path, &fuzz_context, &err), &err);
    fuzz_must(fr_stream_open(path, NULL, &fuzz_context, &stream, &err), &err);
    fuzz_must(fr_options_defaults(fr_protocol_options, &protocol, &err), &err);
    fuzz_must(fr_window_open(stream, &protocol, &fuzz_context, &window, &err), &err);
    fr_options_free(fr_synth_options, &synth);
    fr_options_free(fr_protocol_options, &protocol);
    (void)atexit(close_window);
    return window;
}

const char *fuzz_train(int number, const char **name, fr_model_settings *shape,
                       fr_training *training) {
    static const char *const small[][2] = {
        {"dim", "8"},   {"layers", "1"},    {"history", "8"}, {"time-dim", "4"},
        {"patch", "2"}, {"neighbors", "3"}, {"tokens", "3"},  {"head-width", "4"}};
    static char run[FUZZ_PATH];
    char folder_name[32];
    fr_error err = {0};
    int models = 0;
    while (fr_model_at(models)) models++;
    const fr_model *m = fr_model_at(number % models);
    *name = m->name;
    *training = (fr_training){0};
    fuzz_must(fr_options_defaults(fr_model_options, shape, &err), &err);
    fuzz_must(fr_options_defaults(fr_training_options, training, &err), &err);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (model_uses(m, small[i][0]))
            fuzz_must(fr_options_set(fr_model_options, shape, small[i][0], small[i][1], &err),
                      &err);
    training->epochs = 1;
    (void)snprintf(folder_name, sizeof folder_name, "run-%d", number % models);
    struct stat facts;
    if (stat(fuzz_path(run, folder_name), &facts))
        fuzz_must(fr_train_run(fuzz_window(), m->name, shape, training, run, &fuzz_context, &err),
                  &err);
    return run;
}

void fuzz_write_tensors(const char *name, fuzz_bytes good, fuzz_part rest) {
    uint64_t length = 0;
    for (int i = 0; i < 8; i++) length |= (uint64_t)good.at[i] << 8 * i;
    json_t *header = json_loadb((const char *)good.at + 8, length, 0, NULL);
    size_t room = good.size + 65536, size = good.size - 8 - length;
    uint8_t *data = calloc(room, 1);
    if (!header || !data) abort();
    memcpy(data, good.at + 8 + length, size);
    for (fuzz_part p; fuzz_next(&rest, &p);) {
        if (p.kind == 'h') fuzz_edit_json(header, p);
        if (p.kind == 'b') fuzz_edit_bytes(data, size, p);
        if (p.kind == 'l' && p.size >= 2) size = (size_t)(p.at[0] | p.at[1] << 8);
        if (p.kind == 'R') {
            fuzz_write(name, p.at, p.size);
            goto end;
        }
    }
    char *text = json_dumps(header, JSON_COMPACT);
    if (!text) abort();
    size_t written = strlen(text);
    length = (written + 7) / 8 * 8; /* as the writer does, so that the data is aligned */
    uint8_t *file = malloc(8 + length + size);
    if (!file) abort();
    memset(file + 8, ' ', length);
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)(length >> 8 * i);
    memcpy(file + 8, text, written);
    memcpy(file + 8 + length, data, size);
    fuzz_write(name, file, 8 + length + size);
    free(file);
    free(text);
end:
    free(data);
    json_decref(header);
}
