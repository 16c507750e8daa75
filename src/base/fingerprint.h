/* fingerprint.h - a fast hash that shows whether bytes in memory have changed. */
#ifndef FR_BASE_FINGERPRINT_H
#define FR_BASE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

/* Adds bytes to a fingerprint, which starts at 0; `bytes` may be NULL if there are none. */
uint64_t fingerprint_add(uint64_t hash, const void *bytes, size_t size);

#endif
