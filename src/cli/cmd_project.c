/* cmd_project.c - scores of a model without pair membership: diagnose project (PROTOCOL 10).
 *
 * There are two uses. A trained model is ranked four times: as it is, and with one direction
 * removed from the vector that enters its scoring head. The ranking window gives the full MRR, the
 * diagnostic window the four cells. For models of other programs, the same directions are computed
 * from files of vectors, and changed heads are written to score with.
 */
#include "diagnose.h"

#include <math.h>

typedef struct project_io {
    char *data, *scorer, *diagnostic, *train, *output;
    char *representations, *labels, *head;
    int64_t k, diagnostic_window;
    bool force;
} project_io;

static const fr_option project_io_options[] = {
    {"data", FR_OPTION_TEXT, "", "DATA", 0, 0, offsetof(project_io, data),
     "a directory made by `data import`, or a table"},
    {"scorer", FR_OPTION_TEXT, "", "FILE.safetensors", 0, 0, offsetof(project_io, scorer),
     "a model trained with this --window: full-catalog metrics"},
    {"diagnostic", FR_OPTION_TEXT, "", "FILE.safetensors", 0, 0, offsetof(project_io, diagnostic),
     "a model trained with --diagnostic-window: the four cells"},
    {"train", FR_OPTION_TEXT, "", "MODEL", 0, 0, offsetof(project_io, train),
     "train this model on the diagnostic window first, into --output"},
    {"representations", FR_OPTION_TEXT, "", "Z.npy", 0, 0, offsetof(project_io, representations),
     "instead of a model: float [pairs, D], the vectors that enter a scoring head"},
    {"labels", FR_OPTION_TEXT, "", "M.npy", 0, 0, offsetof(project_io, labels),
     "bool or one-byte integers [pairs], 1 = the pair has met before"},
    {"head", FR_OPTION_TEXT, "", "W.npy", 0, 0, offsetof(project_io, head),
     "float [rows, D] or [D], the first matrix of that head"},
    {"output", FR_OPTION_TEXT, "", "DIR", 0, 0, offsetof(project_io, output),
     "directory for the model of --train, or for the changed heads"},
    {"force", FR_OPTION_FLAG, "no", "", 0, 0, offsetof(project_io, force),
     "replace an existing output"},
    {"k", FR_OPTION_INT, "20", "K", 1, INT32_MAX, offsetof(project_io, k),
     "negatives per cell; an event needs this many seen and this many unseen ones"},
    {"diagnostic-window", FR_OPTION_INT, "131072", "N", 0, INT32_MAX,
     offsetof(project_io, diagnostic_window), "window of the cells; 0 = all"},
    {0}};

/* ---- trained models ---- */

enum { METRICS = 4 };
static const char *const metric_names[METRICS] = {"mrr", "hits@10", "all-seen", "all-unseen"};
static const char *const metric_keys[METRICS] = {"mrr", "hits10", "all_seen", "all_unseen"};

/* One model, with each of the directions removed. */
typedef struct intervention {
    fr_ranking *base;                            /* NULL = none */
    fr_metric_value value[FR_REMOVALS][METRICS]; /* on the ranking window */
    fr_membership cells[FR_REMOVALS];            /* on the diagnostic window */
} intervention;

/* For cells, only events that may be eligible are ranked: on large windows they are few. The base
 * comes last, so that an impossible intervention is found before any ranking. */
static fr_status intervene(const cli_call *call, const fr_window *window, const char *spec,
                           bool cells, intervention *out, fr_error *err) {
    const project_io *io = call->settings[0];
    const fr_training *training = call->settings[2];
    for (int i = 1; i <= FR_REMOVALS; i++) {
        int removal = i % FR_REMOVALS;
        fr_ranking *r = NULL;
        fr_status status =
            diagnose_rank(call, window, spec, removal, cells ? io->k : 0, training->seed, &r, err);
        if (!status && !cells) {
            fr_ranking_facts f = fr_ranking_get(r);
            status = fr_metrics_compute(f.records, f.count, f.oov, metric_names, METRICS,
                                        out->value[removal], err);
        }
        if (!status && cells)
            status = fr_membership_compute(r, io->k, training->seed, &call->context,
                                           &out->cells[removal], err);
        if (!status && removal == FR_REMOVE_NOTHING)
            out->base = r;
        else
            fr_ranking_close(r);
        if (status) return status;
    }
    return FR_OK;
}

static fr_status diagnose_models(const cli_call *call, intervention *ranking,
                                 intervention *diagnostic, fr_error *err) {
    const project_io *io = call->settings[0];
    const fr_protocol *protocol = call->settings[1];
    fr_training *training = call->settings[2];
    const fr_model_settings *model = call->settings[3];
    const fr_import *import = call->settings[4];
    fr_stream *stream = NULL;
    fr_window *window = NULL, *outer = NULL;
    const char *spec = io->diagnostic;
    char trained[4096];
    fr_status status = fr_stream_open(io->data, import, &call->context, &stream, err);
    if (!status && io->scorer) {
        status = fr_window_open(stream, protocol, &call->context, &window, err);
        if (!status) status = intervene(call, window, io->scorer, false, ranking, err);
    }
    if (!status && (io->diagnostic || io->train)) {
        fr_protocol longer = *protocol;
        longer.window = io->diagnostic_window;
        longer.oov = FR_OOV_EXCLUDE;
        status = diagnose_window(call, stream, longer, "time", &outer, err);
    }
    if (!status && io->train) {
        training->force = io->force;
        (void)snprintf(trained, sizeof trained, "%s/model.safetensors", io->output);
        spec = trained;
        cli_plan_train(outer, io->train, training, &call->context);
        status = fr_train_run(outer, io->train, model, training, io->output, &call->context, err);
    }
    if (!status && outer) status = intervene(call, outer, spec, true, diagnostic, err);
    fr_window_close(outer);
    fr_window_close(window);
    fr_stream_close(stream);
    return status;
}

static json_t *intervention_json(const intervention *t, bool cells) {
    fr_ranking_facts f = fr_ranking_get(t->base);
    json_t *out =
        json_pack("{s:o, s:s, s:I}", "scorer", cli_json_text(f.scorer), "protocol", f.protocol_text,
                  "ranked", (json_int_t)(cells ? t->cells[0].ranked : t->value[0][0].events));
    if (cells) {
        cli_json_put(out, "k", json_integer(t->cells[0].k));
        cli_json_put(out, "eligible", json_integer(t->cells[0].eligible));
    }
    for (int removal = 0; removal < FR_REMOVALS; removal++) {
        json_t *row = cells ? diagnose_cells(&t->cells[removal]) : json_object();
        for (int k = 0; !cells && k < METRICS; k++)
            cli_json_put(row, metric_keys[k], cli_json_real(t->value[removal][k].value));
        cli_json_put(out, fr_removal_names[removal], row);
    }
    return out;
}

static void print_value(double x) {
    if (isnan(x))
        (void)printf("  %15s", "-");
    else
        (void)printf("  %15.4f", x);
}

/* Prints one line per removal below a heading; `cells`: the four cells, otherwise full-catalog
 * metrics. */
static void print_intervention(const intervention *t, const char *data, bool cells) {
    fr_ranking_facts f = fr_ranking_get(t->base);
    char what[FR_NAME_MAX + 256];
    (void)snprintf(what, sizeof what, "%s on %s", f.scorer, data);
    diagnose_heading(what, t->base);
    if (cells)
        cli_pair("eligible events", "%s of %s ranked; expected MRR against %s negatives",
                 cli_count(t->cells[0].eligible).s, cli_count(t->cells[0].ranked).s,
                 cli_count(t->cells[0].k).s);
    (void)printf("%-12s", "removed");
    for (int k = 0; k < 4; k++)
        (void)printf("  %15s", cells ? t->cells[0].cell[k].name : metric_names[k]);
    (void)printf("\n%-12s", "  events");
    for (int k = 0; k < 4; k++)
        (void)printf("  %15s",
                     cli_count(cells ? t->cells[0].cell[k].events : t->value[0][k].events).s);
    (void)printf("\n");
    for (int removal = 0; removal < FR_REMOVALS; removal++) {
        (void)printf("%-12s", fr_removal_names[removal]);
        for (int k = 0; k < 4; k++)
            print_value(cells ? t->cells[removal].cell[k].mrr : t->value[removal][k].value);
        (void)printf("\n");
    }
}

static const char removed[] =
    "Removed from the vector that enters the scoring head: nothing (base), the direction in which "
    "training pairs that have met differ from others (membership), a random direction, and the "
    "direction of shuffled labels.";

static int show_models(const cli_call *call, const intervention *ranking,
                       const intervention *diagnostic) {
    const intervention *shown[] = {ranking, diagnostic};
    static const char *const keys[] = {"ranking", "diagnostic"};
    const fr_training *training = call->settings[2];
    const char *data = fr_ranking_get(ranking->base ? ranking->base : diagnostic->base).data;
    cli_terminal_clear();
    if (call->common.json) {
        json_t *out = json_pack("{s:o, s:I}", "data", cli_json_text(data), "seed",
                                (json_int_t)training->seed);
        for (int i = 0; i < 2; i++)
            if (shown[i]->base) cli_json_put(out, keys[i], intervention_json(shown[i], i == 1));
        return cli_print_json(out);
    }
    for (int i = 0; i < 2; i++) {
        if (!shown[i]->base) continue;
        print_intervention(shown[i], data, i == 1);
        (void)printf("\n");
    }
    cli_paragraph(removed, 0);
    return CLI_OK;
}

/* ---- vectors in files ---- */

static json_t *projection_json(const project_io *io, const fr_projection *p, int64_t seed) {
    json_t *out =
        json_pack("{s:I, s:I, s:o, s:I, s:I, s:I, s:o}", "pairs", (json_int_t)p->pairs, "met",
                  (json_int_t)p->met, "share", cli_json_real((double)p->met / (double)p->pairs),
                  "width", (json_int_t)p->width, "rows", (json_int_t)p->rows, "seed",
                  (json_int_t)seed, "output", cli_json_text(io->output));
    for (int what = 0; what < FR_REMOVALS; what++) {
        const fr_direction *d = &p->direction[what];
        json_t *row = json_pack("{s:o}", "membership_auc", cli_json_real(d->membership_auc));
        if (what != FR_REMOVE_NOTHING)
            cli_json_join(row,
                          json_pack("{s:o, s:o, s:o}", "length", cli_json_real(d->length), "cosine",
                                    cli_json_real(d->cosine), "auc", cli_json_real(d->auc)));
        cli_json_put(out, fr_removal_names[what], row);
    }
    return out;
}

static void print_projection(const project_io *io, const fr_projection *p) {
    cli_pair("pairs", "%s, %s of them have met (%s)", cli_count(p->pairs).s, cli_count(p->met).s,
             cli_share((double)p->met, (double)p->pairs).s);
    cli_pair("head", "%s x %s", cli_count(p->rows).s, cli_count(p->width).s);
    cli_pair("written", "%s/head-NAME.npy, direction-NAME.npy", cli_visible(io->output));
    (void)printf("\n");
    char heading[128];
    (void)snprintf(heading, sizeof heading, "%-12s  %15s  %15s  %15s  %15s", "removed", "length",
                   "cosine", "AUC", "membership AUC");
    diagnose_title(heading);
    for (int what = 0; what < FR_REMOVALS; what++) {
        const fr_direction *d = &p->direction[what];
        (void)printf("%-12s", fr_removal_names[what]);
        print_value(d->length);
        print_value(d->cosine);
        print_value(d->auc);
        print_value(d->membership_auc);
        (void)printf("\n");
    }
    (void)printf("\n");
    cli_paragraph("Cosine: of the angle to the membership direction. AUC: probability that a pair "
                  "that has met is further along the direction than one that has not. Membership "
                  "AUC: the same along the membership direction, after the removal.",
                  0);
}

static int run_files(cli_call *call) {
    const project_io *io = call->settings[0];
    const fr_training *training = call->settings[2];
    fr_error err = {0};
    fr_projection p;
    fr_status status = fr_project_files(io->representations, io->labels, io->head, io->output,
                                        io->force, training->seed, &call->context, &p, &err);
    if (status) return cli_report(status, &err);
    cli_terminal_clear();
    if (call->common.json) return cli_print_json(projection_json(io, &p, training->seed));
    print_projection(io, &p);
    return CLI_OK;
}

/* ---- the command ---- */

/* Checks that the options fit together. */
static int check_project(const project_io *io) {
    bool model = io->data || io->scorer || io->diagnostic || io->train;
    bool files = io->representations || io->labels || io->head;
    if (model == files)
        return cli_usage("%s, expected option data with scorer, diagnostic or train, or options "
                         "representations, labels and head",
                         model ? "found a model and files of vectors" : "found nothing to project");
    if (files) {
        if (!io->representations || !io->labels || !io->head || !io->output)
            return cli_usage("options representations, labels, head and output go together");
        return CLI_OK;
    }
    if (!io->data) return cli_usage("expected option data");
    if (!io->scorer && !io->diagnostic && !io->train)
        return cli_usage("expected one of the options scorer, diagnostic and train");
    if (io->diagnostic && io->train)
        return cli_usage("options diagnostic and train, expected one of them");
    if (io->train && !io->output) return cli_usage("option train needs option output");
    return CLI_OK;
}

static int run_project(cli_call *call) {
    const project_io *io = call->settings[0];
    int code = check_project(io);
    if (code) return code;
    if (io->representations) return run_files(call);
    intervention ranking = {0}, diagnostic = {0};
    fr_error err = {0};
    fr_status status = diagnose_models(call, &ranking, &diagnostic, &err);
    code = status ? cli_report(status, &err) : show_models(call, &ranking, &diagnostic);
    fr_ranking_close(ranking.base);
    fr_ranking_close(diagnostic.base);
    return code;
}

const cli_command cli_diagnose_project_command = {
    .name = "diagnose project",
    .summary = "Scores of a trained model after pair membership is removed",
    .text =
        "z is the vector that enters a model's scoring head. The training pairs are each positive "
        "and one drawn negative. The membership direction a is the mean of z over pairs that have "
        "met before minus its mean over pairs that have not; z - a (a.z)/(a.a) replaces z. "
        "Controls are a random direction and the direction of shuffled labels. The output has, for "
        "each of them, MRR, Hits@10, All-seen and All-unseen over the full catalog (--scorer), and "
        "the four cells of `diagnose membership` (--diagnostic or --train).\n"
        "For models of other programs, --representations, --labels and --head describe the "
        "training pairs. DIR gets heads without each direction, head-membership.npy, "
        "head-random.npy and head-shuffled.npy, and the directions. Score with these heads and "
        "rank with `rank --scorer scores:FILE.npy`.\n"
        "--seed is used for drawn negatives, random direction, shuffled labels and training.",
    .example = "fullrank diagnose project --data wikipedia --scorer run/model.safetensors",
    .groups = {{"Input", project_io_options, sizeof(project_io)},
               {"Protocol", fr_protocol_options, sizeof(fr_protocol)},
               {"Training", fr_training_options, sizeof(fr_training)},
               {"Model", fr_model_options, sizeof(fr_model_settings)},
               {"Reading tables", fr_import_options, sizeof(fr_import)}},
    .run = run_project,
};
