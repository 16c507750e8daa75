/* cmd_data.c - streams: import, info, get, export, verify. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options ---- */

typedef struct output_settings {
    char *output;
    bool force;
} output_settings;

// clang-format off
#define OUTPUT_OPTIONS(word, what, force_help) { \
    {"output", FR_OPTION_TEXT, "", word, 0, 0, offsetof(output_settings, output), what}, \
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(output_settings, force), force_help}, \
    {0}}
// clang-format on

static const fr_option directory_options[] = OUTPUT_OPTIONS(
    "DIR", "the directory to make", "replace an existing output, if this tool made it");
static const fr_option file_options[] =
    OUTPUT_OPTIONS("FILE", "the file to write", "replace the file if it exists");

#define DIRECTORY_GROUP                                                                            \
    { "Output", directory_options, sizeof(output_settings) }
#define IMPORT_GROUP                                                                               \
    { "Reading tables", fr_import_options, sizeof(fr_import) }

/* ---- data import, data get ---- */

static const char *ids_word(const fr_stream_facts *f) { return f->words ? "words" : "numbers"; }

int cli_report_stream(cli_call *call, const char *path) {
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_context whole = call->context;
    whole.cancel = NULL; /* the set is complete: a signal now must not count as an interruption */
    fr_status status = fr_stream_open(path, NULL, &whole, &stream, &err);
    if (status) return cli_report(status, &err);
    fr_stream_facts f = fr_stream_get(stream);
    int code = CLI_OK;
    if (call->common.json)
        code = cli_print_json(json_pack(
            "{s:o, s:I, s:I, s:I, s:I, s:s, s:s, s:s}", "output", cli_json_text(path), "events",
            (json_int_t)f.events, "sources", (json_int_t)f.sources, "destinations",
            (json_int_t)f.destinations, "feature_width", (json_int_t)f.feature_width, "ids",
            ids_word(&f), "sha256", f.sha256, "data_checked", f.checked));
    else
        (void)printf("%s: %s events of %s sources and %s destinations, %s features each\n",
                     cli_visible(path), cli_count(f.events).s, cli_count(f.sources).s,
                     cli_count(f.destinations).s, cli_count(f.feature_width).s);
    fr_stream_close(stream);
    return code;
}

/* Prints notes about a new set that its owner should know. */
static fr_status note_set(const cli_call *call, const char *path, fr_error *err) {
    fr_stream *stream = NULL;
    fr_overlap o;
    fr_context whole = call->context;
    whole.cancel = NULL; /* as above */
    const fr_option *window = fr_options_find(fr_protocol_options, "window");
    fr_status status = fr_stream_open(path, NULL, &whole, &stream, err);
    if (!status) status = fr_stream_overlap(stream, &whole, &o, err);
    if (!status) {
        fr_stream_facts f = fr_stream_get(stream);
        int64_t last = strtoll(window->standard, NULL, 10);
        if (f.events > 2 * last)
            cli_note("%s: %s events; `rank` and `train` use the last %s unless --window gives "
                     "another number",
                     path, cli_count(f.events).s, cli_count(last).s);
        if (!f.shared_ids && o.ids && !o.per_role)
            cli_note("%s: %s ids of %s sources and %s destinations occur in both roles; they are "
                     "treated as different nodes unless --shared-ids is given",
                     path, cli_count(o.ids).s, cli_count(f.sources).s, cli_count(f.destinations).s);
        if (o.self_loops && (f.shared_ids || !o.per_role))
            cli_note("%s: %s events go from an id to itself", path, cli_count(o.self_loops).s);
    }
    fr_stream_close(stream);
    return status;
}

/* Describes the complete set. */
static int report_new(cli_call *call, const char *path) {
    fr_error err = {0};
    fr_status status = note_set(call, path, &err);
    return status ? cli_report(status, &err) : cli_report_stream(call, path);
}

static int run_import(cli_call *call) {
    fr_import *import = call->settings[0];
    const output_settings *out = call->settings[1];
    fr_error err = {0};
    import->force = out->force;
    fr_status status = fr_import_file(call->argument[0], out->output, import, &call->context, &err);
    return status ? cli_report(status, &err) : report_new(call, out->output);
}

const cli_command cli_data_import_command = {
    .name = "data import",
    .summary = "Turn an interaction file into a directory of columns",
    .text =
        "Reads CSV, TSV or space separated tables, plain or .gz, in the formats of JODIE, DyGLib, "
        "TGB and TGB-Seq. Writes source.npy, destination.npy, time.npy, features.npy (if any), "
        "source_ids.npy, destination_ids.npy and manifest.json. Columns are recognised by their "
        "names in the header. Ids are whole numbers or words. Times are numbers or ISO dates. "
        "Events out of order are sorted by time; equal times keep their order.\n"
        "The directory appears complete or not at all. Memory does not grow with the file.",
    .arguments = "IN",
    .required = "output",
    .example = "fullrank data import wikipedia.csv -o wikipedia",
    .groups = {IMPORT_GROUP, DIRECTORY_GROUP},
    .run = run_import,
};

typedef struct get_settings {
    char *url;
} get_settings;

static const fr_option get_options[] = {
    {"url", FR_OPTION_TEXT, "", "URL", 0, 0, offsetof(get_settings, url),
     "download this instead of the set's own address (http, https or file)"},
    {0}};

static int run_get(cli_call *call) {
    const get_settings *get = call->settings[0];
    fr_import *import = call->settings[1];
    const output_settings *out = call->settings[2];
    fr_error err = {0};
    import->force = out->force;
    fr_status status =
        fr_stream_download(call->argument[0], get->url, out->output, import, &call->context, &err);
    return status ? cli_report(status, &err) : report_new(call, out->output);
}

const cli_command cli_data_get_command = {
    .name = "data get",
    .summary = "Download and import a public set",
    .text = "Knows the JODIE sets wikipedia, reddit, mooc and lastfm. With --url it downloads any "
            "other "
            "file under a name of your choice. If a download breaks off, repeat the command to "
            "continue it. The SHA-256 of the file and its address are stored in manifest.json.",
    .arguments = "NAME",
    .required = "output",
    .example = "fullrank data get wikipedia -o wikipedia",
    .groups = {{"Source", get_options, sizeof(get_settings)}, IMPORT_GROUP, DIRECTORY_GROUP},
    .run = run_get,
};

/* ---- data export ---- */

static int run_export(cli_call *call) {
    const fr_import *import = call->settings[0];
    const output_settings *out = call->settings[1];
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_status status = fr_stream_open(call->argument[0], import, &call->context, &stream, &err);
    if (!status) status = fr_stream_export(stream, out->output, out->force, &call->context, &err);
    int64_t events = status ? 0 : fr_stream_get(stream).events;
    fr_stream_close(stream);
    if (status || !call->common.json) return cli_report(status, &err);
    return cli_print_json(json_pack("{s:o, s:I}", "output", cli_json_text(out->output), "events",
                                    (json_int_t)events));
}

const cli_command cli_data_export_command = {
    .name = "data export",
    .summary = "Write a stream as CSV",
    .text = "The columns are source, destination, time, split (if the set has one), f1, f2, ... "
            "Numbers have as few digits as give the same bits when read again, so importing the "
            "file gives the same columns. A file whose name ends in .gz is compressed.",
    .arguments = "DATA",
    .required = "output",
    .example = "fullrank data export wikipedia -o wikipedia.csv.gz",
    .groups = {IMPORT_GROUP, {"Output", file_options, sizeof(output_settings)}},
    .run = run_export,
};

/* ---- data verify ---- */

static const char *verdict(const fr_data_file *f) {
    return f->bytes < 0      ? "cannot be read"
           : !f->expected[0] ? "not recorded"
           : f->same         ? "ok"
                             : "changed";
}

static int verify_json(const fr_data_file *file, int count, bool same) {
    json_t *files = json_array();
    for (int k = 0; files && k < count; k++) {
        const fr_data_file *f = &file[k];
        json_t *one = json_pack("{s:s, s:o, s:s, s:s, s:s}", "name", f->name, "bytes",
                                f->bytes < 0 ? json_null() : json_integer(f->bytes), "sha256",
                                f->sha256, "expected", f->expected, "verdict", verdict(f));
        if (json_array_append_new(files, one)) {
            json_decref(files);
            files = NULL;
        }
    }
    return cli_print_json(files ? json_pack("{s:b, s:o}", "same", same, "files", files) : NULL);
}

static int run_verify(cli_call *call) {
    fr_data_file file[FR_DATA_FILES];
    int count, code = CLI_OK;
    fr_error err = {0};
    fr_status status = fr_data_verify(call->argument[0], &call->context, file, &count, &err);
    cli_terminal_clear();
    if (call->common.json && (count || !status)) {
        code = verify_json(file, count, !status);
    } else {
        for (int k = 0; k < count; k++)
            (void)printf("%-22s %15s bytes  %.12s  %s\n", file[k].name,
                         file[k].bytes < 0 ? "-" : cli_count(file[k].bytes).s, file[k].sha256,
                         verdict(&file[k]));
    }
    return status ? cli_report(status, &err) : code;
}

const cli_command cli_data_verify_command = {
    .name = "data verify",
    .summary = "Check that the columns have not changed since the import",
    .text =
        "Hashes every file of a directory made by `data import`, `data get` or `data synth` and "
        "compares the hash with manifest.json. The exit code is 1 if a file is changed or missing. "
        "Other commands do the same for sets below 64 MiB, and if a file has another modification "
        "time than the manifest. Otherwise they compare sizes and times. Training and studies "
        "always compare hashes.",
    .arguments = "DATA",
    .example = "fullrank data verify wikipedia",
    .run = run_verify,
};

/* ---- data info ---- */

typedef struct info_settings {
    int64_t diagnostic_window;
} info_settings;

static const fr_option info_options[] = {
    {"diagnostic-window", FR_OPTION_INT, "131072", "N", 0, INT32_MAX,
     offsetof(info_settings, diagnostic_window),
     "most recent events used for the minimal scorer and the 2x2 table; 0 = all"},
    {0}};

typedef struct info {
    fr_stream_facts stream;
    fr_window_facts window;
    fr_facts facts;
    fr_overlap overlap;
    const fr_protocol *protocol;
} info;

static const char *order_word(const info *i) {
    return i->protocol->order ? i->protocol->order : "stream";
}

/* The kind of catalog. *path is the path of a catalog file, and NULL for other kinds. */
static const char *catalog_kind(const info *i, const char **path) {
    static const char *const kinds[] = {"fixed", "train+val", "all", "range", "time"};
    const char *catalog = i->protocol->catalog;
    *path = NULL;
    if (!catalog || !strcmp(catalog, "train")) return "fixed";
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(catalog, kinds[k])) return kinds[k];
    *path = catalog;
    return "file";
}

/* Number of events of the ranked part. */
static int64_t ranked_events(const info *i) { return i->window.to - i->window.from; }
static const char *ranked_part(const info *i) {
    return i->protocol->part == FR_PART_VAL ? "validation" : "test";
}

static int print_json(const info *i) {
    const fr_stream_facts *s = &i->stream;
    const fr_window_facts *w = &i->window;
    const fr_facts *f = &i->facts;
    const char *file, *kind = catalog_kind(i, &file);
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:b, s:I, s:I, s:s}", "name", s->name,
        "sha256", s->sha256, "data_checked", s->checked, "events", (json_int_t)s->events, "sources",
        (json_int_t)s->sources, "destinations", (json_int_t)s->destinations, "feature_width",
        (json_int_t)s->feature_width, "ids", ids_word(s), "first_time",
        cli_json_real(s->first_time), "last_time", cli_json_real(s->last_time), "shared_ids",
        s->shared_ids, "overlapping_ids", (json_int_t)i->overlap.ids, "self_loops",
        (json_int_t)i->overlap.self_loops, "order", order_word(i));
    if (root)
        cli_json_put(root, "split",
                     s->split_train < 0
                         ? json_null()
                         : json_pack("{s:I, s:I, s:I}", "train", (json_int_t)s->split_train, "val",
                                     (json_int_t)s->split_val, "test",
                                     (json_int_t)(s->events - s->split_train - s->split_val)));
    json_t *window =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "events", (json_int_t)w->events, "train",
                  (json_int_t)w->train, "val", (json_int_t)w->val, "test", (json_int_t)w->test,
                  "first_row", (json_int_t)w->first, "sources", (json_int_t)w->sources,
                  "destinations", (json_int_t)w->destinations);
    json_t *shape = json_pack(
        "{s:o, s:o, s:o, s:o}", "test_repeat_share", cli_json_real(f->test_repeat_share),
        "destinations_per_source", cli_json_real(f->destinations_per_source), "popularity_gini",
        cli_json_real(f->popularity_gini), "source_history_mean", cli_json_real(f->history_mean));
    json_t *minimal =
        json_pack("{s:I, s:I, s:o, s:o, s:o}", "eligible", (json_int_t)f->eligible, "repeated",
                  (json_int_t)f->eligible_repeated, "p1", cli_json_real(f->p1), "q1",
                  cli_json_real(f->q1), "beta_star", cli_json_real(f->beta_star));
    json_t *catalog = json_pack("{s:s, s:I, s:s}", "kind", kind, "size",
                                (json_int_t)w->catalog_size, "sha256", w->catalog_sha256);
    if (catalog && file) cli_json_put(catalog, "file", cli_json_text(file));
    json_t *rest = json_pack(
        "{s:o, s:o, s:{s:I, s:o}, s:I, s:I, s:I, s:{s:I, s:o}, s:o, s:{s:I, s:I}, "
        "s:o, s:{s:I, s:I, s:I}}",
        "window", window, "catalog", catalog, "coverage", "events", (json_int_t)f->covered, "share",
        cli_json_real((double)f->covered / (double)ranked_events(i)), "repeated",
        (json_int_t)f->repeated, "new", (json_int_t)f->new_, "tied_times",
        (json_int_t)f->tied_times, "time_available", "ranked", (json_int_t)f->available_ranked,
        "mean_size", cli_json_real(f->available_size), "shape", shape, "diagnostic_window",
        "events", (json_int_t)f->diagnostic_events, "catalog_size",
        (json_int_t)f->diagnostic_catalog, "minimal", minimal, "membership", "repeated",
        (json_int_t)f->membership_repeated, "new", (json_int_t)f->membership_new, "unavailable",
        (json_int_t)f->membership_unavailable);
    if (!root || !rest || json_object_update(root, rest)) {
        json_decref(root);
        root = NULL;
    }
    json_decref(rest);
    return cli_print_json(root);
}

static void heading(const char *text) {
    (void)printf("\n%s%s%s\n", cli_style(stdout, CLI_BOLD), text, cli_style(stdout, CLI_PLAIN));
}

static void print_stream(const info *i) {
    const fr_stream_facts *s = &i->stream;
    (void)printf("%s%s%s\n", cli_style(stdout, CLI_BOLD), cli_visible(s->name),
                 cli_style(stdout, CLI_PLAIN));
    cli_pair("events", "%s", cli_count(s->events).s);
    cli_pair("sources", "%s", cli_count(s->sources).s);
    cli_pair("destinations", "%s", cli_count(s->destinations).s);
    cli_pair("features", "%s", cli_count(s->feature_width).s);
    cli_pair("ids", "%s%s", s->words ? "words" : "whole numbers",
             s->shared_ids ? ", shared by both roles" : ", separate for each role");
    if (i->overlap.ids)
        cli_pair("both roles", "%s ids (%s of the destinations), %s self loops%s",
                 cli_count(i->overlap.ids).s,
                 cli_share((double)i->overlap.ids, (double)s->destinations).s,
                 cli_count(i->overlap.self_loops).s,
                 s->shared_ids ? "" : ", if the ids mean the same things");
    cli_pair("time", "%.15g to %.15g (%.1f days of 86,400)", s->first_time, s->last_time,
             (s->last_time - s->first_time) / 86400);
    if (s->split_train >= 0)
        cli_pair("split column", "%s train, %s val, %s test", cli_count(s->split_train).s,
                 cli_count(s->split_val).s, cli_count(s->events - s->split_train - s->split_val).s);
}

static void print_text(const info *i) {
    const fr_window_facts *w = &i->window;
    const fr_facts *f = &i->facts;
    print_stream(i);
    heading("Ranking window");
    if (w->val)
        cli_pair("events", "%s = %s train + %s validation + %s test", cli_count(w->events).s,
                 cli_count(w->train).s, cli_count(w->val).s, cli_count(w->test).s);
    else
        cli_pair("events", "%s = %s train + %s test", cli_count(w->events).s, cli_count(w->train).s,
                 cli_count(w->test).s);
    cli_pair("sources", "%s, each meeting %.2f destinations", cli_count(w->sources).s,
             f->destinations_per_source);
    cli_pair("destinations", "%s, popularity Gini %.3f", cli_count(w->destinations).s,
             f->popularity_gini);
    const char *file, *kind = catalog_kind(i, &file);
    cli_pair("catalog", "%s%s%s, %s destinations, sha256 %.12s", kind, file ? " " : "",
             file ? cli_visible(file) : "", cli_count(w->catalog_size).s, w->catalog_sha256);
    cli_pair("coverage", "%s of %s %s events (%s)", cli_count(f->covered).s,
             cli_count(ranked_events(i)).s, ranked_part(i),
             cli_share((double)f->covered, (double)ranked_events(i)).s);
    cli_pair("repeated positives", "%s (%s)", cli_count(f->repeated).s,
             cli_share((double)f->repeated, (double)f->covered).s);
    cli_pair("new positives", "%s (%s)", cli_count(f->new_).s,
             cli_share((double)f->new_, (double)f->covered).s);
    cli_pair("time-available", "%s ranked, %.1f candidates on average",
             cli_count(f->available_ranked).s, f->available_size);
    cli_pair("tied times", "%s events (%s)", cli_count(f->tied_times).s,
             cli_share((double)f->tied_times, (double)w->events).s);
    cli_pair("history order", "%s", order_word(i));

    heading("Pair membership");
    cli_pair("window", "%s events, catalog %s", cli_count(f->diagnostic_events).s,
             cli_count(f->diagnostic_catalog).s);
    cli_pair("eligible events", "%s, with 20 or more source-history negatives",
             cli_count(f->eligible).s);
    if (f->eligible) {
        cli_pair("p1", "%.4f  repeated positives (%s)", f->p1, cli_count(f->eligible_repeated).s);
        cli_pair("q1", "%.4f  seen among catalog negatives", f->q1);
        cli_pair("beta*", "%.4f  best weight of membership alone", f->beta_star);
    }
    cli_pair("2x2 eligible", "%s repeated, %s new", cli_count(f->membership_repeated).s,
             cli_count(f->membership_new).s);
    if (f->membership_unavailable)
        cli_pair("not ranked", "%s more, whose destination has not occurred before",
                 cli_count(f->membership_unavailable).s);
}

static int run_info(cli_call *call) {
    fr_protocol *protocol = call->settings[0];
    const info_settings *settings = call->settings[1];
    const fr_import *import = call->settings[2];
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL, *diagnostic = NULL;
    info i = {.protocol = protocol};
    fr_status status = fr_stream_open(call->argument[0], import, &call->context, &stream, &err);
    if (!status) status = fr_window_open(stream, protocol, &call->context, &window, &err);
    if (!status) {
        fr_protocol wide = *protocol;
        fr_context silent = call->context;
        wide.window = settings->diagnostic_window;
        silent.log = NULL; /* the note that a short stream is used whole was already given */
        status = fr_window_open(stream, &wide, &silent, &diagnostic, &err);
    }
    if (!status) status = fr_facts_compute(window, diagnostic, &call->context, &i.facts, &err);
    if (!status) status = fr_stream_overlap(stream, &call->context, &i.overlap, &err);
    int code = cli_report(status, &err);
    if (!status) {
        i.stream = fr_stream_get(stream);
        i.window = fr_window_get(window);
        cli_terminal_clear();
        if (call->common.json)
            code = print_json(&i);
        else
            print_text(&i);
    }
    fr_window_close(window);
    fr_window_close(diagnostic);
    fr_stream_close(stream);
    return code;
}

const cli_command cli_data_info_command = {
    .name = "data info",
    .summary = "Show what is in a stream",
    .text =
        "DATA is a directory made by `data import`, or a table. Shows its events, window, split, "
        "catalog, coverage, repeated and new positives and tied times. It also shows how much of "
        "the task is pair membership: p1 is the share of pairs that have met before among "
        "positives, q1 the same share among catalog negatives, and beta* = logit(p1) - logit(q1).",
    .arguments = "DATA",
    .example = "fullrank data info wikipedia --json",
    .groups = {{"Protocol", fr_protocol_options, sizeof(fr_protocol)},
               {"Diagnostics", info_options, sizeof(info_settings)},
               IMPORT_GROUP},
    .run = run_info,
};
