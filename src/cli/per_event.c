/* per_event.c - see per_event.h. */
#define _GNU_SOURCE
#include "per_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_events(FILE *out, const fr_ranking *ranking) {
    fr_ranking_facts f = fr_ranking_get(ranking);
    const char *scorer = cli_visible(f.scorer); /* also without tabs and line ends */
    for (int64_t i = 0; i < f.count; i++) {
        const fr_record *e = &f.records[i];
        (void)fprintf(out, "%s\t%lld\t%lld\t%lld\t%.17g\t%d\t%d\t", scorer, (long long)e->event,
                      (long long)e->source, (long long)e->destination, e->time, e->covered,
                      e->repeated);
        double rank = 1 + e->above + e->tied / 2.0;
        if (e->covered)
            (void)fprintf(out, "%d\t%d\t%d\t%.1f\t%.6f\n", e->n, e->above, e->tied, rank, 1 / rank);
        else
            (void)fprintf(out, "\t\t\t\t%s\n", f.oov == FR_OOV_ZERO ? "0" : "");
    }
}

int find_event_file(event_file *out, const char *path, bool force) {
    struct stat facts;
    *out = (event_file){0};
    if (!strcmp(path, "-")) return CLI_OK;
    bool there = !stat(path, &facts);
    if (!there && !lstat(path, &facts)) {
        cli_error("%s: a symbolic link to nothing", path);
    } else if (there && S_ISDIR(facts.st_mode)) {
        cli_error("%s: is a directory, expected a file", path);
    } else if (there && S_ISREG(facts.st_mode) && !force) {
        cli_error("%s: exists; --force replaces it", path);
    } else if (there ? !realpath(path, out->path)
                     : snprintf(out->path, sizeof out->path, "%s", path) >= PATH_MAX) {
        cli_error("%s: the name cannot be used", path);
    } else {
        out->direct = there && !S_ISREG(facts.st_mode);
        return CLI_OK;
    }
    return CLI_FAILED;
}

static void write_lines(FILE *out, fr_ranking *const *all, int count) {
    (void)fprintf(out, "scorer\tevent\tsource\tdestination\ttime\tcovered\trepeated\tn\tabove\t"
                       "tied\trank\treciprocal_rank\n");
    for (int i = 0; i < count; i++) write_events(out, all[i]);
}

/* What a FILE needs to write to an fr_file. */
typedef struct file_end {
    fr_file *file;
    fr_status status;
    fr_error err;
} file_end;

static ssize_t put_bytes(void *user, const char *bytes, size_t size) {
    file_end *end = user;
    if (!end->status) end->status = fr_file_put(end->file, bytes, size, &end->err);
    return end->status ? 0 : (ssize_t)size; /* 0 is an error to stdio */
}

static int write_file(const char *path, fr_ranking *const *all, int count) {
    file_end end = {0};
    fr_status status = fr_file_open(path, &end.file, &end.err);
    if (!status) {
        FILE *out = fopencookie(&end, "w", (cookie_io_functions_t){.write = put_bytes});
        if (out) write_lines(out, all, count);
        bool good = out && !ferror(out);
        good = out && !fclose(out) && good;
        status = end.status;
        if (!status && !good) {
            status = FR_ENOMEM; /* the only remaining cause */
            (void)snprintf(end.err.message, sizeof end.err.message, "out of memory");
        }
    }
    if (!status) status = fr_file_commit(end.file, &end.err);
    fr_file_close(end.file);
    return cli_report(status, &end.err);
}

int write_per_event(const event_file *file, fr_ranking *const *all, int count) {
    if (!file->path[0]) {
        write_lines(stdout, all, count); /* main handles its errors */
        return CLI_OK;
    }
    if (!file->direct) return write_file(file->path, all, count);
    FILE *out = fopen(file->path, "w");
    bool good = out != NULL;
    if (good) {
        write_lines(out, all, count);
        good = !ferror(out);
        good = !fclose(out) && good;
    }
    if (!good) cli_error("%s: cannot be written: %s", file->path, strerror(errno));
    return good ? CLI_OK : CLI_FAILED;
}
