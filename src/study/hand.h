/* hand.h - units of a study that several processes do (docs/cluster.md).
 *
 * Process 0 has the ledger, decides which unit comes next and stores what came of it; nobody else
 * opens the database, which may lie on a disk that only process 0 should lock. With a unit goes a
 * copy of the ledger, in memory: what the unit needs of units before it is read there. Files of
 * units lie in the study's directory, which all processes see.
 *
 * Process 0 does units, too, in a thread of its own, so that nobody waits for it: the thread has
 * the study opened once more, gets what another process would get, and talks to nobody.
 */
#ifndef FR_STUDY_HAND_H
#define FR_STUDY_HAND_H

#include "study/study.h"

typedef struct hand hand;
typedef struct own_hand own_hand;

typedef struct hands {
    const fr_context *context;
    int count; /* processes, this one included; 1 = nothing is given to anybody */
    int busy;
    hand *of;      /* [count] */
    own_hand *own; /* by which this process does units */
} hands;

/* What came of a unit. */
typedef struct hand_result {
    const plan_unit *unit;
    char inputs[65];
    fr_error error; /* its code is 0 if all went well */
    double seconds;
    unit_record record;
} hand_result;

/* ---- at process 0 ---- */

/* To be closed whether it fails or not. */
fr_status hands_open(hands *h, const fr_study *s, const fr_context *context, fr_error *err);
/* Tells all processes that there is nothing more to do, once none is at work. */
fr_status hands_close(hands *h, fr_error *err);
/* Is the unit being done? */
bool hands_have(const hands *h, const plan_unit *unit);
/* A process that waits; -1 = none does. */
int hands_idle(const hands *h);
fr_status hands_give(fr_study *s, hands *h, int to, const plan_unit *unit, const char *inputs,
                     bool again, fr_error *err);
/* Waits until a unit is done, with or without success, and logs what it said. If the caller wants
 * to stop, or with `stop`, the others are told to stop, too. *out is freed by
 * record_free(&out->record). */
fr_status hands_take(fr_study *s, hands *h, bool stop, hand_result *out, fr_error *err);

/* ---- at the others ---- */

/* Does what it is given until there is nothing more. */
fr_status hands_serve(fr_study *s, const fr_context *context, fr_error *err);

#endif
