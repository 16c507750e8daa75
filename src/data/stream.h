/* stream.h - an imported set as the rest of the library sees it: mapped columns. */
#ifndef FR_DATA_STREAM_H
#define FR_DATA_STREAM_H

#include "base/npy.h"

/* Lifetime: run. All arrays are mapped and read-only. */
struct fr_stream {
    fr_stream_facts facts;
    char *name;
    char sha256[65]; /* of all columns */
    npy files[6];
    const int32_t *source, *destination;       /* [events] index into the ids */
    const double *time;                        /* [events] non-decreasing */
    const float *feature;                      /* [events, feature_width] or NULL */
    const int64_t *source_id, *destination_id; /* [sources], [destinations] ascending */
};

#endif
