/* factors.h - a scorer whose scores are products: score(event, candidate) = u . v + bias. */
#ifndef FR_RANK_FACTORS_H
#define FR_RANK_FACTORS_H

#include "rank/scorer.h"

/* "U.npy,V.npy[,BIAS.npy]", float32, mapped, as fr_factors has them. */
fr_status factors_open(const char *files, const fr_window *w, fr_scorer_definition *out,
                       fr_error *err);
/* Its pieces, if the definition is that of factors. */
scorer_pieces *factors_pieces(const fr_scorer_definition *is);

#endif
