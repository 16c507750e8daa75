/* sha256.h - SHA-256 as text, on OpenSSL's libcrypto. */
#ifndef FR_BASE_SHA256_H
#define FR_BASE_SHA256_H

#include "base/status.h"

typedef struct sha256 {
    void *state;
} sha256;

fr_status sha256_start(sha256 *h, fr_error *err);
void sha256_add(sha256 *h, const void *bytes, size_t size);
/* Ends the hash and writes 64 hexadecimal digits and a 0; frees the state. If `out` is NULL,
 * it only drops the unfinished hash. */
void sha256_end(sha256 *h, char out[65]);

#endif
