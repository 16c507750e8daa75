/* hand.h - distributes the units of a study over several processes (docs/cluster.md).
 *
 * Process 0 has the ledger, decides which unit comes next and stores the results. No other process
 * opens the database, because it may be on a disk that only process 0 should lock. Each unit is
 * sent with a copy of the ledger in memory, from which it reads the results of earlier units. The
 * files of units are in the study's directory, which all processes see.
 *
 * Process 0 does units too, in a separate thread, so that the others need not wait for it. The
 * thread opens the study again, gets the same messages as another process, and sends nothing.
 */
#ifndef FR_STUDY_HAND_H
#define FR_STUDY_HAND_H

#include "study/study.h"

typedef struct hand hand;
typedef struct own_hand own_hand;

typedef struct hands {
    const fr_context *context;
    int count; /* processes including this one; 1 = no distribution */
    int busy;
    hand *of;      /* [count] */
    own_hand *own; /* does units in this process */
} hands;

/* The result of a unit. */
typedef struct hand_result {
    const plan_unit *unit;
    char inputs[65];
    fr_error error; /* code 0 = success */
    double seconds;
    unit_record record;
} hand_result;

/* ---- at process 0 ---- */

/* Close it even on failure. */
fr_status hands_open(hands *h, const fr_study *s, const fr_context *context, fr_error *err);
/* Tells all processes that there is nothing more to do, once none is at work. */
fr_status hands_close(hands *h, fr_error *err);
/* True if a process works on the unit. */
bool hands_have(const hands *h, const plan_unit *unit);
/* A process that waits; -1 = none does. */
int hands_idle(const hands *h);
fr_status hands_give(fr_study *s, hands *h, int to, const plan_unit *unit, const char *inputs,
                     bool again, fr_error *err);
/* Waits until a unit is done, with or without success, and logs its messages. If the caller wants
 * to stop, or with `stop`, the other processes are told to stop. *out is freed by
 * record_free(&out->record). */
fr_status hands_take(fr_study *s, hands *h, bool stop, hand_result *out, fr_error *err);

/* ---- at the others ---- */

/* Does the assigned units until there are no more. */
fr_status hands_serve(fr_study *s, const fr_context *context, fr_error *err);

#endif
