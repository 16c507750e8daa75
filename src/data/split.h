/* split.h - the parts of a window, and the history of an event (PROTOCOL 1, 2, 14).
 *
 * A window is train | val | test, consecutive. One part is ranked, [from, to). The history
 * of an event is all events below cut(i): i itself in stream order, the first event of the same
 * time in strict order, the first event of its batch in batch order. Histories, memories, baselines
 * and models use only the cut, so they share one definition.
 */
#ifndef FR_DATA_SPLIT_H
#define FR_DATA_SPLIT_H

#include "data/window.h"

/* FR_EUSAGE if `order` or `split` of a protocol is invalid. */
fr_status split_check(const fr_protocol *protocol, fr_error *err);

/* Fills train, val, from and to of a window that has its events and times. */
fr_status split_parts(fr_window *w, fr_error *err);

/* Fills order, batch and cut of a window that has its parts. */
fr_status split_cuts(fr_window *w, fr_error *err);

#endif
