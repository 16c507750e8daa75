/* json.c - see json.h. */
#include "base/json.h"

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- out of memory ----
 *
 * If memory runs out, jansson's reader leaves out characters and continues: numbers lose digits,
 * and a text that ends in the middle is read beyond its end. Its writer does the same with keys. So
 * after one failed allocation all others fail until the text is done. jansson then cannot continue
 * with incomplete data, and the result is thrown away. */

static _Thread_local bool watched, ran_out;
static json_malloc_t take; /* what the program has set */
static json_free_t give;

static void *take_watched(size_t size) {
    void *block = watched && ran_out ? NULL : take(size);
    if (!block) ran_out = true;
    return block;
}

static void watch(void) {
    json_get_alloc_funcs(&take, &give);
    json_set_alloc_funcs(take_watched, give);
}

/* jansson may outlive this library. */
__attribute__((destructor)) static void unwatch(void) {
    if (take) json_set_alloc_funcs(take, give);
}

/* Between these two, allocations are watched and the C locale is set. */
static locale_t begin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch);
    watched = true;
    ran_out = false;
    return number_locale_begin();
}

/* False with errno ENOMEM if memory was short. */
static bool end(locale_t before) {
    number_locale_end(before);
    watched = false;
    if (ran_out) errno = ENOMEM;
    return !ran_out;
}

json_t *json_parse(const char *text, size_t size, size_t flags, json_error_t *at) {
    locale_t before = begin();
    json_t *root = json_loadb(text, size, flags, at);
    if (end(before)) return root;
    json_decref(root);
    return NULL;
}

char *json_print(const json_t *root, size_t flags) {
    locale_t before = begin();
    char *text = json_dumps(root, flags);
    if (end(before)) return text;
    free(text);
    return NULL;
}

fr_status json_read(const char *path, json_t **out, fr_error *err) {
    mapping file = {0};
    *out = NULL;
    TRY(mapping_open(path, &file, err));
    json_error_t at;
    errno = 0;
    *out = json_parse(file.bytes ? (const char *)file.bytes : "", file.size, JSON_REJECT_DUPLICATES,
                      &at);
    mapping_close(&file);
    if (*out) return FR_OK;
    if (errno == ENOMEM) return fail_errno(err, "%s: cannot be read", path);
    return fail(err, FR_EINPUT, "%s:%d:%d: not valid JSON: %s", path, at.line, at.column, at.text);
}

fr_status json_write(const char *path, json_t *root, fr_error *err) {
    char *text = root ? json_print(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    if (!text) return fail_memory(err, 0);
    writer w = {0};
    fr_status status = writer_open(&w, path, err);
    if (!status) status = writer_put(&w, text, strlen(text), err);
    if (!status) status = writer_put(&w, "\n", 1, err);
    if (!status) status = writer_commit(&w, err);
    writer_discard(&w);
    free(text);
    return status;
}

static void drop(json_t **root) {
    json_decref(*root);
    *root = NULL;
}

void json_put(json_t **object, const char *key, json_t *value) {
    if (json_object_set_new(*object, key, value)) drop(object);
}

void json_push(json_t **list, json_t *value) {
    if (json_array_append_new(*list, value)) drop(list);
}

json_t *json_text(const char *text) {
    json_error_t error;
    json_t *string = json_pack_ex(&error, 0, "s", text);
    if (string || json_error_code(&error) != json_error_invalid_utf8) return string;
    text_buffer shown = {0};
    text_put_printable(&shown, text);
    string = shown.failed ? NULL : json_string(shown.at ? shown.at : "");
    text_free(&shown);
    return string;
}
