/* test_report_chart.c - figures: every kind in every format, labels that can be read in the SVG,
 * equal bytes for equal figures, gaps, single points and empty series, failures that leave nothing.
 * Ticks and the spreading of names are also tested alone. */
#include "report/chart.h"
#include "report/plot.h"
#include "testing.h"

#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- figures in the shapes of the published results ---- */

static const double k[] = {1, 5, 20, 50, 100, 980};
static const char *const k_names[] = {"1", "5", "20", "50", "100", "all"};
static const char *const sets[] = {"LastFM", "MOOC", "Reddit", "Wikipedia"};
#define X_OF_K                                                                                     \
    { .label = "negatives K", .log = true, .tick_count = 6, .ticks = k, .tick_names = k_names }

/* Gain over K with its interval, one panel per set, one legend. */
static const figure *gain_figure(void) {
    static const double gain[4][6] = {{.0591, .1696, .2608, .2693, .2442, .0955},
                                      {-.0001, -.0009, -.0034, -.0052, -.0057, -.0057},
                                      {.0036, .016, .0436, .0724, .0982, .1718},
                                      {-.0019, -.0014, .0037, .0084, .0106, -.0266}};
    static const double half[4][6] = {{.01, .02, .034, .035, .03, .011},
                                      {.004, .01, .023, .023, .022, .021},
                                      {.002, .01, .034, .05, .08, .18},
                                      {.002, .004, .007, .01, .015, .026}};
    static double low[4][6], high[4][6], bpr[4][6];
    static chart_series series[4][2];
    static chart_panel panels[4];
    static const figure f = {.title = "Gain of the module against K",
                             .panels = panels,
                             .panel_count = 4,
                             .columns = 4,
                             .same_y = true};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < 6; i++) {
            low[s][i] = gain[s][i] - half[s][i];
            high[s][i] = gain[s][i] + half[s][i];
            bpr[s][i] = gain[s][i] * 1.3 + 0.01;
        }
        series[s][0] = (chart_series){"BCE", 6, k, gain[s], low[s], high[s], 0};
        series[s][1] = (chart_series){"BPR", 6, k, bpr[s], NULL, NULL, 1};
        panels[s] = (chart_panel){.kind = CHART_LINES,
                                  .title = sets[s],
                                  .x = X_OF_K,
                                  .y = {.label = "gain in MRR"},
                                  .series = series[s],
                                  .series_count = 2,
                                  .zero_line = true};
    }
    return &f;
}

static const char *const models[] = {"CRAFT",         "CRAFT-R", "DyGFormer",
                                     "DyGFormer+LHA", "TGN",     "GraphMixer"};

/* MRR of six models over K, names at the ends of the lines. */
static const figure *order_figure(void) {
    static const double ends[2][6][2] = {{{.4283, .0636},
                                          {.6892, .159},
                                          {.4161, .0811},
                                          {.638, .1139},
                                          {.3969, .0557},
                                          {.4488, .0922}},
                                         {{.7627, .4625},
                                          {.7593, .4568},
                                          {.7565, .4686},
                                          {.6804, .3835},
                                          {.2831, .0933},
                                          {.5128, .2681}}};
    static double y[2][6][6];
    static chart_series series[2][6];
    static chart_panel panels[2];
    static const figure f = {.panels = panels, .panel_count = 2, .columns = 2};
    for (int s = 0; s < 2; s++) {
        for (int m = 0; m < 6; m++) {
            for (int i = 0; i < 6; i++) { /* through the published values at 20 and all */
                double slope = (ends[s][m][1] - ends[s][m][0]) / log(980.0 / 20);
                y[s][m][i] = fmin(ends[s][m][0] + slope * log(k[i] / 20), 0.97);
            }
            series[s][m] = (chart_series){models[m], 6, k, y[s][m], NULL, NULL, m};
        }
        panels[s] = (chart_panel){.kind = CHART_LINES,
                                  .title = sets[s],
                                  .x = X_OF_K,
                                  .y = {.label = "MRR"},
                                  .series = series[s],
                                  .series_count = 6,
                                  .direct = true};
    }
    return &f;
}

/* Time over catalog size, log-log, in one column of print. */
static const figure *scaling_figure(void) {
    static const double size[] = {100, 300, 1000, 3000, 10000, 30000, 100000};
    static double plain[7], fast[7];
    for (int i = 0; i < 7; i++) {
        plain[i] = 0.02 + size[i] * 5.2e-3;
        fast[i] = 0.05 + size[i] * 2.1e-4;
    }
    static const chart_series series[] = {{"plain forward", 7, size, plain, NULL, NULL, 0},
                                          {"fast path", 7, size, fast, NULL, NULL, 1}};
    static const chart_panel panel = {.kind = CHART_LINES,
                                      .x = {.label = "catalog size", .log = true},
                                      .y = {.label = "ms per event", .log = true},
                                      .series = series,
                                      .series_count = 2,
                                      .direct = true};
    static const figure f = {.panels = &panel, .panel_count = 1};
    return &f;
}

static const figure *bars_figure(void) {
    static const double mrr[4][4] = {{.159, .4568, .6637, .7101},
                                     {.0738, .3278, .0416, .0405},
                                     {.1588, .46, .664, .7206},
                                     {.157, .4605, .6537, .7121}};
    static const char *const names[] = {"base", "membership", "random", "shuffled"};
    static double low[4][4], high[4][4];
    static chart_series series[4];
    static const chart_panel panel = {.kind = CHART_BARS,
                                      .y = {.label = "MRR"},
                                      .series = series,
                                      .series_count = 4,
                                      .groups = sets,
                                      .group_count = 4};
    static const figure f = {.panels = &panel, .panel_count = 1};
    for (int s = 0; s < 4; s++) {
        for (int g = 0; g < 4; g++) {
            low[s][g] = mrr[s][g] - 0.01 * (g + 1);
            high[s][g] = mrr[s][g] + 0.01 * (g + 1);
        }
        series[s] = (chart_series){names[s], 4, NULL, mrr[s], low[s], high[s], s};
    }
    return &f;
}

static const figure *matrix_figure(void) {
    static const double cells[4][4] = {{.404, .957, .059, .345},
                                       {.667, .888, .508, .782},
                                       {.303, .987, .048, .493},
                                       {.431, .979, .05, .303}};
    static const char *const rows[] = {"repeated", "new"}, *const columns[] = {"seen", "unseen"};
    static chart_panel panels[4];
    static const figure f = {.panels = panels, .panel_count = 4, .columns = 4};
    for (int s = 0; s < 4; s++)
        panels[s] = (chart_panel){.kind = CHART_MATRIX,
                                  .title = sets[s],
                                  .x = {.label = "negatives"},
                                  .y = {.label = "positive"},
                                  .rows = 2,
                                  .columns = 2,
                                  .row_heads = rows,
                                  .column_heads = columns,
                                  .cells = cells[s],
                                  .scale_low = 0,
                                  .scale_high = 1,
                                  .decimals = 3};
    return &f;
}

/* Differences: colours on both sides of 0, a cell without a value. */
static const figure *change_figure(void) {
    static const double cells[] = {-0.711, 0.598, -0.011, NAN, 0.489, -0.07};
    static const char *const rows[] = {"CRAFT", "CRAFT-R"};
    static const char *const columns[] = {"seen", "unseen", "all"};
    static const chart_panel panel = {.kind = CHART_MATRIX,
                                      .rows = 2,
                                      .columns = 3,
                                      .row_heads = rows,
                                      .column_heads = columns,
                                      .cells = cells,
                                      .decimals = 2};
    static const figure f = {.panels = &panel, .panel_count = 1, .width_cm = 6};
    return &f;
}

static const figure *distribution_figure(void) {
    enum { N = 200 };
    static double rank[N], share[3][N];
    static chart_series series[3];
    static const chart_panel panel = {.kind = CHART_STEPS,
                                      .x = {.label = "rank", .log = true},
                                      .y = {.label = "share of events", .low = 0, .high = 1},
                                      .series = series,
                                      .series_count = 3};
    static const figure f = {.panels = &panel, .panel_count = 1};
    for (int i = 0; i < N; i++) {
        rank[i] = round(exp(log(980.0) * i / (N - 1)));
        for (int m = 0; m < 3; m++)
            share[m][i] = 1 - 0.8 * pow(1 - log(rank[i]) / log(980.0), 1 + m * 0.7);
    }
    for (int m = 0; m < 3; m++)
        series[m] = (chart_series){models[m], N, rank, share[m], NULL, NULL, m};
    return &f;
}

static const struct {
    const char *name;
    const figure *(*make)(void);
    const char *labels[5]; /* found in the SVG */
} figures[] = {
    {"gain", gain_figure, {"LastFM", "gain in MRR", "negatives K", "BPR", "0.3"}},
    {"order", order_figure, {"DyGFormer+LHA", "GraphMixer", "MRR", "all", "0.8"}},
    {"scaling", scaling_figure, {"fast path", "catalog size", "1000", "0.1"}},
    {"bars", bars_figure, {"membership", "Wikipedia", "0.6"}},
    {"matrix", matrix_figure, {"0.957", "repeated", "unseen", "positive", "1.0"}},
    {"change", change_figure, {"\u22120.71", "0.60", "\u2013", "CRAFT-R"}},
    {"distribution", distribution_figure, {"share of events", "rank", "1000"}},
};
static const char *const formats[] = {"svg", "pdf", "png"};

static const char *path_of(const char *directory, const char *name, const char *format) {
    char file[64];
    (void)snprintf(file, sizeof file, "%s.%s", name, format);
    return in_directory(directory, file);
}

/* The whole file as text; needs free. */
static char *get_text(const char *path) {
    fr_error err;
    mapping m;
    OK(mapping_open(path, &m, &err));
    char *text = calloc(m.size + 1, 1);
    assert_non_null(text);
    memcpy(text, m.bytes, m.size);
    mapping_close(&m);
    return text;
}

/* Every element that begins also ends, in order. Our SVG has no comments. */
static void assert_well_formed(const char *text) {
    char open[16][16];
    int depth = 0, elements = 0;
    for (const char *p = text; (p = strchr(p, '<')); p++) {
        const char *end = strchr(p, '>');
        assert_non_null(end);
        if (p[1] == '?') continue;
        size_t name = strcspn(p + 1 + (p[1] == '/'), " />");
        assert_in_range(name, 1, 15);
        if (p[1] == '/') {
            assert_true(depth > 0);
            assert_true(!strncmp(open[--depth], p + 2, name) && !open[depth][name]);
        } else if (end[-1] != '/') {
            assert_in_range(depth, 0, 15);
            (void)snprintf(open[depth++], 16, "%.*s", (int)name, p + 1);
        }
        elements++;
    }
    assert_int_equal(depth, 0);
    assert_true(elements > 3);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf\""));
}

static void test_every_kind_and_format(void **state) {
    fr_error err;
    for (int i = 0; i < COUNT(figures); i++)
        for (int t = 0; t < 3; t++) {
            const char *path = path_of(*state, figures[i].name, formats[t]);
            OK(figure_write(figures[i].make(), path, &err));
            char *text = get_text(path);
            static const char *const magic[] = {"<?xml", "%PDF-", "\x89PNG"};
            assert_memory_equal(text, magic[t], strlen(magic[t]));
            if (t == 0) {
                assert_well_formed(text);
                for (int s = 0; s < 5 && figures[i].labels[s]; s++) {
                    char label[64];
                    (void)snprintf(label, sizeof label, ">%s</text>", figures[i].labels[s]);
                    if (!strstr(text, label)) print_error("# %s: no %s\n", path, label);
                    assert_non_null(strstr(text, label));
                }
            }
            free(text);
        }
    assert_int_equal(directory_entries(*state), 3 * COUNT(figures));
    char command[512];
    const char *python = getenv("FULLRANK_PYTHON");
    if (!python || !*python) return;
    (void)snprintf(command, sizeof command,
                   "%s -c 'import sys, xml.dom.minidom as m; [m.parse(p) for p in sys.argv[1:]]' "
                   "'%s'/*.svg",
                   python, (const char *)*state);
    assert_int_equal(system(command), 0);
}

static void test_equal_bytes(void **state) {
    fr_error err;
    for (int i = 0; i < COUNT(figures); i++)
        for (int t = 0; t < 3; t++) {
            const char *first = path_of(*state, "first", formats[t]);
            const char *second = path_of(*state, "second", formats[t]);
            OK(figure_write(figures[i].make(), first, &err));
            if (i == 0 && t == 1) sleep(1); /* a date would differ */
            OK(figure_write(figures[i].make(), second, &err));
            mapping m;
            OK(mapping_open(first, &m, &err));
            assert_file(second, m.bytes, m.size);
            mapping_close(&m);
        }
}

/* ---- unusual data ---- */

/* The SVG of one panel of lines or steps; needs free. */
static char *draw(const char *directory, const chart_series *series, int count, chart_panel panel) {
    fr_error err;
    panel.series = series;
    panel.series_count = count;
    const figure f = {.panels = &panel, .panel_count = 1};
    const char *path = path_of(directory, "one", "svg");
    OK(figure_write(&f, path, &err));
    OK(figure_write(&f, path_of(directory, "one", "pdf"), &err));
    OK(figure_write(&f, path_of(directory, "one", "png"), &err));
    char *text = get_text(path);
    assert_well_formed(text);
    return text;
}

static int occurrences(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) count++;
    return count;
}

#define BLUE_LINE   "stroke=\"#0072b2\" stroke-width=\"1.2\""
#define BLUE_MARKER "fill=\"#0072b2\" stroke=\"#ffffff\""
#define BLUE_BAND   "fill-opacity"

static void test_gaps(void **state) {
    static const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 2, NAN, 3, INFINITY, 4};
    static const double low[] = {0, 1, NAN, 2, 3, 3}, high[] = {2, 3, NAN, 4, 5, 5};
    const chart_series s = {.name = "one", .n = 6, .x = x, .y = y, .low = low, .high = high};
    char *text = draw(*state, &s, 1, (chart_panel){.direct = true});
    assert_int_equal(occurrences(text, BLUE_LINE), 1); /* 1-2; 4 and 6 stand alone */
    assert_int_equal(occurrences(text, BLUE_MARKER), 4);
    assert_int_equal(occurrences(text, BLUE_BAND), 1);
    assert_int_equal(occurrences(text, "stroke=\"#0072b2\" stroke-width=\"0.8\""), 2);
    free(text);
    /* Values that a log axis cannot show are gaps too. */
    static const double small[] = {0, 1, 10, -5, 100, 1000};
    const chart_series t = {.n = 6, .x = small, .y = y};
    text = draw(*state, &t, 1, (chart_panel){.x.log = true});
    assert_int_equal(occurrences(text, BLUE_MARKER), 2); /* 1 and 1000 */
    free(text);
}

static void test_few_points(void **state) {
    static const double x[] = {3, 4}, y[] = {0.5, NAN};
    const chart_series series[] = {{.name = "one", .n = 1, .x = x, .y = y, .style = 0},
                                   {.name = "none", .n = 0, .style = 1},
                                   {.name = "missing", .n = 1, .x = x, .y = y + 1, .style = 2}};
    for (int log = 0; log < 2; log++)
        for (int kind = CHART_LINES; kind <= CHART_STEPS; kind++) {
            chart_panel panel = {
                .kind = (chart_kind)kind, .x.log = log, .y.log = log, .direct = true};
            char *text = draw(*state, series, 3, panel);
            assert_int_equal(occurrences(text, BLUE_MARKER), 1);
            assert_non_null(strstr(text, ">one</text>"));
            free(text);
            panel.direct = false; /* the legend names what has no points */
            text = draw(*state, series, 3, panel);
            assert_non_null(strstr(text, ">none</text>"));
            assert_non_null(strstr(text, ">missing</text>"));
            free(text);
            text = draw(*state, series + 1, 2, panel);
            assert_non_null(strstr(text, ">no data</text>"));
            free(text);
            text = draw(*state, NULL, 0, panel);
            assert_non_null(strstr(text, ">no data</text>"));
            free(text);
        }
    static const char *const groups[] = {"a group with a long name", "another one <&>"};
    char *text = draw(*state, &(chart_series){.name = "bar", .n = 2, .y = y}, 1,
                      (chart_panel){.kind = CHART_BARS, .groups = groups, .group_count = 2});
    assert_non_null(strstr(text, ">another one &lt;&amp;&gt;</text>"));
    free(text);
}

static void test_failures_leave_nothing(void **state) {
    fr_error err;
    const figure *f = bars_figure();
    for (int t = 0; t < 3; t++) {
        char name[32];
        (void)snprintf(name, sizeof name, "nowhere/x.%s", formats[t]);
        FAILS(figure_write(f, in_directory(*state, name), &err), FR_EFILE, "cannot be written");
    }
    FAILS(figure_write(f, in_directory(*state, "x.gif"), &err), FR_EUSAGE, "x.gif: a figure needs");
    FAILS(figure_write(f, in_directory(*state, "svg"), &err), FR_EUSAGE, "svg: a figure needs");
    const figure none = {0};
    FAILS(figure_write(&none, in_directory(*state, "x.svg"), &err), FR_EUSAGE, "no panels");
    chart_panel panel = {.kind = CHART_MATRIX};
    const figure one = {.panels = &panel, .panel_count = 1};
    FAILS(figure_write(&one, in_directory(*state, "x.svg"), &err), FR_EUSAGE, "without cells");
    panel = (chart_panel){.kind = CHART_BARS};
    FAILS(figure_write(&one, in_directory(*state, "x.svg"), &err), FR_EUSAGE, "without groups");
    panel = (chart_panel){.x = {.log = true, .low = 0, .high = 1}};
    FAILS(figure_write(&one, in_directory(*state, "x.svg"), &err), FR_EUSAGE, "log axis from 0");
    assert_int_equal(directory_entries(*state), 0);
    /* An old file stays. */
    put_text(in_directory(*state, "x.pdf"), "old");
    FAILS(figure_write(&one, in_directory(*state, "x.pdf"), &err), FR_EUSAGE, "log axis from 0");
    assert_file(in_directory(*state, "x.pdf"), "old", 3);
    assert_int_equal(directory_entries(*state), 1);
}

/* Names of data sets and models may be any text; figures show them and stay valid. */
static void test_hostile_text(void **state) {
    fr_error err;
    chart_panel panel = {.title = "\xff\xfe <b>&'\" \033[31m \u202e \xc2\x9b \uffff"};
    const figure one = {.title = panel.title, .panels = &panel, .panel_count = 1};
    for (int t = 0; t < 3; t++) OK(figure_write(&one, path_of(*state, "x", formats[t]), &err));
    char *svg = get_text(path_of(*state, "x", "svg"));
    assert_non_null(strstr(svg, ">\\xff\\xfe &lt;b&gt;&amp;&#39;&quot; \\x1b[31m \\xe2\\x80\\xae "
                                "\\xc2\\x9b \\xef\\xbf\\xbf</text>"));
    free(svg);
}

/* Figures work on a system without fonts: cairo has letters of its own. */
static void test_no_fonts(void **state) {
    if (getenv("CHART_TEST_WITHOUT_FONTS")) {
        fr_error err;
        for (int t = 0; t < 3; t++)
            OK(figure_write(gain_figure(), path_of(*state, "x", formats[t]), &err));
        return;
    }
    put_text(in_directory(*state, "fonts.conf"),
             "<?xml version=\"1.0\"?><fontconfig></fontconfig>");
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "CHART_TEST_WITHOUT_FONTS=1 FONTCONFIG_FILE='%s' /proc/%ld/exe >/dev/null 2>&1",
                   in_directory(*state, "fonts.conf"), (long)getpid());
    assert_int_equal(system(command), 0);
}

/* For a page: an element with tooltips, and the numbers as a table. */
static void test_page_and_numbers(void **state) {
    (void)state;
    fr_error err;
    figure f = *gain_figure();
    text_buffer plain = {0}, told = {0}, csv = {0};
    table t = {0};
    OK(figure_put(&f, &plain, &err));
    f.hints = true;
    OK(figure_put(&f, &told, &err));
    assert_memory_equal(plain.at, "<svg xmlns=", 11);
    assert_non_null(strstr(plain.at, "aria-label=\"Gain of the module against K\""));
    assert_null(strstr(plain.at, "<title>"));
    assert_non_null(strstr(told.at, "<title>BCE at 20: 0.2608 [0.2268, 0.2948]</title>"));
    assert_non_null(strstr(told.at, "<title>BPR at 1: 0.0868</title>"));
    figure_table(&f, &t);
    assert_int_equal(t.row_count, 4 * 2 * 6);
    OK(table_render(&t, TABLE_CSV, &csv, &err));
    assert_memory_equal(csv.at, "panel,series,x,y,low,high", 25);
    assert_non_null(strstr(csv.at, "LastFM,BCE,20,0.2608,0.22"));
    table_free(&t);
    text_free(&csv);
    figure_table(matrix_figure(), &t); /* a row for every cell */
    assert_int_equal(t.row_count, 4 * 4);
    table_free(&t);
    figure_table(bars_figure(), &t);
    assert_true(t.row_count > 0);
    table_free(&t);
    text_free(&plain);
    text_free(&told);
}

/* ---- axes ---- */

static void assert_ticks(axis_range r, int most, const char *expected) {
    axis_tick ticks[AXIS_TICKS];
    char found[1024] = "";
    int count = axis_ticks(&r, most, ticks);
    for (int i = 0; i < count; i++) {
        double place = axis_place(&r, ticks[i].value);
        assert_true(place > -1e-6 && place < 1 + 1e-6);
        if (!*ticks[i].label) continue;
        if (*found) strcat(found, " ");
        strcat(found, ticks[i].label);
    }
    assert_string_equal(found, expected);
}

static void test_ticks(void **state) {
    (void)state;
    assert_ticks((axis_range){false, 0, 1}, 5, "0.0 0.2 0.4 0.6 0.8 1.0");
    assert_ticks((axis_range){false, -0.07, 0.31}, 5, "0.0 0.1 0.2 0.3");
    assert_ticks((axis_range){false, -0.11, 0.1}, 5, "\u22120.10 \u22120.05 0.00 0.05 0.10");
    assert_ticks((axis_range){false, 0, 18366}, 4, "0 5000 10000 15000");
    assert_ticks((axis_range){true, 1, 100}, 8, "1 2 5 10 20 50 100");
    assert_ticks((axis_range){true, 1, 1000}, 6, "1 10 100 1000");
    assert_ticks((axis_range){true, 0.02, 300}, 6, "0.1 1 10 100");
    assert_ticks((axis_range){true, 1, 1e9}, 6, "10⁰ 10² 10⁴ 10⁶ 10⁸");
    assert_ticks((axis_range){true, 1e-5, 1}, 6, "10⁻⁵ 10⁻⁴ 10⁻³ 10⁻² 10⁻¹ 10⁰");
    assert_ticks((axis_range){true, 30, 45}, 4, "30 35 40 45");
    axis_range r = axis_empty(true);
    axis_include(&r, NAN);
    axis_include(&r, -1);
    axis_include(&r, 0);
    axis_settle(&r, 0.1);
    assert_true(r.low == 1 && r.high == 10); /* no value has a position */
    assert_true(isnan(axis_place(&r, -1)));
}

static void test_spread(void **state) {
    (void)state;
    double y[] = {10, 11, 12, 50, 99};
    plot_spread(y, 5, 8, 0, 100);
    static const double expected[] = {3, 11, 19, 50, 99};
    for (int i = 0; i < 5; i++) assert_true(fabs(y[i] - expected[i]) < 1e-9);
    double low[] = {96, 97, 98}; /* moved back from the edge, in order */
    plot_spread(low, 3, 8, 0, 100);
    static const double pushed[] = {84, 92, 100};
    for (int i = 0; i < 3; i++) assert_true(fabs(low[i] - pushed[i]) < 1e-9);
    double chain[] = {20, 20, 27, 34, 41}; /* a block pushes its neighbours */
    plot_spread(chain, 5, 8, 0, 100);
    for (int i = 1; i < 5; i++) assert_true(chain[i] - chain[i - 1] > 8 - 1e-9);
    double many[] = {1, 1, 1, 1}; /* no room: still apart */
    plot_spread(many, 4, 8, 0, 10);
    for (int i = 0; i < 4; i++) assert_true(fabs(many[i] - 8 * i) < 1e-9);
}

static void test_colours_differ_in_grey(void **state) {
    (void)state;
    for (int s = 0; s < STYLES; s++) {
        assert_true(colour_luminance(style_ink(s)) < 0.19);
        assert_memory_equal(&(colour[]){style_colour(s)}, &(colour[]){style_colour(s - STYLES)},
                            sizeof(colour));
    }
    for (int s = STYLE_QUIET; s < STYLE_QUIET + QUIET_STYLES; s++)
        assert_true(colour_luminance(style_ink(s)) < 0.19);
    /* The scale grows steadily darker. */
    for (int i = 0; i < 100; i++)
        for (int side = 0; side < 2; side++) {
            double a = side ? 0.5 - i / 200.0 : i / 100.0;
            double b = side ? 0.5 - (i + 1) / 200.0 : (i + 1) / 100.0;
            assert_true(colour_luminance(style_heat(b, side)) <
                        colour_luminance(style_heat(a, side)));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRECTORY(test_every_kind_and_format),
        WITH_DIRECTORY(test_equal_bytes),
        WITH_DIRECTORY(test_gaps),
        WITH_DIRECTORY(test_few_points),
        WITH_DIRECTORY(test_failures_leave_nothing),
        WITH_DIRECTORY(test_hostile_text),
        WITH_DIRECTORY(test_no_fonts),
        cmocka_unit_test(test_page_and_numbers),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_colours_differ_in_grey),
    };
    const struct CMUnitTest without[] = {WITH_DIRECTORY(test_no_fonts)};
    if (getenv("CHART_TEST_WITHOUT_FONTS")) return cmocka_run_group_tests(without, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
