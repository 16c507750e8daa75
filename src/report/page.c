/* page.c - see page.h. The page is a list of sections, each a list of parts: tables and figures of
 * the study by name, and a few that are written here. A section none of whose parts has anything to
 * show is left out, and so is its link. */
#define _GNU_SOURCE
#include "report/page.h"

#include "base/file.h"
#include "report/estimates.h"
#include "report/html.h"
#include "report/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The size of a figure in a wide window: its letters are as large as the page's small ones. */
#define WIDE_CM      26.0
#define WIDE_PLOT_CM 9.0

typedef struct page {
    const summary *s;
    const fr_context *context;
    const char *directory;
    const drawn_figure *drawn; /* as study_figures */
    bool alone;                /* without a study's directory around it */
    const char *audits;        /* files, separated by commas; NULL = none */
    text_buffer *out;
} page;

/* ---- parts by name ---- */

/* The table as CSV, LaTeX and Markdown; the script turns them into buttons that copy. */
static fr_status put_copies(page *p, const table *t, fr_error *err) {
    static const struct {
        const char *name;
        table_format format;
    } copies[] = {{"CSV", TABLE_CSV}, {"LaTeX", TABLE_LATEX}, {"Markdown", TABLE_MARKDOWN}};
    for (int i = 0; i < 3; i++) {
        text_buffer text = {0};
        fr_status status = table_render(t, copies[i].format, &text, err);
        if (!status) {
            text_print(p->out, "<template data-copy=\"%s\">", copies[i].name);
            html_put(p->out, text.at);
            text_put(p->out, "</template>\n");
        }
        text_free(&text);
        TRY(status);
    }
    return FR_OK;
}

static fr_status put_table(page *p, const char *name, fr_error *err) {
    const study_table *one = study_tables;
    table t = {0};
    while (one->name && strcmp(one->name, name)) one++;
    fr_status status = study_table_make(p->s, one, &t, err);
    if (!status && t.row_count) {
        status = table_render(&t, TABLE_HTML, p->out, err);
        if (!status) status = put_copies(p, &t, err);
    }
    table_free(&t);
    return status;
}

/* A file of figures/ as part of the page, for downloading. */
static fr_status put_download(page *p, const char *name, const char *end, const char *type,
                              fr_error *err) {
    char *path;
    mapping file;
    if (asprintf(&path, "%s/figures/%s.%s", p->directory, name, end) < 0)
        return fail_memory(err, 0);
    fr_status status = mapping_open(path, &file, err);
    free(path);
    TRY(status);
    text_print(p->out, " <a download=\"%s.%s\" href=\"data:%s;base64,", name, end, type);
    html_base64(p->out, file.bytes, file.size);
    text_put(p->out, "\">");
    for (const char *c = end; *c; c++) text_fill(p->out, (char)(*c - 'a' + 'A'), 1);
    text_put(p->out, "</a>");
    mapping_close(&file);
    return FR_OK;
}

/* Figures are elements of the page, so that the pointer shows values: once for a wide window and
 * once, with panels below each other, for a narrow one. The style shows one of the two. */
static fr_status put_figure(page *p, const char *name, fr_error *err) {
    static const struct {
        const char *end, *type;
    } downloads[] = {{"svg", "image/svg+xml"}, {"pdf", "application/pdf"}, {"csv", "text/csv"}};
    int i = 0;
    while (study_figures[i].name && strcmp(study_figures[i].name, name)) i++;
    figure wide = p->drawn[i].figure, narrow = wide;
    if (!wide.panel_count) return FR_OK;
    wide.hints = true;
    wide.width_cm = WIDE_CM;
    if (wide.panel_count == 1) wide.plot_height_cm = WIDE_PLOT_CM;
    narrow.columns = 1;
    text_put(p->out, "<figure class=\"plot\"><div class=\"at-wide\">");
    TRY(figure_put(&wide, p->out, err));
    text_put(p->out, "</div><div class=\"at-narrow\" aria-hidden=\"true\">");
    TRY(figure_put(&narrow, p->out, err));
    text_put(p->out, "</div>\n<figcaption>");
    html_put(p->out, study_figures[i].caption);
    text_put(p->out, " <span class=\"get\">Download:");
    for (int k = 0; k < 3; k++)
        TRY(put_download(p, name, downloads[k].end, downloads[k].type, err));
    text_put(p->out, "</span></figcaption></figure>\n");
    return FR_OK;
}

/* ---- other parts ---- */

static fr_status put_findings(page *p, fr_error *err) {
    text_buffer sample = {0};
    estimates_say(p->s, &sample);
    TRY(text_status(&sample, err));
    if (sample.at) {
        text_put(p->out, "<p class=\"note\"><strong>");
        html_put(p->out, sample.at);
        text_put(
            p->out,
            "</strong> Numbers of these data sets are estimates of the values over all events. "
            "The table of sampled test events has their confidence intervals.</p>\n");
    }
    text_free(&sample);
    text_put(p->out,
             "<p>Every test event asks: which destination comes next for this source? Each "
             "model scored <em>every</em> destination of a catalog for every event, and the "
             "rank of the true destination was recorded. MRR is the mean of 1/rank: 1 is "
             "perfect. Most published numbers instead rank the true destination among a few "
             "sampled ones. The recorded ranks give exactly what those protocols would report, "
             "so this page shows both.</p>\n<div class=\"cards\">\n");
    TRY(page_findings(p->s, p->out, err));
    text_put(p->out,
             "</div>\n<div class=\"cards two\"><div>\n<h3>What you can "
             "conclude</h3><ul>\n<li>How the models of this study compare on these events, "
             "under the protocol named below each table, and how that changes with the number "
             "of sampled negatives.</li>\n<li>Which differences are larger than the uncertainty "
             "due to other seeds or other stretches of the same stream: see the confidence "
             "intervals.</li>\n<li>How much of a score only answers the question whether a pair "
             "has met before.</li></ul></div>\n<div><h3>What you cannot "
             "conclude</h3><ul>\n<li>That a number here can be compared with one from another "
             "window, catalog, tie rule or sampler: these numbers measure different "
             "things.</li>\n<li>That a model would keep its place on other data, or with more "
             "training.</li>\n<li>Anything about destinations outside the catalog: coverage "
             "says how many events this concerns.</li></ul></div></div>\n");
    return FR_OK;
}

static fr_status put_explorer(page *p, fr_error *err) {
    (void)err;
    text_put(p->out,
             "<noscript><p class=\"hint\">With JavaScript, a slider here shows the leaderboard "
             "for every K. The figure and the tables below have the usual "
             "values.</p></noscript>\n<div id=\"explorer\" hidden>\n<div class=\"controls "
             "card\">\n<div class=\"field wide\"><label for=\"k-slider\">Negatives sampled per "
             "event, <i>K</i></label>\n<div class=\"row\"><input type=\"range\" id=\"k-slider\" "
             "min=\"0\" max=\"1\" step=\"1\" autocomplete=\"off\"><input type=\"number\" "
             "id=\"k-number\" min=\"1\" step=\"1\" autocomplete=\"off\" aria-label=\"K, exact "
             "number\"></div>\n<div id=\"k-presets\" class=\"row\" role=\"group\" "
             "aria-label=\"Common values of K\"></div></div>\n<div class=\"field\"><label "
             "for=\"sampler\">Negatives come from</label><select id=\"sampler\" "
             "autocomplete=\"off\"></select></div>\n<div class=\"field\"><label "
             "for=\"small\">Events that have fewer</label><select id=\"small\" "
             "autocomplete=\"off\"><option value=\"whole\">give all they have</option><option "
             "value=\"ineligible\">are left out</option></select></div>\n<p id=\"sampler-note\" "
             "class=\"hint wide\"></p>\n<details id=\"filters\" class=\"wide\"><summary>Data "
             "sets and models</summary>\n<fieldset><legend>Data sets</legend><div "
             "id=\"data-filter\" "
             "class=\"row\"></div></fieldset>\n<fieldset><legend>Models</legend><div "
             "id=\"model-filter\" class=\"row\"></div></fieldset></details></div>\n<p "
             "id=\"announce\" class=\"unseen\" role=\"status\" aria-live=\"polite\"></p>\n<div "
             "id=\"boards\"></div></div>\n");
    return FR_OK;
}

static fr_status put_membership(page *p, fr_error *err) {
    (void)err;
    text_buffer *out = p->out;
    size_t before = out->count;
    text_put(out, "<div class=\"cards\">\n");
    size_t begin = out->count;
    page_matrices(p->s, out);
    if (!out->failed && out->count == begin)
        out->at[out->count = before] = 0; /* none */
    else
        text_put(out, "</div>\n");
    return FR_OK;
}

static fr_status put_drilldown(page *p, fr_error *err) {
    (void)err;
    text_put(
        p->out,
        "<noscript><p class=\"hint\">Choosing models and listing events needs JavaScript; "
        "<code>fullrank metrics --per-event</code> writes the same.</p></noscript>\n"
        "<div id=\"drilldown\" hidden><div class=\"controls card\">\n"
        "<div class=\"field\"><label for=\"event-data\">Data set</label>"
        "<select id=\"event-data\" autocomplete=\"off\"></select></div>\n"
        "<div class=\"field\"><label for=\"event-first\">First model</label>"
        "<select id=\"event-first\" autocomplete=\"off\"></select></div>\n"
        "<div class=\"field\"><label for=\"event-second\">Second model</label>"
        "<select id=\"event-second\" autocomplete=\"off\"></select></div>\n"
        "<div class=\"field\"><label for=\"event-kind\">Destinations</label>"
        "<select id=\"event-kind\" autocomplete=\"off\"><option value=\"all\">repeated and new"
        "</option><option value=\"repeated\">repeated</option><option value=\"new\">new</option>"
        "</select></div>\n"
        "<div class=\"field\"><label for=\"event-count\">Show</label>"
        "<select id=\"event-count\" autocomplete=\"off\"><option>10</option><option>25</option>"
        "<option>100</option></select></div></div>\n"
        "<p id=\"event-summary\" role=\"status\" aria-live=\"polite\"></p>\n"
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Largest disagreements\">"
        "<table id=\"event-table\"><caption>Largest disagreements</caption><thead></thead>"
        "<tbody></tbody></table></div></div>\n");
    return FR_OK;
}

static fr_status put_hashes(page *p, fr_error *err) {
    results *r = p->s->results;
    table t = {0};
    table_start(
        &t, "Where every number comes from",
        p->alone ? "SHA-256 of the rank records of each run, the first 16 digits."
                 : "SHA-256 of the rank records and of the trained model of each run, the first 16 "
                   "digits; study.db has all digits.");
    table_column(&t, NULL, "run", TABLE_LEFT);
    table_column(&t, NULL, "rank records", TABLE_LEFT);
    table_column(&t, NULL, "trained model", TABLE_LEFT);
    table_column(&t, NULL, "seconds to rank", TABLE_RIGHT);
    for (int d = 0; d < p->s->datas; d++) {
        const data_numbers *set = &p->s->data[d];
        for (int i = 0; i < set->models; i++)
            for (int k = 0; k < set->model[i].runs; k++) {
                const result *run = set->model[i].run[k].run;
                char ranks[17], model[17] = "";
                (void)snprintf(ranks, sizeof ranks, "%s", results_hash(run, "ranks"));
                for (int j = 0;
                     run->objective && (j = results_next(r, j, UNIT_TRAIN, run->data, run->model,
                                                         run->objective)) >= 0;
                     j++)
                    if (r->list.at[j].seed == run->seed && !r->list.at[j].diagnostic)
                        (void)snprintf(model, sizeof model, "%s",
                                       results_hash(&r->list.at[j], "model"));
                table_row(&t, set->name);
                table_put(&t, cell_text(run->key));
                table_put(&t, cell_text(ranks));
                table_put(&t, *model ? cell_text(model) : cell_empty());
                table_put(&t, cell_number(results_seconds(run, "rank"), 2));
            }
    }
    fr_status status = FR_OK;
    if (t.row_count || t.failure.code) status = table_render(&t, TABLE_HTML, p->out, err);
    table_free(&t);
    return status;
}

/* Says so if several versions of the tool worked on the study. */
static void put_versions(const results *r, text_buffer *out) {
    if (r->versions.count < 2) return;
    text_put(out, "<p class=\"note\">Units of work were done by different versions of the tool: ");
    for (size_t i = 0; i < r->versions.count; i++) {
        text_put(out, i ? ", " : "");
        html_put(out, r->versions.at[i].tool ? r->versions.at[i].tool : "an early one");
        text_print(out, " (%lld)", (long long)r->versions.at[i].units);
    }
    text_put(out, ". <code>fullrank study run --redo-other-versions</code> repeats those of other "
                  "versions.</p>\n");
}

static fr_status put_origin(page *p, fr_error *err) {
    text_buffer *out = p->out;
    fr_version v = fr_version_get();
    text_put(out, "<h3>Protocols</h3>\n<dl>\n");
    for (int i = 0; i < p->s->datas; i++) {
        const data_numbers *d = &p->s->data[i];
        text_put(out, "<dt>");
        html_put(out, d->name);
        text_put(out, "</dt><dd class=\"protocol\">");
        html_put(out, d->protocol);
        fr_ranking_facts f = fr_ranking_get(d->model[0].run[0].run->ranking);
        text_print(out, "<br>catalog_sha256, all digits: %.64s", f.protocol.catalog_sha256);
        text_put(out, "</dd>\n");
    }
    text_put(out, "</dl>\n<p>Two results may be compared only if these are equal.</p>\n");
    TRY(put_hashes(p, err));
    text_put(out, "<h3>Tool</h3>\n<p>fullrank ");
    html_put(out, v.version);
    text_put(out, ", commit ");
    html_put(out, v.commit);
    text_put(out, ", built with ");
    html_put(out, v.compiler);
    text_put(
        out,
        p->alone
            ? ". Made from rank records alone; <code>fullrank report --tables DIR</code> writes "
              "all tables as text, Markdown, CSV and LaTeX, and all figures.</p>\n"
            : ". All tables are next to this page as text, Markdown, CSV and LaTeX in "
              "<code>tables/</code> and <code>costs/</code>, all figures in "
              "<code>figures/</code>, all results in <code>study.db</code>.</p>\n");
    put_versions(p->s->results, out);
    text_print(
        out,
        "<h3>How to cite</h3>\n<p>The software, and the paper whose evaluation it implements:</p>\n"
        "<pre>@software{fullrank,\n  author  = {{The fullrank developers}},\n"
        "  title   = {fullrank},\n  version = {%s}\n}\n\n"
        "@misc{yu-ha-all-entity-ranking,\n  author = {Yu and Ha},\n"
        "  title  = {{Back to All-Entity Ranking: Sampler-Dependent Evaluation in\n"
        "             Continuous-Time Dynamic Graphs}}\n}</pre>\n",
        v.version);
    return FR_OK;
}

static fr_status put_audits(page *p, fr_error *err) {
    return p->audits ? page_audits(p->audits, p->out, err) : FR_OK;
}

/* ---- sections ---- */

typedef struct part {
    const char *table, *figure; /* by name, or */
    fr_status (*put)(page *p, fr_error *err);
} part;

enum { MOST_PARTS = 6 };

typedef struct section {
    const char *id, *title;
    const char *lead; /* HTML */
    part parts[MOST_PARTS];
} section;

#define T(name)                                                                                    \
    { name, NULL, NULL }
#define F(name)                                                                                    \
    { NULL, name, NULL }
#define P(function)                                                                                \
    { NULL, NULL, function }

static fr_status put_others(page *p, fr_error *err);

static const section sections[] = {
    {"short", "In short", "", {P(put_findings)}},
    {"sampling",
     "What would K sampled negatives report?",
     "<p>Move <i>K</i>. The left column is the exact expected MRR of every model among "
     "<i>K</i> sampled negatives. The right column is the MRR over the whole catalog. "
     "Lines join the same model; if they cross, sampling changes the order.</p>\n",
     {P(put_explorer), F("expected"), T("expected"), T("kendall")}},
    {"results", "Results", "", {T("main"), F("ranks"), F("time")}},
    {"gain",
     "Is a module worth it?",
     "<p>The difference of two models has two kinds of uncertainty: other seeds and "
     "other events. If a confidence interval includes 0, the sign is open.</p>\n",
     {F("gain"), T("gain"), T("intervals"), T("objective"), T("pairs"), T("models")}},
    {"membership",
     "Have they met before?",
     "<p>A destination that the source has met before is <em>repeated</em>; any other "
     "is <em>new</em>. Each cell ranks one kind of destination against 20 negatives of "
     "one kind. The diagonal compares like with like. The other two cells only test "
     "whether the model tells the kinds apart.</p>\n",
     {P(put_membership), T("membership"), T("exhaustive"), T("minimal")}},
    {"projection",
     "Removing membership",
     "<p>If one direction of a model’s inner vector carries “have they met before?”, "
     "removing it should reduce the MRR more than removing a random one.</p>\n",
     {F("projection"), T("projection"), T("projection-cells")}},
    {"events",
     "Events on which two models disagree",
     "<p>The largest differences of 1/rank between two models, first seed of each.</p>\n",
     {P(put_drilldown)}},
    {"granularity",
     "How often is state updated?",
     "<p>Much published code updates histories and memories every 200 events, so an "
     "event does not see what happened just before it. Here the same models are ranked "
     "in this way. If lines cross, the update interval decides the order.</p>\n",
     {F("granularity"), T("granularity")}},
    {"selection", "How were models selected?", "", {F("selection"), T("selection")}},
    {"audit",
     "Does a scorer see what it must not see?",
     "<p>Some events were scored again after changes that must not matter: another "
     "future, other events of the same time, other batches, other candidates, exchanged "
     "ids.</p>\n",
     {P(put_audits)}},
    {"checks", "Coverage, ties, catalogs", "", {T("settings"), T("ties"), T("time-available")}},
    {"cost",
     "Cost",
     "<p>Measured times; they differ between machines and runs.</p>\n",
     {T("timing"), F("scaling"), T("scaling")}},
    {"more", "Further tables", "", {P(put_others)}},
    {"origin", "Protocol, hashes, citation", "", {P(put_origin)}}};
enum { SECTIONS = sizeof sections / sizeof *sections };

/* Tables that no section names, so a new table appears automatically. */
static fr_status put_others(page *p, fr_error *err) {
    for (const study_table *one = study_tables; one->name; one++) {
        bool named = false;
        for (int i = 0; i < SECTIONS * MOST_PARTS; i++) {
            const char *shown = sections[i / MOST_PARTS].parts[i % MOST_PARTS].table;
            named |= shown && !strcmp(shown, one->name);
        }
        if (!named) TRY(put_table(p, one->name, err));
    }
    return FR_OK;
}

/* Puts a section, or nothing if its parts are empty. */
static fr_status put_section(page *p, const section *one, bool *any, fr_error *err) {
    text_buffer *whole = p->out, parts = {0};
    fr_status status = FR_OK;
    p->out = &parts;
    for (int i = 0; !status && i < MOST_PARTS; i++) {
        const part *x = &one->parts[i];
        if (x->table) status = put_table(p, x->table, err);
        if (x->figure) status = put_figure(p, x->figure, err);
        if (x->put) status = x->put(p, err);
    }
    p->out = whole;
    if (!status) status = text_status(&parts, err);
    *any = parts.count > 0;
    if (!status && *any) {
        text_print(whole, "<section id=\"%s\"><h2>%s</h2>\n%s", one->id, one->title, one->lead);
        text_put_bytes(whole, parts.at, parts.count);
        text_put(whole, "</section>\n");
    }
    text_free(&parts);
    return status;
}

/* ---- the page ---- */

static fr_status put_head(const summary *s, text_buffer *out, const char *script, fr_error *err) {
    text_put(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "img-src data:; base-uri 'none'; form-action 'none'; script-src ");
    TRY(html_policy_hash(out, script, err));
    text_put(out, "; style-src ");
    TRY(html_policy_hash(out, embedded_page_css, err));
    text_put(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    html_put(out, s->results->plan.name);
    text_put(out, " – fullrank report</title>\n<style>");
    text_put(out, embedded_page_css);
    text_put(out, "</style>\n</head>\n");
    return FR_OK;
}

static void put_title(const summary *s, text_buffer *out) {
    enum { TRAINED, EXTERNAL, PLAIN, KINDS };
    int count[KINDS] = {0}, seeds = 0;
    for (int i = 0; i < s->datas; i++) {
        int here[KINDS] = {0};
        for (int k = 0; k < s->data[i].models; k++) {
            const model_numbers *m = &s->data[i].model[k];
            here[m->external ? EXTERNAL : m->objective ? TRAINED : PLAIN]++;
            if (m->runs > seeds) seeds = m->runs;
        }
        for (int k = 0; k < KINDS; k++)
            if (here[k] > count[k]) count[k] = here[k];
    }
    text_put(out, "<p class=\"brand\">fullrank report</p>\n<h1>");
    html_put(out, s->results->plan.name);
    text_print(out, "</h1>\n<p>%d data set%s · ", s->datas, s->datas == 1 ? "" : "s");
    if (count[TRAINED] || !count[EXTERNAL])
        text_print(out, "%d trained model%s · ", count[TRAINED], count[TRAINED] == 1 ? "" : "s");
    if (count[EXTERNAL])
        text_print(out, "%d external model%s · ", count[EXTERNAL], count[EXTERNAL] == 1 ? "" : "s");
    if (count[PLAIN] || !count[EXTERNAL])
        text_print(out, "%d scorer%s without training · ", count[PLAIN],
                   count[PLAIN] == 1 ? "" : "s");
    text_print(out, "%d seed%s</p>\n", seeds, seeds == 1 ? "" : "s");
}

static fr_status put_page(page p, const char *script, text_buffer *out, fr_error *err) {
    const summary *s = p.s;
    text_buffer body = {0};
    p.out = &body;
    fr_status status = put_head(s, out, script, err);
    text_put(out, "<body>\n<a class=\"skip\" href=\"#short\">Skip to the findings</a>\n<header>\n");
    put_title(s, out);
    text_put(out, "<nav aria-label=\"Sections\"><ul>\n");
    for (int i = 0; !status && i < SECTIONS; i++) {
        bool any;
        status = put_section(&p, &sections[i], &any, err);
        if (!status && any)
            text_print(out, "<li><a href=\"#%s\">%s</a></li>\n", sections[i].id, sections[i].title);
    }
    text_put(out, "</ul></nav>\n</header>\n<main>\n");
    if (!status) status = text_status(&body, err);
    if (!status && body.count) text_put_bytes(out, body.at, body.count);
    text_put(out, "</main>\n<script type=\"application/json\" id=\"study\">");
    if (!status) status = page_data(s, p.context, out, err);
    text_put(out, "</script>\n<script>");
    text_put(out, script);
    text_put(out, "</script>\n</body>\n</html>\n");
    text_free(&body);
    return status ? status : text_status(out, err);
}

fr_status page_write(const summary *s, const char *directory, const drawn_figure *drawn,
                     const char *path, const char *audits, const fr_context *context,
                     fr_error *err) {
    text_buffer out = {0}, script = {0};
    writer w = {0};
    page p = {.s = s,
              .context = context,
              .directory = directory,
              .drawn = drawn,
              .alone = path != NULL,
              .audits = audits};
    char *place = path ? strdup(path) : path_join(directory, "report.html");
    fr_status status = place ? FR_OK : fail_memory(err, 0);
    text_put(&script, embedded_expected_js);
    text_put(&script, embedded_page_js);
    if (!status) status = text_status(&script, err);
    if (!status) status = put_page(p, script.at, &out, err);
    if (!status) status = writer_open(&w, place, err);
    if (!status) status = writer_put(&w, out.at, out.count, err);
    if (!status) status = writer_commit(&w, err);
    writer_discard(&w);
    text_free(&script);
    text_free(&out);
    free(place);
    return status;
}
