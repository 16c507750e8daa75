/* turned.c - see turned.h. */
#include "nn/turned.h"

#include "nn/gemm.h"

/* Columns of the panel that begins with column j. */
static int panel_width(const turned *w, int j) {
    return w->out - j < TURNED_PANEL ? w->out - j : TURNED_PANEL;
}

fr_status turned_take(arena *memory, int in, int out, turned *w, fr_error *err) {
    *w = (turned){.in = in, .out = out};
    return TAKE(memory, w->at, (size_t)in * (size_t)out, err);
}

real *turned_at(const turned *w, int in, int out) {
    int j = out - out % TURNED_PANEL;
    return w->at + (size_t)w->in * (size_t)j + (size_t)(in * panel_width(w, j) + out - j);
}

fr_status turned_make(arena *memory, int in, int out, const real *weight, int ld, turned *w,
                      fr_error *err) {
    TRY(turned_take(memory, in, out, w, err));
    for (int o = 0; o < out; o++)
        for (int k = 0; k < in; k++)
            *turned_at(w, k, o) = weight[(size_t)o * (size_t)ld + (size_t)k];
    return FR_OK;
}

void turned_product(const turned *w, int rows, const real *x, int ldx, real *y, int ldy,
                    bool accumulate) {
    for (int j = 0; j < w->out; j += TURNED_PANEL) {
        int width = panel_width(w, j);
        const real *panel = w->at + (size_t)w->in * (size_t)j;
        if (accumulate || !w->bias)
            gemm_nn(rows, width, w->in, x, ldx, panel, width, y + j, ldy, accumulate);
        else
            gemm_nn_from(rows, width, w->in, x, ldx, panel, width, w->bias + j, y + j, ldy);
    }
}
