/* html.h - used by every part of a page: escaped text, base64, hashes for its security policy.
 *
 * Names of data sets and scorers come from users, so all foreign text goes through html_put, inside
 * elements and quoted attributes.
 */
#ifndef FR_REPORT_HTML_H
#define FR_REPORT_HTML_H

#include "base/text.h"

/* Text with & < > " ' escaped, for HTML and XML; unprintable characters as in fr_text_printable. */
void html_put(text_buffer *out, const char *text);
void html_base64(text_buffer *out, const void *bytes, size_t size);
/* 'sha256-...' of an inline style or script, as a Content-Security-Policy names it. */
fr_status html_policy_hash(text_buffer *out, const char *text, fr_error *err);

#endif
