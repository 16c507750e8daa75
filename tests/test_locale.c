/* test_locale.c - the library in a program that called setlocale: with a decimal comma, all output
 * has the same bytes as in the C locale.
 *
 * Locales that are not installed are built for the test. One has a comma, one a decimal point of
 * two bytes. */
#include "base/json.h"
#include "base/text.h"
#include "testing.h"

#include <locale.h>
#include <math.h>
#include <sys/stat.h>

/* Changes to a locale of this name, or to one built from its definition; false if neither is
 * possible here. */
static bool change_locale(const char *directory, const char *definition) {
    char name[64], command[512];
    (void)snprintf(name, sizeof name, "%s.UTF-8", definition);
    if (setlocale(LC_ALL, name)) return true;
    (void)snprintf(command, sizeof command, "localedef -i %s -f UTF-8 %s/%s >%s/localedef 2>&1",
                   definition, directory, name, directory);
    if (system(command) && access(in_directory(directory, name), R_OK)) return false;
    assert_int_equal(setenv("LOCPATH", directory, 1), 0);
    bool changed = setlocale(LC_ALL, name) != NULL;
    assert_int_equal(unsetenv("LOCPATH"), 0);
    return changed;
}

/* The point of this program's printf. */
static bool has_point(void) {
    char text[16];
    (void)snprintf(text, sizeof text, "%.1f", 0.5);
    return !strcmp(text, "0.5");
}

static const char study[] =
    "{\"name\": \"small\", \"data\": {\"drawn\": {\"synth\": \"tiny\", \"events\": 400}},"
    " \"protocol\": {\"window\": 0, \"train-share\": 0.8}, \"diagnostic-window\": 0,"
    " \"oracle\": true, \"baselines\": [\"recency\"], \"models\": [\"craft\", \"craft-r\"],"
    " \"seeds\": [7, 17], \"gain\": [\"craft\", \"craft-r\"],"
    " \"settings\": {\"epochs\": 1, \"dim\": 8, \"history\": 8, \"lr\": 0.002}}";

/* Measured times differ from run to run. */
static void forget_times(const char *path) {
    fr_error err;
    json_t *root;
    OK(json_read(path, &root, &err));
    (void)json_object_del(root, "seconds");
    (void)json_object_del(root, "timing");
    OK(json_write(path, root, &err));
}

static void save(const char *directory, const char *name, const void *bytes, size_t size) {
    put_file(in_directory(directory, name), bytes, size);
}

/* One run of everything; what may be compared is left in `directory`/out. */
static void produce(const char *directory) {
    fr_error err;
    char *out = in_directory(directory, "out");
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(mkdir(out, 0700), 0);

    fr_synth synth;
    OK(fr_options_defaults(fr_synth_options, &synth, &err));
    OK(fr_options_set(fr_synth_options, &synth, "preset", "tiny", &err));
    OK(fr_options_set(fr_synth_options, &synth, "parameters", "repeat=0.65,drift=0.5", &err));
    synth.events = 400;
    OK(fr_synth_make(&synth, in_directory(out, "synth"), NULL, &err));
    fr_options_free(fr_synth_options, &synth);

    fr_import import;
    OK(fr_options_defaults(fr_import_options, &import, &err));
    put_text(in_directory(directory, "in.csv"), "USER_ID,ITEM_ID,TIME,f\n1,2,0.25,1.5\n1,3,1e-3,"
                                                "0.1\n2,2,12345678901234567890.5,-0.125\n");
    OK(fr_import_file(in_directory(directory, "in.csv"), in_directory(out, "in"), &import, NULL,
                      &err));
    fr_options_free(fr_import_options, &import);
    fr_stream *stream;
    OK(fr_stream_open(in_directory(out, "in"), NULL, NULL, &stream, &err));
    OK(fr_stream_export(stream, in_directory(out, "out.csv"), false, NULL, &err));
    fr_stream_close(stream);

    fr_protocol protocol;
    OK(fr_options_defaults(fr_protocol_options, &protocol, &err));
    OK(fr_options_set(fr_protocol_options, &protocol, "train-share", "0.8", &err));
    fr_window *window;
    OK(fr_stream_open(in_directory(out, "synth"), NULL, NULL, &stream, &err));
    OK(fr_window_open(stream, &protocol, NULL, &window, &err));
    fr_model_settings model;
    fr_training training;
    OK(fr_options_defaults(fr_model_options, &model, &err));
    OK(fr_options_defaults(fr_training_options, &training, &err));
    model.dim = model.history = 8;
    training.epochs = 2;
    char *run = in_directory(out, "run");
    OK(fr_train_run(window, "craft-r", &model, &training, run, NULL, &err));
    forget_times(in_directory(run, "train.json"));
    assert_int_equal(unlink(in_directory(run, "state.safetensors")), 0);

    /* The name of the scorer is in the file: the same in both runs. */
    assert_int_equal(chdir(out), 0);
    static const char *const specs[] = {"run/model.safetensors", "baseline:recency"};
    static const char *const files[] = {"first.npy", "second.npy"};
    fr_ranking *ranking[2];
    for (int i = 0; i < 2; i++) {
        fr_scorer *scorer;
        fr_rank_settings settings;
        OK(fr_options_defaults(fr_rank_options, &settings, &err));
        settings.popularity_power = 0.75;
        OK(fr_scorer_open(specs[i], window, 1, NULL, &scorer, &err));
        fr_ranking *fresh;
        OK(fr_rank_run(scorer, &settings, NULL, &fresh, &err));
        OK(fr_ranking_save(fresh, files[i], false, &err));
        fr_ranking_close(fresh);
        fr_scorer_close(scorer);
        fr_options_free(fr_rank_options, &settings);
        OK(fr_ranking_load(files[i], &ranking[i], &err));
    }
    forget_times("first.json");
    forget_times("second.json");

    fr_ranking_facts facts = fr_ranking_get(ranking[0]);
    fr_sampling sampling = {.sampler = "uniform",
                            .k = fr_standard_k,
                            .k_count = 3,
                            .hits = fr_standard_k,
                            .hits_count = 2};
    fr_expected expected[3] = {{0}};
    OK(fr_expected_compute(facts.records, facts.count, &sampling, NULL, expected, &err));
    save(out, "expected", expected, sizeof expected);
    fr_compare_settings settings;
    OK(fr_options_defaults(fr_compare_options, &settings, &err));
    settings.block = 8;
    fr_compare_run runs[2] = {{.ranking = ranking[0], .file = files[0]},
                              {.ranking = ranking[1], .file = files[1]}};
    fr_comparison *comparison;
    OK(fr_compare(runs, 2, fr_standard_k, 2, &settings, 1, NULL, &comparison, &err));
    fr_comparison_facts compared = fr_comparison_get(comparison);
    save(out, "difference", compared.pair[0].difference,
         (size_t)compared.columns * sizeof(fr_difference));
    save(out, "protocol", compared.protocol_text, strlen(compared.protocol_text));
    fr_comparison_close(comparison);
    fr_options_free(fr_compare_options, &settings);
    for (int i = 0; i < 2; i++) fr_ranking_close(ranking[i]);
    fr_window_close(window);
    fr_stream_close(stream);
    fr_options_free(fr_protocol_options, &protocol);

    assert_int_equal(chdir("/"), 0);

    fr_study *s;
    char *folder = in_directory(directory, "study");
    OK(fr_study_open(study, NULL, folder, &s, &err));
    OK(fr_study_run(s, NULL, &err));
    fr_study_close(s);
    OK(fr_study_report(folder, NULL, &err));
    static const char *const parts[] = {"tables", "figures"};
    for (int i = 0; i < 2; i++)
        assert_int_equal(rename(in_directory(folder, parts[i]), in_directory(out, parts[i])), 0);
}

/* The page shows measured times, so it is made twice from one ledger. */
static void report_again(const char *from, const char *to) {
    fr_error err;
    OK(fr_study_report(from, NULL, &err));
    assert_int_equal(rename(in_directory(from, "report.html"), in_directory(to, "report.html")), 0);
}

/* Numbers in messages, and back from options. */
static void check_texts(void) {
    fr_error err;
    fr_protocol protocol;
    OK(fr_options_defaults(fr_protocol_options, &protocol, &err));
    assert_true(protocol.train_share == 0.85);
    FAILS(fr_options_set(fr_protocol_options, &protocol, "train-share", "0,5", &err), FR_EUSAGE,
          "found \"0,5\", expected a number from 0");
    FAILS(fail(&err, FR_EINPUT, "half is %g", 0.5), FR_EINPUT, "half is 0.5");
    char text[64];
    fr_options_text(fr_options_find(fr_protocol_options, "train-share"), &protocol, text,
                    sizeof text);
    assert_string_equal(text, "0.85");
    text_buffer buffer = {0};
    text_print(&buffer, "%.3f %g", 1234.5, 1e-7);
    assert_string_equal(buffer.at, "1234.500 1e-07");
    text_free(&buffer);
    fr_options_free(fr_protocol_options, &protocol);
}

static void compare_with(const char *directory, const char *definition) {
    if (!change_locale(directory, definition))
        skip_because("neither a locale with a decimal comma nor localedef with its definition");
#ifndef __GLIBC__
    if (has_point()) skip_because("this C library has no other decimal point");
#endif
    assert_false(has_point());
    check_texts();
    char *plain = in_directory(directory, "plain"), *foreign = in_directory(directory, "foreign");
    produce(foreign);
    assert_false(has_point()); /* the program's locale is unchanged */
    report_again(in_directory(foreign, "study"), in_directory(foreign, "out"));
    assert_non_null(setlocale(LC_ALL, "C"));
    produce(plain);
    report_again(in_directory(foreign, "study"), in_directory(plain, "out"));
    char command[1024];
    (void)snprintf(command, sizeof command, "diff -rq %s/out %s/out >&2", plain, foreign);
    assert_int_equal(system(command), 0);
}

static void test_comma(void **state) { compare_with(*state, "de_DE"); }

static void test_point_of_two_bytes(void **state) { compare_with(*state, "ps_AF"); }

int main(void) {
    const struct CMUnitTest tests[] = {WITH_DIRECTORY(test_comma),
                                       WITH_DIRECTORY(test_point_of_two_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
