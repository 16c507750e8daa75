/* grid.h - settings of single models: "model-settings" of a document.
 *
 * {"craft": {"lr": [0.001, 0.0003], "dim": [32, 64], "layers": 2}} is four configurations of craft:
 * lists are tried in all combinations, the last one varying fastest.
 */
#ifndef FR_STUDY_GRID_H
#define FR_STUDY_GRID_H

#include "study/plan.h"

enum { GRID_MOST = 256 }; /* configurations of a model */

/* Reads "model-settings" and "select" of a document whose models are known. `where` is for
 * messages. plan_settings checks the names and values of options. */
fr_status grid_read(plan *p, const char *where, fr_error *err);
/* Configurations of a model, at least 1. */
int grid_count(const plan *p, const char *model);
/* Options of a configuration: an object of plain values, NULL = none. */
const json_t *grid_options(const plan *p, const char *model, int number);
/* How it differs from the others: "lr=0.001,dim=32"; "" if it is the only one. */
const char *grid_label(const plan *p, const char *model, int number);

#endif
