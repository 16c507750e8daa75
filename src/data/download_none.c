/* download_none.c - download.h for a library built without libcurl (FULLRANK_DOWNLOAD=OFF).
 *
 * libcurl needs some thirty libraries, more than everything else together. The Python wheel has to
 * contain its libraries, so it is built without libcurl.
 */
#include "base/memory.h"
#include "data/download.h"

int download_pause;

fr_status download_file(const char *url, const char *path, const fr_context *context,
                        download_result *out, fr_error *err) {
    (void)path, (void)context, (void)out;
    return fail(err, FR_EUSAGE,
                "%s: this library was built without downloads: fetch the file and import it", url);
}
