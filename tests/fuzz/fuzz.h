/* fuzz.h - the one function of a fuzz target, named as libFuzzer wants it. It returns 0. */
#ifndef FR_TESTS_FUZZ_H
#define FR_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
