/* fuzz_catalog.c - any bytes as a file of destination ids, text or .npy: refused with a one-line
 * reason, or ids that ascend and are not negative; then as the catalog of a window. @@a is the data
 * of a .npy, @@A the file itself. */
#include "parts.h"

#include "data/catalog.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char path[FUZZ_PATH];
    fr_error err = {0};
    fuzz_part rest = {.at = bytes, .size = size}, p;
    const fr_window *w = fuzz_window();
    if (!fuzz_next(&rest, &p)) return 0;
    if (p.kind == 'a')
        fuzz_write_npy("catalog", "<i8", 8, 0, p.at, p.size);
    else
        fuzz_write("catalog", p.at, p.size);
    id_list ids = {0};
    fr_status status = catalog_read(fuzz_path(path, "catalog"), &ids, &err);
    fuzz_reason(status, &err);
    if (!status && (!ids.count || ids.at[0] < 0)) abort();
    for (size_t k = 1; k < ids.count; k++)
        if (ids.at[k] <= ids.at[k - 1]) abort();
    free(ids.at);
    fr_protocol protocol = w->protocol;
    fr_window *other = NULL;
    protocol.catalog = path;
    status = fr_window_open(w->stream, &protocol, &fuzz_context, &other, &err);
    fuzz_reason(status, &err);
    fr_window_close(other);
    return 0;
}
