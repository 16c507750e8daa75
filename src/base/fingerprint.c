/* fingerprint.c - see fingerprint.h. FNV-1a over words of eight bytes, whose upper half is folded
 * down so that every bit of a word counts. */
#include "base/fingerprint.h"

#include <string.h>

uint64_t fingerprint_add(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    hash ^= 0xcbf29ce484222325u ^ size;
    for (size_t k = 0; k < size; k += 8) {
        uint64_t word = 0;
        memcpy(&word, at + k, size - k < 8 ? size - k : 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}
