/* fuzz_ranks.c - changed rank records and their description: refused with a one-line reason, or
 * records that every metric, sampler and comparison accepts. The hash in the description is
 * corrected before edits; otherwise nothing else would be checked.
 *
 *     @@r records  @@R the .npy itself  @@b edits of its bytes
 *     @@j edits of the JSON  @@J the JSON itself */
#include "parts.h"

#include "base/sha256.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct { fuzz_bytes records, about; } good;

static void prepare(void) {
    char path[FUZZ_PATH];
    fr_error err = {0};
    fr_scorer *scorer;
    fr_rank_settings settings = {0};
    fr_ranking *ranking;
    if (good.records.at) return;
    const fr_window *w = fuzz_window();
    fuzz_must(fr_options_defaults(fr_rank_options, &settings, &err), &err);
    fuzz_must(fr_scorer_open("baseline:popularity", w, 1, &fuzz_context, &scorer, &err), &err);
    fuzz_must(fr_rank_run(scorer, &settings, &fuzz_context, &ranking, &err), &err);
    fuzz_must(fr_ranking_save(ranking, fuzz_path(path, "good.npy"), true, &err), &err);
    good.records = fuzz_read(path);
    good.about = fuzz_read(fuzz_path(path, "good.json"));
    fr_ranking_close(ranking);
    fr_scorer_close(scorer);
    fr_options_free(fr_rank_options, &settings);
}

static void write_files(fuzz_part rest) {
    enum { HEADER_ROOM = 65536 };
    uint8_t *records = malloc(good.records.size + HEADER_ROOM);
    size_t size = good.records.size, header = 0;
    json_t *about = json_loads((const char *)good.about.at, 0, NULL);
    fuzz_part parts = rest, document = {0};
    if (!about || !records) abort();
    memcpy(records, good.records.at, size);
    while (records[header++] != '\n') {
    }
    for (fuzz_part p; fuzz_next(&parts, &p);) {
        if (p.kind == 'r' && p.size <= HEADER_ROOM) { /* the header says how many: as many as fit */
            size_t room = size - header;
            memcpy(records + header, p.at, p.size < room ? p.size : room);
        }
        if (p.kind == 'R' && p.size <= HEADER_ROOM) memcpy(records, p.at, size = p.size);
        if (p.kind == 'b') fuzz_edit_bytes(records, size, p);
        if (p.kind == 'J') document = p;
    }
    sha256 hash;
    char hex[65];
    if (sha256_start(&hash, NULL)) abort();
    sha256_add(&hash, records, size);
    sha256_end(&hash, hex);
    (void)json_object_set_new(about, "sha256", json_string(hex));
    for (fuzz_part p; fuzz_next(&rest, &p);)
        if (p.kind == 'j') fuzz_edit_json(about, p);
    fuzz_write("ranks.npy", records, size);
    if (document.at)
        fuzz_write("ranks.json", document.at, document.size);
    else
        fuzz_write_json("ranks.json", about);
    json_decref(about);
    free(records);
}

static void ask_metrics(const fr_ranking_facts *f) {
    static const int64_t k[] = {1, 5, 100}, hits[] = {1, 10};
    fr_error err = {0};
    fr_metric_value value;
    for (int i = 0; fr_metric_at(i); i++) {
        char text[64];
        const char *name = text;
        (void)snprintf(text, sizeof text, "%.60s", fr_metric_at(i)->name);
        char *mark = strchr(text, '@'); /* hits@k takes a number */
        if (mark) memcpy(mark, "@3", 3);
        fr_status status = fr_metrics_compute(f->records, f->count, f->oov, &name, 1, &value, &err);
        fuzz_reason(status, &err);
        if (!status && isinf(value.value)) abort();
    }
    for (int i = 0; fr_sampler_at(i); i++) {
        fr_expected expected[3];
        fr_draws draws[3];
        fr_sampling sampling = {.sampler = fr_sampler_at(i)->name,
                                .oov = f->oov,
                                .k = k,
                                .k_count = 3,
                                .hits = hits,
                                .hits_count = 2};
        fuzz_reason(
            fr_expected_compute(f->records, f->count, &sampling, &fuzz_context, expected, &err),
            &err);
        fuzz_reason(fr_draws_compute(f->records, f->count, &sampling, 1, 2, &fuzz_context, draws,
                                     NULL, &err),
                    &err);
    }
}

/* Every record is in one slice. */
static void cut_records(const fr_ranking_facts *f) {
    for (int i = 0; fr_slice_field_at(i); i++) {
        fr_error err = {0};
        fr_slices slices;
        int64_t events = 0;
        fr_status status =
            fr_slices_compute(f->records, f->count, fr_slice_field_at(i)->name, &slices, &err);
        fuzz_reason(status, &err);
        for (int k = 0; k < slices.count; k++) events += slices.slice[k].events;
        if (!status && events != f->count) abort();
        fr_slices_free(&slices);
    }
}

static void compare(const fr_ranking *ranking) {
    static const int64_t k[] = {1, 20};
    fr_error err = {0};
    fr_compare_settings settings = {0};
    fr_comparison *comparison = NULL;
    fr_compare_run runs[2] = {{.ranking = ranking, .file = "a"},
                              {.ranking = ranking, .file = "b", .model = "other"}};
    fuzz_must(fr_options_defaults(fr_compare_options, &settings, &err), &err);
    settings.resamples = 4;
    fuzz_reason(fr_compare(runs, 2, k, 2, &settings, 1, &fuzz_context, &comparison, &err), &err);
    fr_comparison_close(comparison);
    fr_options_free(fr_compare_options, &settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char path[FUZZ_PATH];
    fr_error err = {0};
    fr_ranking *ranking;
    fr_membership membership;
    prepare();
    write_files((fuzz_part){.at = bytes, .size = size});
    fr_status status = fr_ranking_load(fuzz_path(path, "ranks.npy"), &ranking, &err);
    fuzz_reason(status, &err);
    if (status) return 0;
    fr_ranking_facts f = fr_ranking_get(ranking);
    ask_metrics(&f);
    cut_records(&f);
    compare(ranking);
    fuzz_reason(fr_membership_compute(ranking, 2, 1, &fuzz_context, &membership, &err), &err);
    fr_ranking_close(ranking);
    return 0;
}
