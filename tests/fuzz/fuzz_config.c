/* fuzz_config.c - any bytes as a config file: refused with a one-line reason, or settings within
 * their ranges. The first byte chooses the table of options. */
#include "parts.h"

#include <stdlib.h>

static const fr_option *const tables[] = {
    fr_import_options,  fr_protocol_options, fr_synth_options,
    fr_rank_options,    fr_model_options,    fr_training_options,
    fr_compare_options, fr_minimal_options,  fr_scaling_options};
enum { TABLES = sizeof tables / sizeof *tables };

static union {
    fr_import import;
    fr_protocol protocol;
    fr_synth synth;
    fr_rank_settings rank;
    fr_model_settings model;
    fr_training training;
    fr_compare_settings compare;
    fr_minimal_settings minimal;
    fr_scaling_settings scaling;
} settings;

static fr_status set(void *user, const char *key, const char *value, fr_error *err) {
    return fr_options_set(user, &settings, key, value, err);
}

static void check_range(const fr_option *o) {
    const char *field = (const char *)&settings + o->offset;
    if (o->type == FR_OPTION_INT) {
        double value = (double)*(const int64_t *)field;
        if (value < o->low || value > o->high) abort();
    }
    if (o->type == FR_OPTION_REAL) {
        double value = *(const double *)field;
        if (!(value >= o->low && value <= o->high)) abort();
    }
    char text[4096];
    fr_options_text(o, &settings, text, sizeof text);
    if (o->type == FR_OPTION_CHOICE && !text[0]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char path[FUZZ_PATH];
    fr_error err = {0};
    if (!size) return 0;
    const fr_option *table = tables[bytes[0] % TABLES];
    fuzz_write("config.json", bytes + 1, size - 1);
    fuzz_must(fr_options_defaults(table, &settings, &err), &err);
    fr_status status =
        fr_config_read(fuzz_path(path, "config.json"), set, (void *)(uintptr_t)table, &err);
    fuzz_reason(status, &err);
    for (const fr_option *o = table; o->key; o++) check_range(o);
    fr_options_free(table, &settings);
    return 0;
}
