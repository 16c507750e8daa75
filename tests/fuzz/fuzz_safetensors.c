/* fuzz_safetensors.c - any bytes as a safetensors file: refused with a one-line reason, or tensors
 * that are aligned, readable, found by their names and together as large as the data. Build with
 * `cmake --preset fuzz`, run `build/fuzz/tests/fuzz_safetensors tests/fuzz/corpus/safetensors`.
 *
 * Each input is tried as it is, and with a header length that ends at its last '}': a mutation that
 * makes the header longer or shorter would otherwise hardly ever get past the first check. */
#include "fuzz.h"
#include "nn/safetensors.h"

#include <stdlib.h>
#include <string.h>

static void check(const uint8_t *bytes, size_t size) {
    safetensors file;
    fr_error err = {0};
    if (safetensors_parse(bytes, size, "fuzz", &file, &err)) {
        if (!err.code || !err.message[0] || strpbrk(err.message, "\r\n")) abort();
        return;
    }
    size_t total = 0;
    for (size_t i = 0; i < file.count; i++) {
        const st_tensor *t = &file.tensor[i];
        size_t need = st_dtype_size(t->dtype);
        for (int d = 0; d < t->dims; d++) need *= (size_t)t->shape[d];
        if (need != t->bytes) abort();
        if (t->dtype == ST_F64 && (uintptr_t)t->data % _Alignof(double)) abort();
        if (t->dtype == ST_F32 && (uintptr_t)t->data % _Alignof(float)) abort();
        const volatile uint8_t *data = t->data;
        if (t->bytes) (void)(data[0] + data[t->bytes - 1]);
        const void *again;
        if (safetensors_find(&file, t->name) != t) abort();
        if (safetensors_require(&file, t->name, t->dtype, t->dims, t->shape, &again, &err)) abort();
        if (again != t->data) abort();
        total += t->bytes;
    }
    if (total > size) abort();
    (void)safetensors_metadata(&file, "model");
    safetensors_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    check(bytes, size);
    size_t length = size;
    while (length > 8 && bytes[length - 1] != '}') length--;
    uint8_t *mended = length > 8 ? malloc(size) : NULL;
    if (!mended) return 0;
    memcpy(mended, bytes, size);
    for (int i = 0; i < 8; i++) mended[i] = (uint8_t)((uint64_t)(length - 8) >> 8 * i);
    check(mended, size);
    free(mended);
    return 0;
}
