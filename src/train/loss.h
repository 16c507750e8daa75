/* loss.h - the two objectives, on the scores of positives and negatives (MODELS 1.6, 10). */
#ifndef FR_TRAIN_LOSS_H
#define FR_TRAIN_LOSS_H

#include "nn/real.h"

/* The loss of one event with scores `positive` and `negative`, and its derivatives with respect to
 * them. BCE  (softplus(-s+) + softplus(s-)) / 2        BPR  softplus(-(s+ - s-)) */
double loss_event(int objective, real positive, real negative, real *d_positive, real *d_negative);

#endif
