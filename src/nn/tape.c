/* tape.c - see tape.h. */
#include "nn/tape.h"

void tape_reset(tape *t) {
    arena_reset(&t->memory);
    t->last = NULL;
    t->status = FR_OK;
}

void tape_free(tape *t) {
    arena_free(&t->memory);
    t->last = NULL;
}

void tape_backward(tape *t) {
    for (tape_node *node = t->last; node && !t->status; node = node->before) node->back(node);
}

void *tape_take(tape *t, size_t count, size_t size) {
    void *out = NULL;
    if (!t->status) t->status = arena_take(&t->memory, count, size, &out, &t->error);
    return t->status ? NULL : out;
}

real *tape_room(tape *t, size_t count) {
    void *out = NULL;
    if (!t->status) t->status = arena_take_raw(&t->memory, count, sizeof(real), &out, &t->error);
    return t->status ? NULL : out;
}

tensor tape_constant(tape *t, int rows, int cols) {
    tensor out = {.rows = rows, .cols = cols, .v = tape_room(t, (size_t)rows * (size_t)cols)};
    return t->status ? (tensor){0} : out;
}

tensor tape_tensor(tape *t, int rows, int cols) {
    tensor out = tape_constant(t, rows, cols);
    if (t->gradient) out.g = tape_take(t, (size_t)rows * (size_t)cols, sizeof(real));
    return t->status ? (tensor){0} : out;
}

void tape_note(tape *t, tape_node *node, void (*back)(tape_node *self)) {
    if (t->status || !t->gradient) return;
    node->before = t->last;
    node->back = back;
    t->last = node;
}

bool tape_fits(tape *t, bool fits, const char *op) {
    if (!t->status && !fits)
        t->status = fail(&t->error, FR_EINPUT, "internal: shapes do not fit in %s", op);
    return !t->status;
}

tensor tape_param(tape *t, int number) {
    const param *p = &t->params->list.at[number];
    return (tensor){.rows = p->rows,
                    .cols = p->cols,
                    .v = t->params->value + p->offset,
                    .g = t->gradient ? t->gradient + p->offset : NULL};
}
