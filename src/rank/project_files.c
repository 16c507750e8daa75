/* project_files.c - the intervention of project.c for models of other programs (PROTOCOL 10).
 *
 * Another program writes the vectors z that enter its scoring head, whether each pair has met, and
 * the head's first matrix. From these follow the directions, how well they separate the two kinds
 * of pairs, and the changed matrices. The files appear together, in a directory that is moved to
 * its place at the end.
 *
 * Separation is measured by AUC, where equal values count half. Nothing is left along the removed
 * direction itself, so after a removal the membership direction m is measured:
 * m.z' = m.z - (m.a) (a.z) / (a.a), which needs no second pass over z and is exactly 0 for a = m.
 */
#include "rank/project.h"

#include "base/npy.h"
#include "base/shards.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD = 512 }; /* pairs */

/* Everything of one call. Memory: freed at its end. */
typedef struct project_job {
    const char *z_path;
    npy z, labels, head;
    uint8_t *label; /* [pairs] */
    project_pairs pairs;
    double *a[FR_REMOVALS];     /* [width] directions; of FR_REMOVE_NOTHING none */
    double square[FR_REMOVALS]; /* a.a */
    double *scratch;            /* [threads, SHARD, width] */
    double *along[FR_REMOVALS]; /* [pairs] a.z */
} project_job;

/* ---- reading ---- */

static bool plain(const npy *n) { return n->fields == 1 && !n->field[0].name[0]; }

static fr_status open_reals(const char *path, int least, npy *out, fr_error *err) {
    TRY(npy_open(path, out, err));
    const npy_field *f = &out->field[0];
    if (!plain(out) || f->kind != 'f' || f->size < 4)
        return fail(err, FR_EINPUT, "%s: %s, expected float32 or float64", path,
                    plain(out) ? "an array of another type" : "a structured array");
    if (out->dims < least || out->dims > 2)
        return fail(err, FR_EINPUT, "%s: %d dimensions, expected %s", path, out->dims,
                    least == 2 ? "2, [pairs, D]" : "[rows, D] or [D]");
    for (int d = 0; d < out->dims; d++)
        if (out->shape[d] < 1 || out->shape[d] > INT32_MAX)
            return fail(err, FR_EINPUT, "%s: extent %lld of dimension %d, expected 1 to %d", path,
                        (long long)out->shape[d], d + 1, INT32_MAX);
    return FR_OK;
}

/* count rows of `width` numbers from row `first` on, as double. */
static fr_status read_rows(const npy *n, const char *path, int64_t first, int64_t count, int width,
                           double *out, fr_error *err) {
    size_t start = (size_t)first * (size_t)width, numbers = (size_t)count * (size_t)width;
    for (size_t k = 0; k < numbers; k++) {
        out[k] = n->item == 4 ? (double)((const float *)n->data)[start + k]
                              : ((const double *)n->data)[start + k];
        if (!isfinite(out[k]))
            return fail(err, FR_EINPUT, "%s: row %zu, column %zu is %g, expected finite numbers",
                        path, (start + k) / (size_t)width, (start + k) % (size_t)width, out[k]);
    }
    return FR_OK;
}

static fr_status read_z(void *from, int64_t first, int64_t count, int worker, double *z,
                        fr_error *err) {
    const project_job *j = from;
    (void)worker;
    return read_rows(&j->z, j->z_path, first, count, j->pairs.width, z, err);
}

static fr_status read_labels(project_job *j, const char *path, fr_error *err) {
    TRY(npy_open(path, &j->labels, err));
    const npy *n = &j->labels;
    if (!plain(n) || n->item != 1 || n->dims != 1)
        return fail(err, FR_EINPUT,
                    "%s: %d dimensions and %zu bytes per element, expected one dimension of bool, "
                    "uint8 or int8",
                    path, n->dims, n->item);
    if (n->shape[0] != j->z.shape[0])
        return fail(err, FR_EINPUT, "%s: %lld labels, expected %lld, one per row of %s", path,
                    (long long)n->shape[0], (long long)j->z.shape[0], j->z_path);
    TRY(ALLOCATE(j->label, n->shape[0], err));
    memcpy(j->label, n->data, (size_t)n->shape[0]);
    for (int64_t k = 0; k < n->shape[0]; k++)
        if (j->label[k] > 1)
            return fail(err, FR_EINPUT, "%s: label %lld is %d, expected 0 or 1", path, (long long)k,
                        n->field[0].kind == 'i' ? (int8_t)j->label[k] : j->label[k]);
    return FR_OK;
}

static fr_status open_inputs(project_job *j, const char *representations, const char *labels,
                             const char *head, fr_error *err) {
    j->z_path = representations;
    TRY(open_reals(representations, 2, &j->z, err));
    TRY(read_labels(j, labels, err));
    TRY(open_reals(head, 1, &j->head, err));
    int64_t columns = j->head.shape[j->head.dims - 1];
    if (columns != j->z.shape[1])
        return fail(err, FR_EINPUT, "%s: %lld columns, expected %lld as in %s", head,
                    (long long)columns, (long long)j->z.shape[1], representations);
    j->pairs = (project_pairs){.name = labels,
                               .count = j->z.shape[0],
                               .width = (int)columns,
                               .shard = SHARD,
                               .label = j->label,
                               .read = read_z,
                               .from = j};
    return FR_OK;
}

/* ---- directions, and how well they separate pairs ---- */

static fr_status find_directions(project_job *j, int64_t seed, const fr_context *context,
                                 fr_error *err) {
    for (int what = FR_REMOVE_MEMBERSHIP; what < FR_REMOVALS; what++) {
        fr_error inner = {0};
        TRY(ALLOCATE(j->a[what], j->pairs.width, err));
        TRY(ALLOCATE(j->along[what], j->pairs.count, err));
        TRY(project_find(&j->pairs, what, seed, context, j->a[what], err));
        fr_status status = project_square(j->a[what], j->pairs.width, &j->square[what], &inner);
        if (status)
            return fail(err, status, "%s, %s: %s", j->z_path, fr_removal_names[what],
                        inner.message);
    }
    return FR_OK;
}

static double dot(const double *x, const double *y, int width) {
    double sum = 0;
    for (int c = 0; c < width; c++) sum += x[c] * y[c];
    return sum;
}

static fr_status measure_shard(void *job, int64_t shard, int worker, fr_error *err) {
    project_job *j = job;
    int width = j->pairs.width;
    int64_t first = shard * SHARD, count = j->pairs.count - first;
    if (count > SHARD) count = SHARD;
    double *z = j->scratch + (size_t)worker * SHARD * (size_t)width;
    TRY(read_z(j, first, count, worker, z, err));
    for (int64_t k = 0; k < count; k++)
        for (int what = FR_REMOVE_MEMBERSHIP; what < FR_REMOVALS; what++)
            j->along[what][first + k] = dot(j->a[what], z + k * width, width);
    return FR_OK;
}

typedef struct labelled {
    double value;
    uint8_t label;
} labelled;

static int by_value(const void *a, const void *b) {
    double x = ((const labelled *)a)->value, y = ((const labelled *)b)->value;
    return (x > y) - (x < y);
}

/* Of value[k] - factor * other[k]: the Mann-Whitney statistic by average ranks. */
static double auc(const project_job *j, const double *value, double factor, const double *other,
                  labelled *order /* [pairs] */) {
    int64_t n = j->pairs.count, met = 0;
    double ranks = 0; /* of the pairs that have met, from 1 */
    for (int64_t k = 0; k < n; k++)
        order[k] = (labelled){value[k] - factor * other[k], j->label[k]};
    qsort(order, (size_t)n, sizeof *order, by_value);
    for (int64_t from = 0, to; from < n; from = to) {
        int64_t here = 0;
        for (to = from; to < n && order[to].value == order[from].value; to++)
            here += order[to].label;
        ranks += (double)here * (double)(from + 1 + to) / 2;
        met += here;
    }
    return (ranks - (double)met * (double)(met + 1) / 2) / ((double)met * (double)(n - met));
}

static fr_status measure(project_job *j, const fr_context *context, fr_projection *out,
                         fr_error *err) {
    int width = j->pairs.width;
    fr_context team = context_team(context, 0);
    size_t scratch = (size_t)team.threads * SHARD * (size_t)width;
    labelled *order;
    TRY(ALLOCATE(j->scratch, scratch, err));
    shard_stage told = {"separation", j->pairs.count, "pairs"};
    TRY(shards_run(&team, &told, (told.total + SHARD - 1) / SHARD, measure_shard, j, err));
    TRY(ALLOCATE(order, j->pairs.count, err));
    const double *m = j->a[FR_REMOVE_MEMBERSHIP], *along = j->along[FR_REMOVE_MEMBERSHIP];
    out->direction[FR_REMOVE_NOTHING] =
        (fr_direction){NAN, NAN, NAN, auc(j, along, 0, along, order)};
    for (int what = FR_REMOVE_MEMBERSHIP; what < FR_REMOVALS; what++) {
        double shared = dot(m, j->a[what], width);
        out->direction[what] = (fr_direction){
            .length = sqrt(j->square[what]),
            .cosine = shared / sqrt(j->square[what] * j->square[FR_REMOVE_MEMBERSHIP]),
            .auc = auc(j, j->along[what], 0, along, order),
            .membership_auc = auc(j, along, shared / j->square[what], j->along[what], order)};
    }
    free(order);
    return FR_OK;
}

/* ---- writing ---- */

static const char ours[] = " head-membership.npy head-random.npy head-shuffled.npy "
                           "direction-membership.npy direction-random.npy direction-shuffled.npy ";

static fr_status guard(const char *path, fr_error *err) { return directory_only(path, ours, err); }

/* Opens FOLDER/KIND-NAME.npy for floats of `size` bytes. */
static fr_status open_output(npy_writer *w, const char *folder, const char *kind, int what,
                             int size, int64_t width, fr_error *err) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s-%s.npy", kind, fr_removal_names[what]);
    char *path = path_join(folder, name);
    if (!path) return fail_memory(err, 0);
    fr_status status = npy_writer_open(w, path, 'f', size, width, err);
    free(path);
    return status;
}

static fr_status write_direction(const project_job *j, const char *folder, int what,
                                 fr_error *err) {
    npy_writer w = {0};
    fr_status status = open_output(&w, folder, "direction", what, 8, 0, err);
    if (!status) status = npy_writer_put(&w, j->a[what], j->pairs.width, err);
    if (!status) status = npy_writer_commit(&w, err);
    npy_writer_discard(&w);
    return status;
}

static fr_status write_head(const project_job *j, const char *path, const char *folder, int what,
                            double *row /* [width] */, fr_error *err) {
    int width = j->pairs.width, size = (int)j->head.item;
    bool matrix = j->head.dims == 2;
    npy_writer w = {0};
    fr_status status = open_output(&w, folder, "head", what, size, matrix ? width : 0, err);
    for (int64_t r = 0; !status && r < (matrix ? j->head.shape[0] : 1); r++) {
        status = read_rows(&j->head, path, r, 1, width, row, err);
        if (status) break;
        project_row(row, j->a[what], j->square[what], width);
        if (size == 4) { /* narrowed in place, front to back */
            float narrow;
            for (int c = 0; c < width; c++) {
                narrow = (float)row[c];
                memcpy((char *)row + 4 * (size_t)c, &narrow, sizeof narrow);
            }
        }
        status = npy_writer_put(&w, row, matrix ? 1 : width, err);
    }
    if (!status) status = npy_writer_commit(&w, err);
    npy_writer_discard(&w);
    return status;
}

static fr_status write_outputs(const project_job *j, const char *head, const char *folder,
                               fr_error *err) {
    double *row;
    TRY(ALLOCATE(row, j->pairs.width, err));
    fr_status status = FR_OK;
    for (int what = FR_REMOVE_MEMBERSHIP; !status && what < FR_REMOVALS; what++) {
        status = write_direction(j, folder, what, err);
        if (!status) status = write_head(j, head, folder, what, row, err);
    }
    free(row);
    return status;
}

fr_status fr_project_files(const char *representations, const char *labels, const char *head,
                           const char *output, bool force, int64_t seed, const fr_context *context,
                           fr_projection *out, fr_error *err) {
    project_job j = {0};
    staging place = {0};
    NEED(representations, err);
    NEED(labels, err);
    NEED(head, err);
    NEED(output, err);
    NEED(out, err);
    *out = (fr_projection){0};
    fr_status status = open_inputs(&j, representations, labels, head, err);
    if (!status) status = staging_open(&place, output, force, guard, err);
    if (!status) {
        out->pairs = j.pairs.count;
        out->width = j.pairs.width;
        out->rows = j.head.dims == 2 ? j.head.shape[0] : 1;
        for (int64_t k = 0; k < out->pairs; k++) out->met += j.label[k];
        status = find_directions(&j, seed, context, err);
    }
    if (!status) status = measure(&j, context, out, err);
    if (!status) status = write_outputs(&j, head, place.place, err);
    if (!status) status = staging_commit(&place, err);
    staging_discard(&place);
    npy_close(&j.z);
    npy_close(&j.labels);
    npy_close(&j.head);
    free(j.label);
    free(j.scratch);
    for (int what = 0; what < FR_REMOVALS; what++) {
        free(j.a[what]);
        free(j.along[what]);
    }
    return status;
}
