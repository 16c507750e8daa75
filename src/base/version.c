/* version.c - the version of the library and the features of the CPU. */
#include "commit.h"
#include "fullrank.h"

#include <pthread.h>
#include <string.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static char features[128];

static void find_features(void) {
#if defined(__x86_64__)
    const struct {
        const char *name;
        int have;
    } all[] = {{"sse4.2", __builtin_cpu_supports("sse4.2")},
               {"avx", __builtin_cpu_supports("avx")},
               {"avx2", __builtin_cpu_supports("avx2")},
               {"fma", __builtin_cpu_supports("fma")},
               {"avx512f", __builtin_cpu_supports("avx512f")},
               {"avx512vl", __builtin_cpu_supports("avx512vl")}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].have) continue;
        if (*features) strcat(features, " ");
        strcat(features, all[i].name);
    }
#endif
    if (!*features) strcpy(features, "none of interest");
}

fr_version fr_version_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_features);
    return (fr_version){FULLRANK_VERSION, FULLRANK_COMMIT, COMPILER, features};
}
