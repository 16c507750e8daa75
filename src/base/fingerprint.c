/* fingerprint.c - see fingerprint.h. FNV-1a over words of eight bytes, whose upper half is folded
 * down so that every bit of a word counts. Four such hashes take turns, because one multiplication
 * would have to wait for the one before. */
#include "base/fingerprint.h"

#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

uint64_t fingerprint_add(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint64_t lane[4] = {hash ^ 0xcbf29ce484222325u ^ size, 1, 2, 3}, word[4];
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        memcpy(word, at, sizeof word);
        for (int k = 0; k < 4; k++) lane[k] = mix(lane[k], word[k]);
    }
    memset(word, 0, sizeof word);
    if (size) memcpy(word, at, size);
    for (int k = 0; k < 4; k++) lane[0] = mix(mix(lane[0], word[k]), lane[k]);
    return lane[0];
}
