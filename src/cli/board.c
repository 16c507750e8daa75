/* board.c - see board.h. */
#include "board.h"

#include <math.h>
#include <string.h>

const board_shape board_standard = {10, 20};

json_t *board_interval_json(fr_interval i) {
    return json_pack("{s:o, s:o}", "low", cli_json_real(i.low), "high", cli_json_real(i.high));
}

bool board_is_sample(const fr_ranking_facts *f) { return f->protocol.sample > 0; }

bool board_resampling_of(board_resampling how, const fr_ranking_facts *f,
                         fr_interval_settings *out) {
    *out = *how.settings;
    out->of = f->protocol.sample_of;
    out->over = how.asked ? FR_OVER_TIME : FR_OVER_SAMPLE;
    return how.asked || board_is_sample(f);
}

json_t *board_estimate_json(const fr_ranking_facts *f) {
    return json_pack("{s:I, s:I, s:I}", "events", (json_int_t)f->protocol.sample, "of",
                     (json_int_t)f->protocol.sample_of, "seed",
                     (json_int_t)f->protocol.sample_seed);
}

void board_know_coverage(const fr_ranking_facts *f, const char *metric, fr_metric_value *value,
                         fr_interval *interval) {
    if (!board_is_sample(f) || strcmp(metric, "coverage") != 0) return;
    int64_t of = f->protocol.sample_of;
    if (value) *value = (fr_metric_value){(double)f->covered / (double)of, of};
    if (interval) *interval = (fr_interval){NAN, NAN};
}

json_t *board_resampling_json(board_resampling how, const fr_ranking_facts *f) {
    json_t *out = json_pack("{s:o, s:I, s:I, s:I}", "level", cli_json_real(how.settings->level),
                            "block", (json_int_t)how.settings->block, "resamples",
                            (json_int_t)how.settings->resamples, "seed", (json_int_t)how.seed);
    if (board_is_sample(f)) cli_json_put(out, "over", json_string(how.asked ? "time" : "sample"));
    return out;
}

void board_resampling_text(board_resampling how, bool sampled, char *out, size_t size) {
    int used = 0;
    *out = 0;
    if (sampled)
        used = snprintf(out, size, "Estimates are from a simple random sample of the test events%s",
                        how.asked ? ". " : "");
    if (how.asked)
        (void)snprintf(out + used, size - (size_t)used,
                       "In brackets: %g%% intervals over time blocks of %s events, %s resamples.",
                       100 * how.settings->level, cli_count(how.settings->block).s,
                       cli_count(how.settings->resamples).s);
    else if (sampled)
        (void)snprintf(out + used, size - (size_t)used,
                       "; in brackets, %g%% confidence intervals for the value over all of them.",
                       100 * how.settings->level);
}

/* Computes the intervals of the numbers in a row. */
static fr_status fill_intervals(board_row *row, const fr_ranking_facts *f, const char *hits,
                                const fr_sampling *sampling, const fr_interval_settings *settings,
                                int64_t seed, const fr_context *context, fr_error *err) {
    const char *const names[] = {"mrr", hits, "all-seen", "all-unseen"};
    enum { COUNT = sizeof names / sizeof *names };
    static const int place[COUNT] = {0, 1, 3, 4};
    fr_interval found[COUNT];
    fr_status status = fr_intervals_compute(f->records, f->count, f->oov, names, COUNT, settings,
                                            seed, context, found, err);
    for (int i = 0; !status && i < COUNT; i++) row->interval[place[i]] = found[i];
    row->resampled = true;
    if (status) return status;
    return fr_intervals_expected(f->records, f->count, sampling, settings, seed, context,
                                 &row->interval[2], err);
}

/* Names in a table: at most 63 bytes of the scorer, and the size of a sample. */
static void name_row(board_row *row, const char *name, const fr_ranking_facts *f) {
    const char *shown = cli_visible(name);
    size_t n = strlen(shown), most = 63;
    char sample[96] = "";
    if (row->sampled)
        (void)snprintf(sample, sizeof sample, " (estimate: %s of %s)",
                       cli_count(f->protocol.sample).s, cli_count(f->protocol.sample_of).s);
    if (n > most) shown += n - (most - 3);
    while (((unsigned char)*shown & 0xc0) == 0x80) shown++; /* start at a whole character */
    (void)snprintf(row->name, sizeof row->name, "%s%s%s", n > most ? "..." : "", shown, sample);
}

fr_status board_fill(board_row *row, const char *name, const fr_ranking *ranking, board_shape shape,
                     board_resampling how, const fr_context *context, fr_error *err) {
    char hits[32];
    const char *const names[] = {"mrr",        hits,       "all-seen", "all-unseen",
                                 "tie-spread", "coverage", "ties",     "ranked"};
    enum { COUNT = sizeof names / sizeof *names };
    fr_ranking_facts f = fr_ranking_get(ranking);
    fr_metric_value m[COUNT];
    fr_expected expected;
    fr_sampling sampling = {.sampler = "uniform", .oov = f.oov, .k = &shape.k, .k_count = 1};
    (void)snprintf(hits, sizeof hits, "hits@%lld", (long long)shape.hits);
    fr_status status = fr_metrics_compute(f.records, f.count, f.oov, names, COUNT, m, err);
    if (!status)
        status = fr_expected_compute(f.records, f.count, &sampling, context, &expected, err);
    if (status) return status;
    board_know_coverage(&f, "coverage", &m[5], NULL);
    *row = (board_row){.sampled = board_is_sample(&f),
                       .mrr = m[0].value,
                       .hits = m[1].value,
                       .expected = expected.mrr,
                       .all_seen = m[2].value,
                       .all_unseen = m[3].value,
                       .coverage = m[5].value,
                       .ranked = (int64_t)m[7].value,
                       .ties = (int64_t)m[6].value,
                       .tie_spread = m[4].value};
    name_row(row, name, &f);
    fr_interval_settings settings;
    if (!board_resampling_of(how, &f, &settings)) return FR_OK;
    return fill_intervals(row, &f, hits, &sampling, &settings, how.seed, context, err);
}

static double number(const board_row *row, int column) {
    const double all[] = {row->mrr, row->hits, row->expected, row->all_seen, row->all_unseen};
    return all[column];
}

enum { COLUMNS = BOARD_NUMBERS };

/* Heads of the number columns. */
typedef struct board_heads {
    char at[COLUMNS][32];
} board_heads;

static board_heads heads_of(board_shape shape) {
    board_heads out = {{"MRR", "", "", "All-seen", "All-unseen"}};
    (void)snprintf(out.at[1], sizeof out.at[1], "Hits@%lld", (long long)shape.hits);
    (void)snprintf(out.at[2], sizeof out.at[2], "Expected-%lld", (long long)shape.k);
    return out;
}

static void print_intervals(const board_row *row, int name, int width) {
    (void)printf("%*s", name, "");
    for (int c = 0; c < COLUMNS; c++) {
        char text[64] = "";
        if (!isnan(row->interval[c].low))
            (void)snprintf(text, sizeof text, "[%.4f, %.4f]", row->interval[c].low,
                           row->interval[c].high);
        (void)printf("  %*s", width, text);
    }
    (void)printf("\n");
}

static void print_row(const board_row *row, const double *best, int name, int width) {
    (void)printf("%-*s", name, row->name);
    for (int c = 0; c < COLUMNS; c++) {
        double x = number(row, c);
        bool top = x == best[c];
        if (isnan(x))
            (void)printf("  %*s", width, "-");
        else
            (void)printf("  %s%*.4f%s", cli_style(stdout, top ? CLI_BOLD : CLI_PLAIN), width, x,
                         top ? cli_style(stdout, CLI_PLAIN) : "");
    }
    (void)printf("  %8.4f  %8s  %7s\n", row->coverage, cli_count(row->ranked).s,
                 cli_count(row->ties).s);
    if (row->resampled) print_intervals(row, name, width);
}

/* Names the scorers for which ties matter; "" if there are none. */
static void say_ties(const board_row *rows, int count, char *out, size_t size) {
    size_t used = 0;
    *out = 0;
    for (int i = 0; i < count && used < size; i++) {
        if (!(rows[i].tie_spread > FR_TIE_WARNING)) continue;
        used += (size_t)snprintf(
            out + used, size - used, "%s%s",
            used ? ", " : "The tie rule decides (average ranks are shown) for: ", rows[i].name);
    }
}

bool board_samples(const board_row *rows, int count) {
    bool sampled = false;
    for (int i = 0; i < count; i++) sampled |= rows[i].sampled;
    return sampled;
}

void board_print(const board_row *rows, int count, board_shape shape) {
    board_heads heads = heads_of(shape);
    double best[COLUMNS];
    int name = 6, width = 11;
    for (int i = 0; i < count; i++) {
        if ((int)strlen(rows[i].name) > name) name = (int)strlen(rows[i].name);
        if (rows[i].resampled) width = 16;
    }
    for (int c = 0; c < COLUMNS; c++) {
        best[c] = count > 1 ? -INFINITY : NAN; /* a single row has no best */
        for (int i = 0; count > 1 && i < count; i++) best[c] = fmax(best[c], number(&rows[i], c));
    }
    (void)printf("%s%-*s", cli_style(stdout, CLI_BOLD), name, "scorer");
    for (int c = 0; c < COLUMNS; c++) (void)printf("  %*s", width, heads.at[c]);
    (void)printf("  %8s  %8s  %7s%s\n", "coverage", "ranked", "tied", cli_style(stdout, CLI_PLAIN));
    for (int i = 0; i < count; i++) print_row(&rows[i], best, name, width);
    char ties[1 << 15];
    say_ties(rows, count, ties, sizeof ties);
    if (*ties) (void)printf("\n%s\n", ties);
}

int board_print_as(const board_row *rows, int count, board_shape shape, board_resampling how,
                   const char *protocol, int format) {
    board_heads heads = heads_of(shape);
    fr_table *table = NULL;
    fr_error err = {0};
    char text[1 << 15];
    int code = cli_report(fr_table_make("Ranking", "Every destination of the catalog is ranked.",
                                        protocol, &table, &err),
                          &err);
    fr_table_column(table, NULL, "scorer", true);
    for (int c = 0; c < COLUMNS; c++) fr_table_column(table, NULL, heads.at[c], false);
    fr_table_column(table, NULL, "coverage", false);
    fr_table_column(table, NULL, "ranked", false);
    fr_table_column(table, NULL, "tied", false);
    for (int i = 0; i < count; i++) {
        fr_table_row(table);
        fr_table_put(table, cli_cell_text(rows[i].name));
        for (int c = 0; c < COLUMNS; c++)
            fr_table_put(table, cli_cell_number(number(&rows[i], c), 4));
        fr_table_put(table, cli_cell_number(rows[i].coverage, 4));
        fr_table_put(table, cli_cell_count(rows[i].ranked));
        fr_table_put(table, cli_cell_count(rows[i].ties));
        if (!rows[i].resampled) continue;
        fr_table_row(table);
        fr_table_put(table, (fr_table_cell){.kind = FR_CELL_EMPTY});
        for (int c = 0; c < COLUMNS; c++)
            fr_table_put(table, cli_cell_interval(rows[i].interval[c], 4));
    }
    for (int c = 1; count > 1 && c <= COLUMNS; c++) fr_table_mark(table, c, true);
    board_resampling_text(how, board_samples(rows, count), text, sizeof text);
    if (*text) fr_table_note(table, text);
    say_ties(rows, count, text, sizeof text);
    if (*text) fr_table_note(table, text);
    if (!code) code = cli_table_print(table, format, true);
    fr_table_close(table);
    return code;
}
