/* download_none.c - download.h for a library built without libcurl (FULLRANK_DOWNLOAD=OFF).
 *
 * libcurl brings some thirty libraries along, more than all else together: the Python wheel, which
 * has to carry its libraries, goes without.
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
