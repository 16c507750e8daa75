/* tables.c - --format: results as LaTeX, Markdown or CSV.
 *
 * The library writes the tables (fullrank.h, chapter 16), so names are escaped and numbers rounded
 * as in the tables of a study. CSV is for programs: one table with everything, a number in each
 * field, named as in the JSON document with dots between the levels.
 */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const fr_option cli_format_options[] = {
    {"format", FR_OPTION_CHOICE, "text", "text|latex|markdown|csv|json", 0, 0,
     offsetof(cli_output, format),
     "format of the results; csv has every number with all its digits, and --json means --format "
     "json"},
    {0}};

int cli_format_take(cli_call *call, const cli_output *chosen, int *out) {
    *out = chosen->format;
    if (call->common.json && *out != FR_FORMAT_TEXT && *out != CLI_FORMAT_JSON)
        return cli_usage("options json and format, expected one or the other");
    if (call->common.json) *out = CLI_FORMAT_JSON;
    call->common.json = *out == CLI_FORMAT_JSON;
    call->common.wide |= *out != FR_FORMAT_TEXT;
    return CLI_OK;
}

int cli_table_print(fr_table *table, int format, bool first) {
    const char *text = NULL;
    fr_error err = {0};
    int code = cli_report(fr_table_text(table, format, &text, &err), &err);
    if (!code) (void)printf("%s%s", first ? "" : "\n", text);
    return code;
}

fr_table_cell cli_cell_text(const char *text) {
    return (fr_table_cell){.kind = FR_CELL_TEXT, .text = text};
}
fr_table_cell cli_cell_number(double value, int decimals) {
    return (fr_table_cell){.kind = FR_CELL_NUMBER, .value = value, .decimals = decimals};
}
fr_table_cell cli_cell_count(int64_t value) {
    return (fr_table_cell){.kind = FR_CELL_INTEGER, .value = (double)value};
}
fr_table_cell cli_cell_interval(fr_interval i, int decimals) {
    return (fr_table_cell){
        .kind = FR_CELL_INTERVAL, .low = i.low, .high = i.high, .decimals = decimals};
}
fr_table_cell cli_cell_mean(double mean, double sd, int decimals) {
    return (fr_table_cell){.kind = FR_CELL_MEAN, .value = mean, .sd = sd, .decimals = decimals};
}

/* ---- JSON objects as rows ---- */

/* Adds the plain values of an object to `flat`, which has one level and keys with dots. */
static void flatten(const char *prefix, json_t *object, json_t *flat) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char name[256];
        (void)snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object(value))
            flatten(name, value, flat);
        else if (!json_is_array(value))
            cli_json_put(flat, name, json_incref(value));
    }
}

static fr_table_cell json_cell(const json_t *value) {
    if (json_is_string(value)) return cli_cell_text(json_string_value(value));
    if (json_is_integer(value)) return cli_cell_count(json_integer_value(value));
    if (json_is_boolean(value)) return cli_cell_count(json_is_true(value));
    return cli_cell_number(json_is_real(value) ? json_real_value(value) : NAN, 4);
}

int cli_print_csv(json_t *list) {
    fr_error err = {0};
    fr_table *table = NULL;
    json_t *rows = json_array(), *heads = json_object(), *object;
    const char *head;
    json_t *any;
    size_t i;
    json_array_foreach(list, i, object) {
        json_t *flat = json_object();
        flatten("", object, flat);
        json_object_foreach(flat, head, any) {
            if (!json_object_get(heads, head)) cli_json_put(heads, head, json_true());
        }
        cli_json_push(rows, flat);
    }
    int code = cli_json_whole() ? CLI_OK : CLI_FAILED;
    if (!code) code = cli_report(fr_table_make(NULL, NULL, NULL, &table, &err), &err);
    json_object_foreach(heads, head, any) { fr_table_column(table, NULL, head, false); }
    json_array_foreach(rows, i, object) {
        fr_table_row(table);
        json_object_foreach(heads, head, any) {
            fr_table_put(table, json_cell(json_object_get(object, head)));
        }
    }
    if (!code) code = cli_table_print(table, FR_FORMAT_CSV, true);
    fr_table_close(table);
    json_decref(rows);
    json_decref(heads);
    json_decref(list);
    return code;
}
