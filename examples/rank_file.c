/* rank_file.c - ranks a scorer on a table and prints its MRR.
 *
 *     rank_file wikipedia.csv baseline:recency
 *     rank_file wikipedia.csv scores:mine.npy
 */
#include <fullrank.h>
#include <stdio.h>

int main(int count, char **argument) {
    fr_error err = {0};
    fr_stream *stream = NULL;
    fr_window *window = NULL;
    fr_scorer *scorer = NULL;
    fr_ranking *ranking = NULL;
    fr_metric_value mrr;
    if (count != 3) return fprintf(stderr, "usage: rank_file TABLE SCORER\n"), 2;

    /* NULL settings are the defaults of the command line. */
    fr_status status = fr_stream_open(argument[1], NULL, NULL, &stream, &err);
    if (!status) status = fr_window_open(stream, NULL, NULL, &window, &err);
    if (!status) status = fr_scorer_open(argument[2], window, 1, NULL, &scorer, &err);
    if (!status) status = fr_rank_run(scorer, NULL, NULL, &ranking, &err);
    if (!status) {
        fr_ranking_facts f = fr_ranking_get(ranking);
        const char *name = "mrr";
        status = fr_metrics_compute(f.records, f.count, f.oov, &name, 1, &mrr, &err);
    }
    if (status)
        fprintf(stderr, "%s\n", err.message);
    else
        printf("MRR %.6f over %lld events\n", mrr.value, (long long)mrr.events);
    fr_ranking_close(ranking);
    fr_scorer_close(scorer);
    fr_window_close(window);
    fr_stream_close(stream);
    return status ? 1 : 0;
}
