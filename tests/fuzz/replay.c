/* replay.c - runs a fuzz target over its stored corpus without a fuzzer; prints TAP.
 *
 *     fuzz_NAME DIRECTORY
 *
 * Each file is copied to a block of exactly its size, so that the address sanitizer sees a read
 * past the end. A crash ends the program, which run.sh reports. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_input(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int replay(const char *folder, const char *name) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) return 1;
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size);
    int bad = !bytes || fread(bytes, 1, size, file) != size;
    (void)fclose(file);
    if (!bad) bad = LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return bad;
}

int main(int count, char **argument) {
    struct dirent **entries = NULL;
    int inputs = count == 2 ? scandir(argument[1], &entries, is_input, alphasort) : -1;
    if (inputs < 0) {
        (void)fprintf(stderr, "usage: fuzz_NAME DIRECTORY\n");
        return 2;
    }
    int failed = 0;
    (void)printf("1..%d\n", inputs);
    for (int i = 0; i < inputs; i++) {
        int bad = replay(argument[1], entries[i]->d_name);
        (void)printf("%sok %d - %s\n", bad ? "not " : "", i + 1, entries[i]->d_name);
        (void)fflush(stdout);
        failed |= bad;
        free(entries[i]);
    }
    free(entries);
    return failed;
}
