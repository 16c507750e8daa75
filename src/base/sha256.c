/* sha256.c - see sha256.h. */
#include "base/sha256.h"

#include <openssl/evp.h>

fr_status sha256_start(sha256 *h, fr_error *err) {
    h->state = EVP_MD_CTX_new();
    if (h->state && EVP_DigestInit_ex(h->state, EVP_sha256(), NULL)) return FR_OK;
    EVP_MD_CTX_free(h->state);
    h->state = NULL;
    return fail(err, FR_ENOMEM, "libcrypto cannot compute SHA-256");
}

void sha256_add(sha256 *h, const void *bytes, size_t size) {
    if (size) (void)EVP_DigestUpdate(h->state, bytes, size);
}

void sha256_end(sha256 *h, char out[65]) {
    if (h->state && out) {
        static const char hex[] = "0123456789abcdef";
        unsigned char digest[EVP_MAX_MD_SIZE] = {0};
        (void)EVP_DigestFinal_ex(h->state, digest, NULL);
        for (int i = 0; i < 32; i++) {
            out[2 * i] = hex[digest[i] >> 4];
            out[2 * i + 1] = hex[digest[i] & 15];
        }
        out[64] = 0;
    }
    EVP_MD_CTX_free(h->state);
    h->state = NULL;
}
