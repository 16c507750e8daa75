/* fuzz_npy.c - any bytes as a .npy file: refused, or an array whose first and last element can be
 * read. Build with `cmake --preset fuzz`, run `build/fuzz/tests/fuzz_npy tests/fuzz/corpus/npy`. */
#include "base/npy.h"
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    npy array;
    fr_error err = {0};
    if (npy_parse(bytes, size, "fuzz.npy", &array, &err)) {
        if (!err.code || !err.message[0]) abort(); /* a failure says why */
        return 0;
    }
    size_t count = 1, item = 0;
    for (int d = 0; d < array.dims; d++) count *= (size_t)array.shape[d];
    for (int f = 0; f < array.fields; f++) {
        if (array.field[f].offset != item) abort(); /* packed */
        item += (size_t)array.field[f].size;
    }
    if (array.fields < 1 || item != array.item) abort();
    if (count) {
        const volatile uint8_t *data = array.data;
        (void)data[0];
        (void)data[count * array.item - 1];
    }
    npy_close(&array);
    return 0;
}
