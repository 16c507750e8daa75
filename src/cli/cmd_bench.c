/* cmd_bench.c - bench scaling: time and memory of one event against the size of the catalog. */
#include "cli.h"

typedef struct bench_io {
    char *data, *scorer;
    bool csv;
} bench_io;

static const fr_option bench_io_options[] = {
    {"data", FR_OPTION_TEXT, "", "DATA", 0, 0, offsetof(bench_io, data),
     "a directory made by `data import`, or a table"},
    {"scorer", FR_OPTION_TEXT, "", "SPEC", 0, 0, offsetof(bench_io, scorer),
     "baseline:NAME[,option=value], plugin:FILE.so[,option=value], scores:FILE.npy, oracle or a "
     "trained FILE.safetensors"},
    {"csv", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(bench_io, csv),
     "print the points as CSV, for figures"},
    {0}};

static int print_json(const char *scorer, const fr_scaling_point *point, int count) {
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        const fr_scaling_point *p = &point[i];
        cli_json_push(
            list, json_pack("{s:I, s:s, s:I, s:I, s:o, s:o, s:I}", "size", (json_int_t)p->size,
                            "path", p->path, "scored", (json_int_t)p->scored, "events",
                            (json_int_t)p->events, "ms_per_event", cli_json_real(1e3 * p->seconds),
                            "mrr", cli_json_real(p->mrr), "peak_bytes", (json_int_t)p->peak_bytes));
    }
    return cli_print_json(json_pack("{s:o, s:i, s:o}", "scorer", cli_json_text(scorer), "processes",
                                    cli_processes() ? cli_processes()->count : 1, "points", list));
}

static int print_csv(const fr_scaling_point *point, int count) {
    (void)printf("size,path,scored,events,ms_per_event,mrr,peak_bytes\n");
    for (int i = 0; i < count; i++)
        (void)printf("%lld,%s,%lld,%lld,%.6g,%.6f,%lld\n", (long long)point[i].size, point[i].path,
                     (long long)point[i].scored, (long long)point[i].events, 1e3 * point[i].seconds,
                     point[i].mrr, (long long)point[i].peak_bytes);
    return CLI_OK;
}

static int print_table(const char *scorer, const fr_scaling_point *point, int count) {
    char many[32] = "one thread";
    if (cli_processes())
        (void)snprintf(many, sizeof many, "%d processes at once", cli_processes()->count);
    (void)printf("%s, %s test events, %s\n%s%10s  %-8s  %10s  %12s  %12s  %8s  %10s%s\n",
                 cli_visible(scorer), cli_count(point[0].events).s, many,
                 cli_style(stdout, CLI_BOLD), "catalog", "path", "scored", "ms/event", "us/scored",
                 "MRR", "peak MB", cli_style(stdout, CLI_PLAIN));
    for (int i = 0; i < count; i++) {
        const fr_scaling_point *p = &point[i];
        (void)printf("%10s  %-8s  %10s  %12.4f  %12.4f  %8.4f  %10s\n", cli_count(p->size).s,
                     p->path, cli_count(p->scored).s, 1e3 * p->seconds,
                     1e6 * p->seconds / (double)p->scored, p->mrr,
                     cli_megabytes((uint64_t)p->peak_bytes).s);
    }
    return CLI_OK;
}

static int run_scaling(cli_call *call) {
    const bench_io *io = call->settings[0];
    const fr_scaling_settings *settings = call->settings[1];
    const fr_protocol *protocol = call->settings[2];
    const cli_seed *seed = call->settings[3];
    const fr_import *import = call->settings[4];
    if (io->csv && call->common.json)
        return cli_usage("options csv and json, expected one of them");
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    fr_scaling_point point[FR_SCALING_MAX];
    int count = 0;
    fr_status status = fr_stream_open(io->data, import, &call->context, &stream, &err);
    if (!status) status = fr_window_open(stream, protocol, &call->context, &window, &err);
    status = fr_processes_agree(&call->context, status, &err);
    if (!status) cli_plan_scaling(window, io->scorer, settings);
    if (!status)
        status = fr_scaling_run(window, io->scorer, settings, seed->seed, &call->context, point,
                                &count, &err);
    status = fr_processes_agree(&call->context, status, &err);
    fr_window_close(window);
    fr_stream_close(stream);
    if (status || !cli_first()) return cli_report(status, &err);
    cli_terminal_clear();
    return call->common.json ? print_json(io->scorer, point, count)
           : io->csv         ? print_csv(point, count)
                             : print_table(io->scorer, point, count);
}

const cli_command cli_bench_scaling_command = {
    .name = "bench scaling",
    .summary = "Measure time and memory per event against the size of the catalog",
    .text =
        "Uses catalogs of 20, 50, 100, 200, 500, ... destinations, up to all of them. Each "
        "contains the positive and the previous catalog. One thread scores, and the fastest of "
        "--repeats counts for each event. The path `forward` is the plain forward pass of a "
        "model over these candidates only. `fast` is the fast path of `rank`, which scores "
        "every destination at once; `whole` is the same for scorers without a model. `rank` is "
        "the time per event of `rank` itself, with all fields of the records; baselines whose "
        "ranks are counted rank all test events for it. Memory is the largest resident size of "
        "the process while it scored, including the data. Started by mpirun, processes share the "
        "events out and measure at the same time; `rank` is then measured by process 0 alone "
        "(docs/cluster.md).",
    .required = "data scorer",
    .example = "fullrank bench scaling --data wikipedia --scorer run/model.safetensors",
    .groups = {{"Input", bench_io_options, sizeof(bench_io)},
               {"Measuring", fr_scaling_options, sizeof(fr_scaling_settings)},
               {"Protocol", fr_protocol_options, sizeof(fr_protocol)},
               CLI_SEED_GROUP,
               {"Reading tables", fr_import_options, sizeof(fr_import)}},
    .run = run_scaling,
    .shared = true,
};
