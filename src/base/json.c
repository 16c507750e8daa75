/* json.c - see json.h. */
#include "base/json.h"

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

json_t *json_parse(const char *text, size_t size, size_t flags, json_error_t *at) {
    locale_t before = number_locale_begin();
    json_t *root = json_loadb(text, size, flags, at);
    number_locale_end(before);
    return root;
}

char *json_print(const json_t *root, size_t flags) {
    locale_t before = number_locale_begin();
    char *text = json_dumps(root, flags);
    number_locale_end(before);
    return text;
}

fr_status json_read(const char *path, json_t **out, fr_error *err) {
    mapping file = {0};
    *out = NULL;
    TRY(mapping_open(path, &file, err));
    json_error_t at;
    *out = json_parse(file.bytes ? (const char *)file.bytes : "", file.size, JSON_REJECT_DUPLICATES,
                      &at);
    mapping_close(&file);
    if (*out) return FR_OK;
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

json_t *json_text(const char *text) {
    json_t *string = json_string(text);
    if (string) return string;
    text_buffer shown = {0};
    text_put_printable(&shown, text);
    string = shown.failed ? NULL : json_string(shown.at ? shown.at : "");
    text_free(&shown);
    return string;
}
