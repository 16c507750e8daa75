/* top.c - see top.h.
 *
 * Events are read in any order by many threads, but the file has them in stream order. So the
 * places first go to a temporary file with rows of equal size, in their final order, and become
 * lines at the end. So memory does not grow with the number of events times K.
 */
#define _GNU_SOURCE
#include "rank/top.h"

#include "base/number.h"
#include "data/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Refuses an existing file. */
static fr_status check(const top_list *t, fr_error *err) {
    struct stat facts;
    if (!t->force && !lstat(t->path, &facts)) return fail(err, FR_EFORCE, "%s: exists", t->path);
    return FR_OK;
}

fr_status top_open(top_list *t, const fr_window *w, const event_list *list, bool catalog_only,
                   const fr_rank_settings *settings, int threads, fr_error *err) {
    const char *path = settings->top_output;
    size_t n = path ? strlen(path) : 0;
    int32_t most = w->catalog_kind == CATALOG_TIME ? w->destinations : w->catalog_size;
    *t = (top_list){.w = w,
                    .force = settings->force,
                    .places = settings->top < most ? (int32_t)settings->top : most};
    if (n < 5 || strcmp(path + n - 4, ".csv"))
        return fail(err, FR_EUSAGE, "option top: %s%sexpected a name that ends in .csv",
                    path ? path : "no file", path ? ": " : ", ");
    if (!(t->path = strdup(path))) return fail_memory(err, n);
    TRY(check(t, err));
    TRY(ALLOCATE(t->row, w->to - w->from, err));
    TRY(ALLOCATE(t->best, (int64_t)threads * t->places, err));
    for (int32_t k = 0; k < w->to - w->from; k++) {
        scored_event e = engine_describe(w, w->from + k);
        bool kept = e.covered && events_row(list, k) >= 0 &&
                    engine_ranks(w, &e, catalog_only, settings->met);
        t->row[k] = kept ? t->rows++ : -1;
    }
    TRY(writer_open(&t->spill, path, err));
    return writer_extend(&t->spill, t->rows * t->places * (int64_t)sizeof *t->best, err);
}

/* ---- choosing ---- */

/* True if a comes before b. */
static bool before(top_place a, top_place b) {
    return a.score != b.score ? a.score > b.score : a.candidate < b.candidate;
}

/* Restores a heap whose root is the last place, after the entry at `i` was replaced. */
static void sink(top_place *heap, int32_t count, int32_t i) {
    for (;;) {
        int32_t last = i;
        for (int32_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++)
            if (before(heap[last], heap[child])) last = child;
        if (last == i) return;
        top_place swap = heap[i];
        heap[i] = heap[last];
        heap[last] = swap;
        i = last;
    }
}

static int by_place(const void *a, const void *b) {
    return before(*(const top_place *)b, *(const top_place *)a) ? 1 : -1;
}

static fr_status read_scores(void *state, const scored_event *e, const float *scores,
                             fr_error *err) {
    top_list *t = state;
    const fr_window *w = t->w;
    if (t->row[e->place] < 0) return FR_OK;
    bool all = w->catalog_kind == CATALOG_TIME;
    top_place *best = t->best + (int64_t)e->worker * t->places;
    int32_t count = 0, columns = all ? w->destinations : w->catalog_size;
    for (int32_t k = 0; k < columns; k++) {
        int32_t v = all ? k : w->catalog[k];
        /* ids ascend, so of equal scores the existing entry comes first */
        if (count == t->places && scores[v] <= best[0].score) continue;
        if (!window_ranked(w, e->event, v)) continue;
        if (count < t->places) {
            best[count++] = (top_place){v, scores[v]};
            for (int32_t i = count / 2 - 1; count == t->places && i >= 0; i--) sink(best, count, i);
        } else {
            best[0] = (top_place){v, scores[v]};
            sink(best, count, 0);
        }
    }
    qsort(best, (size_t)count, sizeof *best, by_place);
    for (; count < t->places; count++) best[count] = (top_place){-1, 0};
    int64_t bytes = t->places * (int64_t)sizeof *best;
    return writer_put_at(&t->spill, t->row[e->place] * bytes, best, (size_t)bytes, err);
}

probe top_probe(top_list *t) { return (probe){.state = t, .read = read_scores}; }

/* ---- writing ---- */

/* A word as a field of RFC 4180, with a comma before it; empty for an id of a catalog file that has
 * no word. */
static fr_status put_word(writer *out, const word_list *words, int64_t id, fr_error *err) {
    if (id + 1 >= (int64_t)words->start.count) return writer_put(out, ",", 1, err);
    const char *word = words->start.at[id];
    size_t n = (size_t)(words->start.at[id + 1] - word) - 1;
    bool quoted = memchr(word, ',', n) || memchr(word, '"', n) || memchr(word, '\r', n);
    TRY(writer_put(out, ",\"", quoted ? 2 : 1, err));
    for (size_t i = 0; i < n; i++) {
        if (word[i] == '"') TRY(writer_put(out, "\"", 1, err));
        TRY(writer_put(out, word + i, 1, err));
    }
    return quoted ? writer_put(out, "\"", 1, err) : FR_OK;
}

static fr_status put_line(const top_list *t, writer *out, int32_t event, int32_t place, top_place p,
                          fr_error *err) {
    const fr_window *w = t->w;
    const fr_stream *s = w->stream;
    int64_t source = w->source_id[w->source[event]],
            destination = w->destination_id[w->destination[event]],
            candidate = w->destination_id[p.candidate];
    char line[160];
    int size = number_print(line, sizeof line, "%lld,%lld,%lld,%d,%lld,%.9g,%d",
                            (long long)(w->first + event), (long long)source,
                            (long long)destination, place + 1, (long long)candidate,
                            (double)p.score, p.candidate == w->destination[event]);
    TRY(writer_put(out, line, (size_t)size, err));
    if (s->facts.words) {
        TRY(put_word(out, &s->source_word, source, err));
        TRY(put_word(out, &s->destination_word, destination, err));
        TRY(put_word(out, &s->destination_word, candidate, err));
    }
    return writer_put(out, "\n", 1, err);
}

/* The places of one event, from the temporary file. */
static fr_status get_places(const top_list *t, int64_t row, fr_error *err) {
    size_t size = (size_t)t->places * sizeof *t->best, done = 0;
    while (done < size) {
        ssize_t n = pread(t->spill.place.fd, (char *)t->best + done, size - done,
                          (off_t)((size_t)row * size + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_errno(err, "%s: cannot be read back", t->path);
        done += (size_t)n;
    }
    return FR_OK;
}

static fr_status put_lines(const top_list *t, writer *out, fr_error *err) {
    static const char head[] = "event,source,destination,place,candidate,score,positive",
                      words[] = ",source_word,destination_word,candidate_word";
    TRY(writer_put(out, head, sizeof head - 1, err));
    if (t->w->stream->facts.words) TRY(writer_put(out, words, sizeof words - 1, err));
    TRY(writer_put(out, "\n", 1, err));
    for (int32_t k = 0; k < t->w->to - t->w->from; k++) {
        if (t->row[k] < 0) continue;
        TRY(get_places(t, t->row[k], err));
        for (int32_t i = 0; i < t->places && t->best[i].candidate >= 0; i++)
            TRY(put_line(t, out, t->w->from + k, i, t->best[i], err));
    }
    return FR_OK;
}

fr_status top_commit(top_list *t, fr_error *err) {
    writer out = {0};
    fr_status status = writer_open(&out, t->path, err);
    if (!status) status = put_lines(t, &out, err);
    if (!status) status = check(t, err); /* another process may have made it in the meantime */
    if (!status) status = writer_commit(&out, err);
    writer_discard(&out);
    return status;
}

void top_close(top_list *t) {
    writer_discard(&t->spill);
    free(t->path);
    free(t->row);
    free(t->best);
    *t = (top_list){0};
}
