/* html.h - the few things every part of a page needs: escaped text, base64, hashes for its policy.
 *
 * Names of data sets and scorers are a user's own words, so everything that is not ours goes
 * through html_put, inside of elements and of quoted attributes alike.
 */
#ifndef FR_REPORT_HTML_H
#define FR_REPORT_HTML_H

#include "base/text.h"

/* Text with & < > " ' escaped, for HTML and XML; what cannot be shown as fr_text_printable does. */
void html_put(text_buffer *out, const char *text);
void html_base64(text_buffer *out, const void *bytes, size_t size);
/* 'sha256-...' of an inline style or script, as a Content-Security-Policy names it. */
fr_status html_policy_hash(text_buffer *out, const char *text, fr_error *err);

#endif
