/* paper.h - the paper's numbers, if they can be compared with ours.
 *
 * A name is not enough: a data set is the paper's if its facts are equal (events in the file, size
 * of the catalog, covered and eligible events), and a number is comparable if the settings are
 * equal. Everything that the paper states is compared; settings that it does not state (learning
 * rate, widths) cannot be. If a number is left out, the reason is kept for the table.
 */
#ifndef FR_STUDY_PAPER_H
#define FR_STUDY_PAPER_H

#include "study/results.h"

/* What a number is about. */
typedef struct paper_ask {
    const char *data;      /* as the study calls it */
    bool diagnostic;       /* on the diagnostic window, otherwise on the ranking window */
    const char *model[2];  /* trained models it is about; NULL = none */
    const char *objective; /* of these models; NULL = bce */
} paper_ask;

/* True if the paper's numbers are comparable. If they are not, but the data set is one of the
 * paper's by facts or by name, the reason is kept. */
bool paper_fits(results *r, paper_ask ask);
/* The number at published.json's SECTION, data set, and a path of keys that ends with NULL;
 * elements of lists are named by their index, "0". NaN if there is none or it does not fit. */
double paper_number(results *r, paper_ask ask, const char *section, ...) __attribute__((sentinel));
/* Keeps a reason that a table gives. */
void paper_refuse(results *r, const char *data, const char *why);

/* Takes the reasons kept since the last call, as one text in the results' memory; NULL if there is
 * none. */
fr_status paper_reasons(results *r, const char **out, fr_error *err);

#endif
