/* feed.c - the loop stays the program's own: queries out, scores in, truth back.
 *
 *     feed wikipedia.csv BATCH ranks.npy
 *
 * Scores are the popularity so far, brought up to date after every batch. With batches of 1 the
 * records are those of `fullrank rank --scorer baseline:popularity`.
 */
#include <fullrank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fr_status run(fr_window *window, int batch, const char *path, fr_error *err) {
    fr_window_facts w = fr_window_get(window);
    fr_columns columns = fr_window_columns(window);
    fr_scorer_definition about = {.size = sizeof about, .name = "my-popularity", .seed = 1};
    fr_feed *feed = NULL;
    fr_ranking *ranking = NULL;
    const fr_query *queries;
    const fr_event *truth;
    int count, known;
    float *popularity = calloc((size_t)w.candidates, sizeof *popularity);
    float *scores = malloc((size_t)batch * (size_t)w.candidates * sizeof *scores);
    if (!popularity || !scores) return fr_fail(err, FR_ENOMEM, "out of memory");
    for (int64_t i = 0; i < w.train; i++) popularity[columns.destination[i]] += 1;

    fr_status status = fr_feed_open(window, &about, NULL, &feed, err);
    while (!status && !(status = fr_feed_next(feed, batch, &queries, &count, err)) && count) {
        for (int k = 0; k < count; k++) /* the same for every source */
            memcpy(scores + k * w.candidates, popularity,
                   (size_t)w.candidates * sizeof *popularity);
        status = fr_feed_submit(feed, scores, count, &truth, &known, err);
        for (int k = 0; !status && k < known; k++) popularity[truth[k].destination] += 1;
    }
    if (!status) status = fr_feed_finish(feed, &ranking, err);
    if (!status) status = fr_ranking_save(ranking, path, true, err);
    fr_ranking_close(ranking);
    fr_feed_close(feed);
    free(popularity);
    free(scores);
    return status;
}

int main(int count, char **argument) {
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    if (count != 4) return fprintf(stderr, "usage: feed TABLE BATCH RANKS.npy\n"), 2;
    fr_status status = fr_stream_open(argument[1], NULL, NULL, &stream, &err);
    if (!status) status = fr_window_open(stream, NULL, NULL, &window, &err);
    if (!status) status = run(window, atoi(argument[2]), argument[3], &err);
    if (status) fprintf(stderr, "%s\n", err.message);
    fr_window_close(window);
    fr_stream_close(stream);
    return status ? 1 : 0;
}
