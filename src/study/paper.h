/* paper.h - the paper's numbers, where they may stand beside ours.
 *
 * A name proves nothing: a data set is the paper's if its facts are (events in the file, size of
 * the catalog, covered and eligible events), and a number is comparable if it was found under the
 * same settings. Everything the paper states is compared; what it does not state (learning rate,
 * widths) cannot be. A number that is left out leaves its reason, so that a table can say why.
 */
#ifndef FR_STUDY_PAPER_H
#define FR_STUDY_PAPER_H

#include "study/results.h"

/* What a number is about. */
typedef struct paper_ask {
    const char *data;      /* as the study calls it */
    bool diagnostic;       /* found on the diagnostic window, else on the ranking window */
    const char *model[2];  /* trained models it is about; NULL = none */
    const char *objective; /* of these models; NULL = bce */
} paper_ask;

/* May the paper's numbers stand beside ours? If the data set is one of the paper's, by its facts or
 * by name, and they may not, the reason is kept. */
bool paper_fits(results *r, paper_ask ask);
/* The number at published.json's SECTION, data set, and a path of keys that ends with NULL;
 * elements of lists are named by their index, "0". NaN if there is none or it does not fit. */
double paper_number(results *r, paper_ask ask, const char *section, ...) __attribute__((sentinel));
/* Keeps a reason of a table's own. */
void paper_refuse(results *r, const char *data, const char *why);

/* Takes the reasons kept since the last call, as one text in the results' memory; NULL if there is
 * none. */
fr_status paper_reasons(results *r, const char **out, fr_error *err);

#endif
