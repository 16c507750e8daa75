/* html.c - see html.h. */
#include "report/html.h"

#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

void html_put(text_buffer *out, const char *text) {
    text_buffer shown = {0};
    text_put_printable(&shown, text);
    for (const char *at = shown.at; at && *at; at++) {
        switch (*at) {
        case '&': text_put(out, "&amp;"); break;
        case '<': text_put(out, "&lt;"); break;
        case '>': text_put(out, "&gt;"); break;
        case '"': text_put(out, "&quot;"); break;
        case '\'': text_put(out, "&#39;"); break;
        default: text_fill(out, *at, 1);
        }
    }
    out->failed |= shown.failed;
    text_free(&shown);
}

void html_base64(text_buffer *out, const void *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = bytes;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t three = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) |
                         (left > 2 ? b[i + 2] : 0);
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63], digits[three >> 6 & 63],
                        digits[three & 63]};
        if (left < 3) four[3] = '=';
        if (left < 2) four[2] = '=';
        text_put_bytes(out, four, 4);
    }
}

fr_status html_policy_hash(text_buffer *out, const char *text, fr_error *err) {
    sha256 h;
    char hex[65];
    unsigned char digest[32];
    TRY(sha256_start(&h, err));
    sha256_add(&h, text, strlen(text));
    sha256_end(&h, hex);
    for (int i = 0; i < 32; i++) {
        char byte[3] = {hex[2 * i], hex[2 * i + 1], 0};
        digest[i] = (unsigned char)strtoul(byte, NULL, 16);
    }
    text_put(out, "'sha256-");
    html_base64(out, digest, sizeof digest);
    text_put(out, "'");
    return FR_OK;
}
