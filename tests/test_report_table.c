/* test_report_table.c - tables: golden outputs of all formats, equal numbers in each of them,
 * marks, escaping, alignment of UTF-8, LaTeX that compiles, and failures that leave nothing. */
#include "report/table.h"
#include "testing.h"

#include <sys/wait.h>

/* Two groups of columns and of rows, every kind of cell, a missing value and one without sd. */
static void build(table *t) {
    table_start(t, "Main result", "MRR, mean and sd of 3 seeds; seed_set 7|17|27, 85% train");
    table_column(t, NULL, "Model", TABLE_LEFT);
    table_column(t, "LastFM & co", "Expected-20", TABLE_RIGHT);
    table_column(t, "LastFM & co", "Gain", TABLE_RIGHT);
    table_column(t, NULL, "Interval", TABLE_RIGHT);
    table_column(t, "Größe", "n", TABLE_RIGHT);
    table_row(t, "BCE");
    table_put(t, cell_text("craft"));
    table_put(t, cell_mean(0.42834, 0.01119, 4));
    table_put(t, cell_difference(-0.02664, 4));
    table_put(t, cell_interval(-0.0526, -0.00046, 4));
    table_put(t, cell_integer(18366));
    table_row(t, NULL);
    table_put(t, cell_text("craft-r, \"best\""));
    table_put(t, cell_mean(0.6892, 0.0002, 4));
    table_put(t, cell_difference(0.26085, 4));
    table_put(t, cell_interval(NAN, 0.3, 4));
    table_put(t, cell_integer(971));
    table_row(t, "BPR");
    table_put(t, cell_text("dyg_former"));
    table_put(t, cell_mean(0.4161, NAN, 4));
    table_put(t, cell_difference(-0.00001, 4));
    table_put(t, cell_interval(0.1, 0.25, 4)); /* and the last cell is left out */
    table_row(t, NULL);
    table_put(t, cell_text("größer"));
    table_put(t, cell_mean(NAN, NAN, 4));
    table_put(t, cell_number(2.5, 1));
    table_put(t, cell_empty());
    table_put(t, cell_integer(-3));
    table_mark_best(t, 1, 0, t->row_count, true);
    table_note(t, "Best bold, second underlined.");
}

static void assert_render(const table *t, table_format format, const char *expected) {
    fr_error err;
    text_buffer out = {0};
    OK(table_render(t, format, &out, &err));
    assert_string_equal(out.at, expected);
    text_free(&out);
}

static const char *const golden_text =
    "Main result\n"
    "                        LastFM & co                            Größe\n"
    "                   ----------------------                      -----\n"
    "Model                Expected-20     Gain            Interval      n\n"
    "--------------------------------------------------------------------\n"
    "BCE\n"
    "  craft            0.4283±0.0112  -0.0266  [-0.0526, -0.0005]  18366\n"
    "  craft-r, \"best\"  0.6892±0.0002  +0.2609                  --    971\n"
    "BPR\n"
    "  dyg_former              0.4161   0.0000    [0.1000, 0.2500]\n"
    "  größer                      --      2.5                         -3\n"
    "MRR, mean and sd of 3 seeds; seed_set 7|17|27, 85% train\n"
    "Best bold, second underlined.\n";

static const char *const golden_markdown =
    "**Main result.** MRR, mean and sd of 3 seeds; seed\\_set 7\\|17\\|27, 85% train\n"
    "\n"
    "| Model           | LastFM \\& co<br>Expected-20 | LastFM \\& co<br>Gain |           Interval "
    "| "
    "Größe<br>n |\n"
    "| :-------------- | --------------------------: | -------------------: | -----------------: | "
    "---------: |\n"
    "| *BCE*           |                             |                      |                    | "
    "           |\n"
    "| craft           |        <u>0.4283±0.0112</u> |              -0.0266 | [-0.0526, -0.0005] | "
    "     18366 |\n"
    "| craft-r, \"best\" |           **0.6892±0.0002** |              +0.2609 |                 -- "
    "| "
    "       971 |\n"
    "| *BPR*           |                             |                      |                    | "
    "           |\n"
    "| dyg\\_former     |                      0.4161 |               0.0000 |   [0.1000, 0.2500] "
    "| "
    "           |\n"
    "| größer          |                          -- |                  2.5 |                    | "
    "        -3 |\n"
    "\n"
    "Best bold, second underlined.\n";

static const char *const golden_csv =
    "group,Model,LastFM & co Expected-20 mean,LastFM & co Expected-20 sd,LastFM & co Gain,"
    "Interval low,Interval high,Größe n\n"
    "BCE,craft,0.42834,0.01119,-0.02664,-0.0526,-0.00046,18366\n"
    "BCE,\"craft-r, \"\"best\"\"\",0.6892,0.0002,0.26085,,,971\n"
    "BPR,dyg_former,0.4161,,-1e-05,0.1,0.25,\n"
    "BPR,größer,,,2.5,,,-3\n";

static const char *const golden_latex =
    "% needs \\usepackage{booktabs}\n"
    "\\begin{table}[t]\n"
    "  \\centering\n"
    "  \\caption{Main result. MRR, mean and sd of 3 seeds; seed\\_set 7\\textbar{}17\\textbar{}27, "
    "85\\% train}\n"
    "  \\begin{tabular}{lrrrr}\n"
    "    \\toprule\n"
    "    & \\multicolumn{2}{c}{LastFM \\& co} & & \\multicolumn{1}{c}{Größe} \\\\\n"
    "    \\cmidrule(lr){2-3} \\cmidrule(lr){5-5}\n"
    "    Model & Expected-20 & Gain & Interval & n \\\\\n"
    "    \\midrule\n"
    "    \\multicolumn{5}{l}{\\textit{BCE}} \\\\\n"
    "    craft & \\underline{0.4283$\\pm$0.0112} & $-$0.0266 & {[}$-$0.0526, $-$0.0005] & 18366 "
    "\\\\\n"
    "    craft-r, {''}best{''} & \\textbf{0.6892$\\pm$0.0002} & $+$0.2609 & -- & 971 \\\\\n"
    "    \\addlinespace\n"
    "    \\multicolumn{5}{l}{\\textit{BPR}} \\\\\n"
    "    dyg\\_former & 0.4161 & 0.0000 & {[}0.1000, 0.2500] &  \\\\\n"
    "    größer & -- & 2.5 &  & $-$3 \\\\\n"
    "    \\bottomrule\n"
    "  \\end{tabular}\n"
    "  \\par\\smallskip\n"
    "  {\\footnotesize Best bold, second underlined.}\n"
    "\\end{table}\n";

static void test_golden(void **state) {
    (void)state;
    table t;
    build(&t);
    assert_render(&t, TABLE_TEXT, golden_text);
    assert_render(&t, TABLE_MARKDOWN, golden_markdown);
    assert_render(&t, TABLE_CSV, golden_csv);
    assert_render(&t, TABLE_LATEX, golden_latex);
    table_free(&t);
    table_free(&t);
}

/* ---- equal numbers ---- */

/* Appends the numbers in `text` to `out`: digits, a point, and the sign before them. TeX and HTML
 * around numbers are removed first. */
static int numbers(const char *text, double *out, int room) {
    int count = 0;
    for (const char *p = text; *p;) {
        bool minus = !strncmp(p, "$-$", 3), dash = *p == '-' && p[1] >= '0' && p[1] <= '9';
        const char *digits = p + (minus ? 3 : dash ? 1 : 0);
        if (*digits < '0' || *digits > '9') {
            p++;
            continue;
        }
        char *end;
        double value = strtod(digits, &end);
        assert_true(count < room);
        out[count++] = minus || dash ? -value : value;
        p = end;
    }
    return count;
}

static void test_equal_numbers(void **state) {
    (void)state;
    enum { ROWS = 40, MOST = ROWS * 8 };
    fr_error err;
    table t;
    table_start(&t, NULL, NULL); /* no text: every digit is a cell's */
    table_column(&t, NULL, "a", TABLE_RIGHT);
    table_column(&t, NULL, "b", TABLE_RIGHT);
    table_column(&t, NULL, "c", TABLE_RIGHT);
    table_column(&t, NULL, "d", TABLE_RIGHT);
    for (int r = 0; r < ROWS; r++) {
        double x = (r - 20) * 0.03125 + 0.00005 * r; /* halves of the last digit among them */
        table_row(&t, NULL);
        table_put(&t, cell_mean(x, fabs(x) / 7, 4));
        table_put(&t, cell_difference(x / 3, r % 6));
        table_put(&t, cell_interval(x - 1, x + 1, 3));
        table_put(&t, cell_integer((int64_t)r * 100003 - 7));
    }
    table_mark_best(&t, 0, 0, ROWS, false);
    double expected[MOST], found[MOST];
    for (int format = TABLE_TEXT; format <= TABLE_HTML; format++) {
        text_buffer out = {0};
        OK(table_render(&t, (table_format)format, &out, &err));
        char *body = out.at;
        if (format == TABLE_ANSI) { /* codes hold digits */
            for (char *p = body; (p = strstr(p, "\033["));) memset(p, ' ', 4);
        }
        if (format == TABLE_LATEX) { /* and so does the frame */
            body = strstr(body, "\\midrule");
            *strstr(body, "\\bottomrule") = 0;
        }
        if (format == TABLE_HTML) {
            body = strstr(body, "<tbody>");
            *strstr(body, "</tbody>") = 0;
            for (char *p = body; (p = strstr(p, "−"));) memcpy(p, "  -", 3); /* the true minus */
        }
        int count = numbers(body, format ? found : expected, MOST);
        assert_int_equal(count, ROWS * 6);
        if (format && format != TABLE_CSV)
            assert_memory_equal(found, expected, sizeof(double) * ROWS * 6);
        for (int r = 0; format == TABLE_CSV && r < ROWS; r++) { /* every bit, for programs */
            double x = (r - 20) * 0.03125 + 0.00005 * r;
            const double exact[] = {x,     fabs(x) / 7, x / 3,
                                    x - 1, x + 1,       (double)((int64_t)r * 100003 - 7)};
            for (int i = 0; i < 6; i++) assert_true(found[6 * r + i] == exact[i]);
        }
        text_free(&out);
    }
    table_free(&t);
}

/* A missing interval may have a reason; CSV, which is for numbers, leaves it out. Hashes of a
 * protocol are not in a printed caption. */
static void test_reasons_and_protocol(void **state) {
    (void)state;
    table t;
    table_start(&t, "T", "C.");
    table_protocol(&t, "window=5 hash=ab_cd");
    table_column(&t, NULL, "m", TABLE_LEFT);
    table_column(&t, NULL, "i", TABLE_RIGHT);
    table_row(&t, NULL);
    table_put(&t, cell_text("x"));
    table_put(&t, cell_interval_or(NAN, NAN, 4, "too few_seeds"));
    table_row(&t, NULL);
    table_put(&t, cell_text("y"));
    table_put(&t, cell_interval_or(-0.0, 1.0 / 3, 4, "too few_seeds"));
    table_drop_missing(&t);
    assert_render(&t, TABLE_CSV, "m,i low,i high\nx,,\ny,0,0.3333333333333333\n");
    assert_render(&t, TABLE_MARKDOWN,
                  "**T.** C. window=5 hash=ab\\_cd\n\n"
                  "| m   |                i |\n| :-- | ---------------: |\n"
                  "| x   |   too few\\_seeds |\n| y   | [0.0000, 0.3333] |\n");
    assert_render(&t, TABLE_LATEX,
                  "% needs \\usepackage{booktabs}\n% window=5 hash=ab_cd\n\\begin{table}[t]\n"
                  "  \\centering\n  \\caption{T. C.}\n  \\begin{tabular}{lr}\n    \\toprule\n"
                  "    m & i \\\\\n    \\midrule\n    x & too few\\_seeds \\\\\n"
                  "    y & {[}0.0000, 0.3333] \\\\\n    \\bottomrule\n  \\end{tabular}\n"
                  "\\end{table}\n");
    table_free(&t);
}

/* The interface for programs and commands: the same renderers, and the first failure is reported at
 * the end. */
static void test_public(void **state) {
    (void)state;
    fr_error err;
    fr_table *t;
    const char *text;
    OK(fr_table_make("T", NULL, NULL, &t, &err));
    fr_table_column(t, NULL, "name", true);
    fr_table_column(t, "g", "x", false);
    for (int i = 0; i < 2; i++) {
        fr_table_row(t);
        fr_table_put(t, (fr_table_cell){.kind = FR_CELL_TEXT, .text = i ? "=a,\"b\"" : "c|d&e_f"});
        fr_table_put(t, (fr_table_cell){.kind = FR_CELL_NUMBER, .value = i / 3.0, .decimals = 2});
    }
    fr_table_mark(t, 1, true);
    OK(fr_table_text(t, FR_FORMAT_CSV, &text, &err));
    assert_string_equal(text, "name,g x\nc|d&e_f,0\n\"'=a,\"\"b\"\"\",0.3333333333333333\n");
    OK(fr_table_text(t, FR_FORMAT_MARKDOWN, &text, &err));
    assert_non_null(strstr(text, "| c\\|d\\&e\\_f |"));
    assert_non_null(strstr(text, "**0.33**"));
    OK(fr_table_text(t, FR_FORMAT_HTML, &text, &err));
    assert_non_null(strstr(text, "<table"));
    FAILS(fr_table_text(t, 9, &text, &err), FR_EUSAGE, "format 9");
    assert_null(text);
    fr_table_put(t, (fr_table_cell){.kind = 77});
    fr_table_note(t, "later calls do no harm");
    FAILS(fr_table_text(t, FR_FORMAT_TEXT, &text, &err), FR_EUSAGE, "kind 77");
    fr_table_close(t);
    fr_table_close(NULL);
    fr_table_row(NULL);
}

static void test_number(void **state) {
    (void)state;
    static const struct {
        double value;
        int decimals;
        bool sign;
        const char *text;
    } cases[] = {{0.12345, 4, false, "0.1235"}, {-0.00004, 4, false, "0.0000"},
                 {-0.00004, 4, true, "0.0000"}, {-0.00006, 4, true, "-0.0001"},
                 {0.00006, 4, true, "+0.0001"}, {-0.0, 0, false, "0"},
                 {2.5, 0, false, "2"},          {1e15, 0, false, "1000000000000000"},
                 {NAN, 4, false, ""},           {-INFINITY, 2, false, "-inf"},
                 {INFINITY, 2, true, "+inf"},   {0.5, -3, false, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[NUMBER_SIZE];
        table_number(cases[i].value, cases[i].decimals, cases[i].sign, out);
        assert_string_equal(out, cases[i].text);
    }
    char out[NUMBER_SIZE];
    table_number(-1.7e308, 99, false, out); /* fits */
    assert_int_equal(strlen(out), 1 + 309 + 1 + 20);
}

/* ---- empty columns ---- */

static void test_drop_missing(void **state) {
    (void)state;
    table t;
    table_start(&t, NULL, NULL);
    table_column(&t, NULL, "model", TABLE_LEFT);
    table_column(&t, "MRR", "ours", TABLE_RIGHT); /* stays alone and takes the name */
    table_column(&t, "MRR", "paper", TABLE_RIGHT);
    table_column(&t, "MRR", "diff.", TABLE_RIGHT);
    table_column(&t, "seen", "paper", TABLE_RIGHT);
    table_column(&t, "seen", "ours", TABLE_RIGHT); /* so does this */
    table_column(&t, "both", "first", TABLE_RIGHT);
    table_column(&t, "both", "none", TABLE_RIGHT);
    table_column(&t, "both", "last", TABLE_RIGHT); /* two stay under their head */
    table_column(&t, NULL, "range", TABLE_RIGHT);
    table_column(&t, NULL, "remark", TABLE_LEFT);
    table_drop_missing(&t); /* no rows yet: nothing is known to be missing */
    assert_int_equal(t.column_count, 11);
    for (int r = 0; r < 2; r++) {
        table_row(&t, NULL);
        table_put(&t, cell_text(""));
        table_put(&t, r ? cell_number(NAN, 2) : cell_number(0.5, 2)); /* once is enough */
        table_put(&t, cell_mean(NAN, 0.1, 2));
        table_put(&t, cell_difference(NAN, 2));
        table_put(&t, cell_empty());
        table_put(&t, cell_integer(r));
        table_put(&t, cell_integer(7));
        table_put(&t, cell_number(NAN, 2));
        table_put(&t, cell_text("x"));
        table_put(&t, cell_interval(0.1, NAN, 2));
        if (!r) table_put(&t, cell_text("")); /* and once left out */
    }
    table_drop_missing(&t);
    assert_int_equal(t.column_count, 5);
    assert_render(&t, TABLE_CSV,
                  "model,MRR,seen,both first,both last\n"
                  ",0.5,0,7,x\n"
                  ",,1,7,x\n");
    table_free(&t);
    build(&t); /* nothing to leave out */
    table_drop_missing(&t);
    assert_render(&t, TABLE_TEXT, golden_text);
    table_free(&t);
}

/* ---- long lines ---- */

static void test_wrapped(void **state) {
    (void)state;
    char caption[800] = " ", note[300], expected[1200] = "n\n-\n1\n";
    for (int i = 0; i < 30; i++) strcat(caption, "größere Zahl "); /* 13 columns, 15 bytes */
    memset(note, 'x', 120); /* a word that does not fit stays whole */
    strcpy(note + 120, "  y");
    table t;
    table_start(&t, NULL, caption);
    table_column(&t, NULL, "n", TABLE_RIGHT);
    table_row(&t, NULL);
    table_put(&t, cell_integer(1));
    table_note(&t, note);
    for (int word = 0; word < 60; word++) { /* 15 words take 95 or 98 columns */
        strcat(expected, word % 2 ? "Zahl" : "größere");
        strcat(expected, word % 15 == 14 ? "\n" : " ");
    }
    note[120] = 0; /* the table has its own copy */
    strcat(expected, note);
    strcat(expected, "\ny\n");
    assert_render(&t, TABLE_TEXT, expected);
    text_buffer out = {0};
    fr_error err;
    OK(table_render(&t, TABLE_MARKDOWN, &out, &err)); /* other formats break lines themselves */
    assert_memory_equal(out.at, caption, strlen(caption));
    text_free(&out);
    table_free(&t);
}

/* ---- marks ---- */

static void assert_marks(const double *values, int count, bool higher, const char *marks) {
    table t;
    table_start(&t, NULL, NULL);
    table_column(&t, NULL, "x", TABLE_RIGHT);
    for (int i = 0; i < count; i++) {
        table_row(&t, NULL);
        table_put(&t, cell_mean(values[i], 0.1, 2));
        table_cell(&t, i, 0)->mark = MARK_SECOND; /* forgotten */
    }
    table_mark_best(&t, 0, 0, count, higher);
    for (int i = 0; i < count; i++) assert_int_equal(table_cell(&t, i, 0)->mark, marks[i] - '0');
    table_free(&t);
}

static void test_marks(void **state) {
    (void)state;
    assert_marks((double[]){0.3, 0.5, 0.4}, 3, true, "012");
    assert_marks((double[]){0.3, 0.5, 0.4}, 3, false, "102");
    assert_marks((double[]){NAN, 0.5, 0.4}, 3, true, "012");
    assert_marks((double[]){0.501, 0.499, 0.4, 0.404}, 4, true, "1122"); /* 0.50 0.50 0.40 0.40 */
    assert_marks((double[]){NAN, 0.5}, 2, true, "00");
    assert_marks((double[]){-0.5, -0.1}, 2, true, "21");
    assert_marks((double[]){NAN}, 1, true, "0");
    table t;
    build(&t);
    table_mark_best(&t, 0, 0, 4, true); /* text is passed over, rows beyond the end too */
    table_mark_best(&t, 4, 2, 9, true);
    assert_int_equal(table_cell(&t, 0, 0)->mark, MARK_NONE);
    assert_int_equal(table_cell(&t, 3, 4)->mark, MARK_NONE);
    assert_null(table_cell(&t, 4, 0));
    assert_null(table_cell(&t, 0, -1));
    table_free(&t);
}

static void test_ansi(void **state) {
    (void)state;
    table t;
    table_start(&t, NULL, NULL);
    table_column(&t, NULL, "m", TABLE_LEFT);
    table_column(&t, NULL, "x", TABLE_RIGHT);
    static const double x[] = {1, 22, 3};
    for (int i = 0; i < 3; i++) {
        table_row(&t, NULL);
        table_put(&t, cell_text("a"));
        table_put(&t, cell_number(x[i], 0));
    }
    table_mark_best(&t, 1, 0, 3, true);
    assert_render(&t, TABLE_ANSI,
                  "m   x\n-----\na   1\na  \033[1m22\033[0m\na   \033[4m3\033[0m\n");
    assert_render(&t, TABLE_TEXT, "m   x\n-----\na   1\na  22\na   3\n");
    table_free(&t);
}

/* ---- text ---- */

static void test_width(void **state) {
    (void)state;
    assert_int_equal(text_width(""), 0);
    assert_int_equal(text_width("0.1±0.2"), 7);
    assert_int_equal(text_width("größe"), 5);
    assert_int_equal(text_width("e\u0301"), 1);
    assert_int_equal(text_width("漢字"), 4);
    assert_int_equal(text_width("\xff\xc3"), 2);         /* no UTF-8 */
    assert_int_equal(text_width("\xc0\x80\xe2\x82"), 4); /* too long a form, cut off */
    const char *p = "é";
    assert_int_equal(text_character(&p), 0xe9);
    assert_int_equal(text_character(&p), 0);
    assert_int_equal(text_character(&p), 0);
}

static void test_alignment(void **state) {
    (void)state;
    table t;
    table_start(&t, NULL, NULL);
    table_column(&t, NULL, "漢字", TABLE_LEFT);
    table_column(&t, "a long head of one column", "x", TABLE_RIGHT);
    table_row(&t, NULL);
    table_put(&t, cell_text("é\n\tü"));
    table_put(&t, cell_mean(1, 2, 0));
    assert_render(&t, TABLE_TEXT,
                  "            a long head of one column\n"
                  "            -------------------------\n"
                  "漢字                                x\n"
                  "-------------------------------------\n"
                  "é\\x0a\\x09ü                        1±2\n");
    table_free(&t);
}

/* A spreadsheet evaluates text that begins like a formula; numbers keep their signs. */
static void test_formulas(void **state) {
    (void)state;
    table t;
    table_start(&t, NULL, NULL);
    table_column(&t, NULL, "-x", TABLE_LEFT);
    table_column(&t, "@g", "y", TABLE_RIGHT);
    static const char *const names[] = {"=1+1", "+1",  "-1",  "@SUM(1)", " =1",     "\t=1",
                                        "\r=1", "＝1", "a=1", "",        "=\"a\",b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        table_row(&t, i ? NULL : "=group");
        table_put(&t, cell_text(names[i]));
        table_put(&t, i % 2 ? cell_difference(-0.5, 1) : cell_difference(0.5, 1));
    }
    assert_render(&t, TABLE_CSV,
                  "group,'-x,'@g y\n"
                  "'=group,'=1+1,0.5\n"
                  "'=group,'+1,-0.5\n"
                  "'=group,'-1,0.5\n"
                  "'=group,'@SUM(1),-0.5\n"
                  "'=group,' =1,0.5\n"
                  "'=group,\\x09=1,-0.5\n"
                  "'=group,\\x0d=1,0.5\n"
                  "'=group,'＝1,-0.5\n"
                  "'=group,a=1,0.5\n"
                  "'=group,,-0.5\n"
                  "'=group,\"'=\"\"a\"\",b\",0.5\n");
    table_free(&t);
}

/* Control characters of a terminal are shown, not sent. */
static void test_printable(void **state) {
    (void)state;
    static const struct {
        const char *text, *shown;
    } all[] = {{"", ""},
               {"a\033[31mb", "a\\x1b[31mb"},
               {"\n\t\r\177", "\\x0a\\x09\\x0d\\x7f"},
               {"\xc2\x9b\u202e\u2066\u200f\ufeff\uffff",
                "\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2"
                "\\x80\\x8f\\xef\\xbb\\xbf\\xef\\xbf\\xbf"},
               {"\xff\xc3(", "\\xff\\xc3("},
               {"größe 漢字 \ufffd \\x1b", "größe 漢字 \ufffd \\x1b"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char out[128];
        size_t size = fr_text_printable(all[i].text, NULL, 0);
        assert_int_equal(size, strlen(all[i].shown));
        assert_int_equal(fr_text_printable(all[i].text, out, sizeof out), size);
        assert_string_equal(out, all[i].shown);
        for (size_t room = 1; room <= size; room++) { /* whole characters, as many as fit */
            memset(out, '#', sizeof out);
            assert_int_equal(fr_text_printable(all[i].text, out, room), size);
            assert_true(strlen(out) < room && !strncmp(out, all[i].shown, strlen(out)));
            assert_int_equal(out[room], '#');
        }
    }
}

static const char *const nasty =
    "\\ {a} $x$ 5&6 #1 b_c 50% ~ ^ <p> | \"q\" [o] *s* --seed ± − τ ≥ `";

static void test_escaping(void **state) {
    (void)state;
    table t;
    table_start(&t, NULL, NULL);
    table_column(&t, NULL, "x", TABLE_LEFT);
    table_row(&t, NULL);
    table_put(&t, cell_text(nasty));
    fr_error err;
    text_buffer out = {0};
    OK(table_render(&t, TABLE_LATEX, &out, &err));
    assert_non_null(strstr(out.at, "    \\textbackslash{} \\{a\\} \\$x\\$ 5\\&6 \\#1 b\\_c 50\\% "
                                   "\\textasciitilde{} \\textasciicircum{} \\textless{}p"
                                   "\\textgreater{} \\textbar{} {''}q{''} {[}o] {*}s{*} -{}-seed "
                                   "$\\pm$ $-$ $\\tau$ $\\ge$ {`} \\\\\n"));
    out.count = 0;
    OK(table_render(&t, TABLE_MARKDOWN, &out, &err));
    assert_non_null(strstr(out.at,
                           "| \\\\ \\{a\\} \\$x\\$ 5\\&6 \\#1 b\\_c 50% \\~ ^ \\<p\\> \\| \"q\" "
                           "\\[o\\] \\*s\\* --seed ± − τ ≥ \\` |"));
    out.count = 0;
    OK(table_render(&t, TABLE_CSV, &out, &err));
    assert_non_null(strstr(out.at, " | \"\"q\"\" [o]"));
    text_free(&out);
    table_free(&t);
}

/* Text is escaped everywhere, an empty column is left out with its head, and the protocol is folded
 * away in HTML but has its own lines in text. */
static void test_html(void **state) {
    (void)state;
    table t;
    table_start(&t, "a < b", "x & \"y\"");
    table_protocol(&t, "window='5'");
    table_column(&t, NULL, "model", TABLE_LEFT);
    table_column(&t, "<i>", "ours", TABLE_RIGHT);
    table_column(&t, "<i>", "paper", TABLE_RIGHT);
    table_column(&t, NULL, "n", TABLE_RIGHT);
    table_row(&t, "<set>");
    table_put(&t, cell_text("</td>"));
    table_put(&t, cell_mean(0.5, 0.25, 2));
    table_put(&t, cell_mean(NAN, NAN, 2));
    table_put(&t, cell_integer(3));
    table_row(&t, NULL);
    table_put(&t, cell_text("b"));
    table_put(&t, cell_difference(-0.125, 3));
    table_put(&t, cell_number(NAN, 2));
    table_put(&t, cell_number(NAN, 2));
    table_note(&t, "a note");
    assert_render(
        &t, TABLE_HTML,
        "<figure class=\"table\"><div class=\"scroll\" tabindex=\"0\" role=\"region\""
        " aria-label=\"a &lt; b\"><table>\n<caption>a &lt; b</caption>\n"
        "<thead><tr><th scope=\"col\" rowspan=\"2\" class=\"left\">model</th>"
        "<th scope=\"colgroup\" colspan=\"1\" class=\"group\">&lt;i&gt;</th>"
        "<th scope=\"col\" rowspan=\"2\">n</th></tr>\n"
        "<tr><th scope=\"col\">ours</th></tr>\n</thead>\n<tbody>\n"
        "<tr class=\"set\"><th scope=\"rowgroup\" colspan=\"3\">&lt;set&gt;</th></tr>\n"
        "<tr><th scope=\"row\">&lt;/td&gt;</th><td>0.50±0.25</td><td>3</td></tr>\n"
        "<tr><th scope=\"row\">b</th><td>−0.125</td><td><span class=\"none\">–</span></td></tr>\n"
        "</tbody></table></div>\n<figcaption>x &amp; &quot;y&quot; a note</figcaption>\n"
        "<details><summary>Protocol</summary><p class=\"protocol\">window=&#39;5&#39;</p>"
        "</details>\n</figure>\n");
    fr_error err;
    text_buffer out = {0};
    OK(table_render(&t, TABLE_TEXT, &out, &err));
    assert_non_null(strstr(out.at, "\nx & \"y\"\nwindow='5'\na note\n"));
    text_free(&out);
    table_free(&t);
}

static void test_latex_compiles(void **state) {
    if (system("command -v pdflatex >/dev/null && kpsewhich booktabs.sty >/dev/null"))
        skip_because("pdflatex with booktabs not found");
    fr_error err;
    table t, u;
    build(&t);
    table_start(&u, nasty, nasty);
    table_column(&u, nasty, nasty, TABLE_LEFT);
    table_row(&u, nasty);
    table_put(&u, cell_text(nasty));
    table_row(&u, NULL);
    table_put(&u, cell_text("[3pt] behind the end of a row"));
    table_row(&u, NULL);
    table_put(&u, cell_interval(-1, 2, 3));
    table_note(&u, nasty);
    table_note(&u, "second");
    OK(table_write(&t, in_directory(*state, "t.tex"), &err));
    OK(table_write(&u, in_directory(*state, "u.tex"), &err));
    put_text(in_directory(*state, "main.tex"),
             "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
             "\\input{t}\n\\input{u}\n\\end{document}\n");
    char command[512];
    (void)snprintf(command, sizeof command,
                   "cd '%s' && pdflatex -halt-on-error -interaction=nonstopmode main.tex >log.txt "
                   "2>&1 || { tail -20 log.txt; exit 1; }",
                   (const char *)*state);
    assert_int_equal(system(command), 0);
    assert_int_equal(access(in_directory(*state, "main.pdf"), R_OK), 0);
    table_free(&t);
    table_free(&u);
}

/* ---- files and failures ---- */

static void test_write(void **state) {
    fr_error err;
    table t;
    build(&t);
    OK(table_write(&t, in_directory(*state, "t.csv"), &err));
    assert_file(in_directory(*state, "t.csv"), golden_csv, strlen(golden_csv));
    OK(table_write(&t, in_directory(*state, "t.txt"), &err));
    assert_file(in_directory(*state, "t.txt"), golden_text, strlen(golden_text));
    OK(table_write(&t, in_directory(*state, "t.md"), &err));
    assert_int_equal(directory_entries(*state), 3);
    FAILS(table_write(&t, in_directory(*state, "t.doc"), &err), FR_EUSAGE, "t.doc: a table needs");
    FAILS(table_write(&t, in_directory(*state, "no/t.md"), &err), FR_EFILE, "cannot be written");
    assert_int_equal(directory_entries(*state), 3);
    table_free(&t);
}

static void test_misuse_is_told(void **state) {
    fr_error err;
    text_buffer out = {0};
    table t;
    table_start(&t, "x", NULL);
    FAILS(table_render(&t, TABLE_TEXT, &out, &err), FR_EUSAGE, "table: no columns");
    table_column(&t, NULL, "a", TABLE_LEFT);
    table_row(&t, NULL);
    table_put(&t, cell_integer(1));
    table_put(&t, cell_integer(2));
    table_column(&t, NULL, "b", TABLE_LEFT); /* the first failure is reported */
    FAILS(table_render(&t, TABLE_TEXT, &out, &err), FR_EUSAGE, "row 1 has more than 1 cells");
    FAILS(table_write(&t, in_directory(*state, "t.md"), &err), FR_EUSAGE, "row 1 has more");
    assert_int_equal(directory_entries(*state), 0);
    table_free(&t);
    table_start(&t, NULL, NULL);
    table_column(&t, NULL, "a", TABLE_LEFT);
    table_row(&t, NULL);
    table_column(&t, NULL, "late", TABLE_LEFT);
    FAILS(table_render(&t, TABLE_CSV, &out, &err), FR_EUSAGE, "column \"late\" comes after");
    table_free(&t);
    assert_int_equal(out.count, 0);
    text_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_equal_numbers),
        cmocka_unit_test(test_html),
        cmocka_unit_test(test_number),
        cmocka_unit_test(test_reasons_and_protocol),
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_ansi),
        cmocka_unit_test(test_drop_missing),
        cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_printable),
        WITH_DIRECTORY(test_latex_compiles),
        WITH_DIRECTORY(test_write),
        WITH_DIRECTORY(test_misuse_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
