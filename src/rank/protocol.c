/* protocol.c - see protocol.h. */
#include "rank/protocol.h"

#include "base/options.h"
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FIELD(name, type, values, low, high)                                                       \
    { #name, FR_OPTION_##type, "", values, low, high, offsetof(fr_protocol_facts, name), "" }

const fr_option fr_protocol_fields[] = {
    FIELD(data_sha256, TEXT, "", 0, 0),
    FIELD(window, INT, "N", 0, INT32_MAX),
    FIELD(train, INT, "N", 0, INT32_MAX),
    FIELD(test, INT, "N", 0, INT32_MAX),
    FIELD(order, CHOICE, "stream|strict|batch", 0, 0),
    FIELD(catalog, CHOICE, "fixed|time|file|train+val|all|range", 0, 0),
    FIELD(catalog_sha256, TEXT, "", 0, 0),
    FIELD(catalog_size, INT, "N", 0, INT32_MAX),
    FIELD(oov, CHOICE, "exclude|zero", 0, 0),
    FIELD(ties, CHOICE, "average", 0, 0),
    FIELD(popularity_power, REAL, "POWER", 0, 10),
    FIELD(met, INT, "N", 0, INT32_MAX),
    FIELD(val, INT, "N", 0, INT32_MAX),
    FIELD(part, CHOICE, "test|val", 0, 0),
    FIELD(batch, INT, "N", 0, INT32_MAX),
    FIELD(filter, CHOICE, "none|same-time", 0, 0),
    FIELD(negatives_sha256, TEXT, "", 0, 0),
    FIELD(sample, INT, "N", 0, INT32_MAX),
    FIELD(sample_of, INT, "N", 0, INT32_MAX),
    FIELD(sample_seed, INT, "N", 0, 9007199254740992.0),
    {0}};
enum { FIELDS = sizeof fr_protocol_fields / sizeof *fr_protocol_fields - 1, SHOWN = 16 };

fr_protocol_facts protocol_of_window(const fr_window *w, double popularity_power, int64_t met) {
    return (fr_protocol_facts){.data_sha256 = (char *)(uintptr_t)w->stream->sha256,
                               .window = w->events,
                               .train = w->train,
                               .test = w->events - w->train - w->val,
                               .order = w->order,
                               .catalog = w->catalog_kind,
                               .catalog_sha256 = (char *)(uintptr_t)w->catalog_sha256,
                               .catalog_size = w->catalog_size,
                               .oov = w->protocol.oov,
                               .ties = FR_TIES_AVERAGE,
                               .popularity_power = popularity_power,
                               .met = met,
                               .val = w->val,
                               .part = w->protocol.part,
                               .batch = w->order == FR_ORDER_BATCH ? w->batch : 0,
                               .filter = w->protocol.filter};
}

void protocol_sample(fr_protocol_facts *protocol, const event_list *events) {
    if (!events->event) return;
    protocol->sample = events->count;
    protocol->sample_of = events->part;
    protocol->sample_seed = events->seed;
}

/* The fields from `met` on are 0 in most rankings and are then left out, so these rankings can be
 * compared with records of earlier releases. */
static bool left_out(const fr_protocol_facts *protocol, const fr_option *field) {
    if (field->offset < offsetof(fr_protocol_facts, met)) return false;
    const char *at = (const char *)protocol + field->offset;
    if (field->type == FR_OPTION_TEXT) {
        const char *text = *(char *const *)at;
        return !text || !*text;
    }
    return field->type == FR_OPTION_INT ? !*(const int64_t *)at : !*(const int *)at;
}

json_t *protocol_json(const fr_protocol_facts *protocol) {
    json_t *out = json_object();
    if (!out || options_to_json(fr_protocol_fields, protocol, out, NULL)) {
        json_decref(out);
        return NULL;
    }
    for (const fr_option *field = fr_protocol_fields; field->key; field++)
        if (left_out(protocol, field)) (void)json_object_del(out, field->key);
    return out;
}

static fr_status set_field(void *user, const char *key, const char *value, fr_error *err) {
    const fr_option *field = fr_options_find(fr_protocol_fields, key);
    fr_error inner = {0};
    if (!field)
        return fail(err, FR_EINPUT, "the protocol has a field %s, which is not known here", key);
    fr_status status = fr_options_set(fr_protocol_fields, user, key, value, &inner);
    if (status == FR_EUSAGE) return fail(err, FR_EINPUT, "protocol: %s", inner.message);
    return status ? fail(err, status, "%s", inner.message) : FR_OK;
}

fr_status protocol_read(const json_t *object, const char *where, fr_protocol_facts *out,
                        fr_error *err) {
    *out = (fr_protocol_facts){0};
    for (const fr_option *field = fr_protocol_fields; field->key; field++)
        if (!left_out(out, field) && !json_object_get(object, field->key))
            return fail(err, FR_EINPUT,
                        "%s: does not describe rank records: its protocol has no %s", where,
                        field->key);
    return options_from_json(object, where, set_field, out, err);
}

/* A few digits of a hash are enough for people. */
static void print_field(const fr_option *field, const fr_protocol_facts *protocol, char out[80]) {
    fr_options_text(field, protocol, out, 80);
    if (field->type == FR_OPTION_TEXT && strlen(out) > SHOWN) out[SHOWN] = 0;
}

char *protocol_text(const fr_protocol_facts *protocol) {
    text_buffer text = {0};
    for (const fr_option *field = fr_protocol_fields; field->key; field++) {
        char value[80];
        if (left_out(protocol, field)) continue;
        print_field(field, protocol, value);
        text_print(&text, "%s%s=%s", text.count ? " " : "", field->key, value);
    }
    if (!text_status(&text, NULL)) return text.at;
    text_free(&text);
    return NULL;
}

int fr_protocol_compare(const fr_protocol_facts *a, const fr_protocol_facts *b, char *out,
                        size_t size) {
    int count = 0;
    size_t used = 0;
    if (size) *out = 0;
    if (!a || !b) return a == b ? 0 : FIELDS;
    for (const fr_option *field = fr_protocol_fields; field->key; field++) {
        char x[80], y[80];
        fr_options_text(field, a, x, sizeof x);
        fr_options_text(field, b, y, sizeof y);
        if (!strcmp(x, y)) continue;
        print_field(field, a, x);
        print_field(field, b, y);
        int length = snprintf(used < size ? out + used : NULL, used < size ? size - used : 0,
                              "%s%s (%s against %s)", count++ ? ", " : "", field->key, x, y);
        if (length > 0) used += (size_t)length;
    }
    return count;
}
