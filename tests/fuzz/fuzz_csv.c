/* fuzz_csv.c - any bytes as an interaction file: refused with a reason, or rows that keep the
 * reader's promises (csv.h). The first byte chooses how ids are read and which columns are named,
 * the rest is the file, plain or gzip.
 *
 *     bit 0  ids are words, bit 1 of both roles from one table
 *     bit 2  --columns by number, bit 3 by name
 *
 * Build with `cmake --preset fuzz`, run `build/fuzz/tests/fuzz_csv tests/fuzz/corpus/csv`. */
#include "data/csv.h"
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_id(int64_t id, const word_table *words) {
    if (id < 0 || (words && (size_t)id >= words->start.count)) abort();
    if (words && !*word_text(words, id)) abort();
}

static void check_rows(const csv *c) {
    const csv_rows *rows = &c->block;
    if (rows->count > c->rows_per_block || c->at > c->end || c->line < 1) abort();
    for (int64_t k = 0; k < rows->count; k++) {
        check_id(rows->source[k], c->source_words);
        check_id(rows->destination[k], c->destination_words);
        if (!isfinite(rows->time[k])) abort();
        for (int f = 0; f < c->layout.width; f++)
            if (!isfinite(rows->feature[k * c->layout.width + f])) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char *const columns[] = {NULL, "source=2,destination=1,time=3,features=4-",
                                          "time=t,features=none", "features=f-g"};
    if (!size) return 0;
    word_table words[2] = {0};
    bool by_word = bytes[0] & 1, shared = bytes[0] & 2;
    input in;
    csv c = {.in.fd = -1};
    fr_error err = {0};
    fr_status status = input_open_memory(&in, bytes + 1, size - 1, "fuzz.csv", &err);
    if (status)
        input_close(&in);
    else
        status = csv_open(&c, in, columns[bytes[0] >> 2 & 3], by_word ? &words[0] : NULL,
                          by_word ? &words[!shared] : NULL, NULL, &err);
    int64_t rows = 0;
    while (!status && !(status = csv_next(&c, &err)) && c.block.count) {
        check_rows(&c);
        rows += c.block.count;
    }
    if (status && (!err.code || !err.message[0] || strchr(err.message, '\n'))) abort();
    if (!status && !rows) abort(); /* a table without events is refused */
    csv_close(&c);
    word_table_free(&words[0]);
    word_table_free(&words[1]);
    return 0;
}
