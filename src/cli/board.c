/* board.c - see board.h. */
#include "board.h"

#include <math.h>
#include <string.h>

const board_shape board_standard = {10, 20};

fr_status board_fill(board_row *row, const char *name, const fr_ranking *ranking, board_shape shape,
                     const fr_context *context, fr_error *err) {
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
    *row = (board_row){.mrr = m[0].value,
                       .hits = m[1].value,
                       .expected = expected.mrr,
                       .all_seen = m[2].value,
                       .all_unseen = m[3].value,
                       .coverage = m[5].value,
                       .ranked = (int64_t)m[7].value,
                       .ties = (int64_t)m[6].value,
                       .tie_spread = m[4].value};
    const char *shown = cli_visible(name);
    size_t n = strlen(shown), most = sizeof row->name - 1;
    if (n > most) shown += n - (most - 3);
    while (((unsigned char)*shown & 0xc0) == 0x80) shown++; /* begin with a whole letter */
    (void)snprintf(row->name, sizeof row->name, "%s%s", n > most ? "..." : "", shown);
    return FR_OK;
}

static double number(const board_row *row, int column) {
    const double all[] = {row->mrr, row->hits, row->expected, row->all_seen, row->all_unseen};
    return all[column];
}

void board_print(const board_row *rows, int count, board_shape shape) {
    char hits[32], expected[32];
    const char *const titles[] = {"MRR", hits, expected, "All-seen", "All-unseen"};
    (void)snprintf(hits, sizeof hits, "Hits@%lld", (long long)shape.hits);
    (void)snprintf(expected, sizeof expected, "Expected-%lld", (long long)shape.k);
    enum { COLUMNS = sizeof titles / sizeof *titles };
    double best[COLUMNS];
    int width = 6;
    for (int i = 0; i < count; i++)
        if ((int)strlen(rows[i].name) > width) width = (int)strlen(rows[i].name);
    for (int c = 0; c < COLUMNS; c++) {
        best[c] = -INFINITY;
        for (int i = 0; i < count; i++) best[c] = fmax(best[c], number(&rows[i], c));
    }
    (void)printf("%s%-*s", cli_style(stdout, CLI_BOLD), width, "scorer");
    for (int c = 0; c < COLUMNS; c++) (void)printf("  %11s", titles[c]);
    (void)printf("  %8s  %8s  %7s%s\n", "coverage", "ranked", "tied", cli_style(stdout, CLI_PLAIN));
    for (int i = 0; i < count; i++) {
        (void)printf("%-*s", width, rows[i].name);
        for (int c = 0; c < COLUMNS; c++) {
            double x = number(&rows[i], c);
            bool top = count > 1 && x == best[c];
            if (isnan(x))
                (void)printf("  %11s", "-");
            else
                (void)printf("  %s%11.4f%s", cli_style(stdout, top ? CLI_BOLD : CLI_PLAIN), x,
                             top ? cli_style(stdout, CLI_PLAIN) : "");
        }
        (void)printf("  %8.4f  %8s  %7s\n", rows[i].coverage, cli_count(rows[i].ranked).s,
                     cli_count(rows[i].ties).s);
    }
    bool first = true;
    for (int i = 0; i < count; i++) {
        if (!(rows[i].tie_spread > FR_TIE_WARNING)) continue;
        (void)printf("%s%s",
                     first ? "\nThe tie rule decides (average ranks are shown) for: " : ", ",
                     rows[i].name);
        first = false;
    }
    if (!first) (void)printf("\n");
}
