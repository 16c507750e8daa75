#!/bin/sh
# install.sh - an outside project uses an installed fullrank: by find_package and by pkg-config, shared and static. Its
# functions have the names of internal functions of the library, and must not clash. Prints TAP.
#
# usage: FULLRANK_SOURCE=REPOSITORY install.sh path/to/fullrank
# shellcheck disable=SC2154 # tap.sh sets scratch, stdout and stderr
set -u
. "$FULLRANK_SOURCE/tests/tap.sh"
fullrank=${1:?usage: install.sh path/to/fullrank}
case $fullrank in /*) ;; *) fullrank=$PWD/$fullrank ;; esac
build=$(dirname "$fullrank")
cd "$scratch" || exit 1

runs "an installation" 0 cmake --install "$build" --prefix "$scratch/usr"
library=$(dirname "$(find "$scratch/usr" -name fullrank.pc)")/..
export PKG_CONFIG_PATH="$library/pkgconfig"
flags=$(sed -n 's/^FULLRANK_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
flags="-Wall -Wextra -Werror ${flags:+-fsanitize=$flags}"

mkdir outside
cat >outside/main.c <<'END'
#include <fullrank.h>

#include <stdio.h>
#include <string.h>

int clash(void);

int main(void) {
    const char *name = "mrr";
    fr_metric_value mrr;
    fr_error err = {0};
    fr_record record = {.covered = 1, .n = 10, .above = 1, .avail_n = -1};
    if (strcmp(fr_version_get().version, FULLRANK_VERSION) != 0) return 2;
    if (fr_metrics_compute(&record, 1, FR_OOV_EXCLUDE, &name, 1, &mrr, &err)) return 3;
    printf("%d.%d.%d: MRR %g, clash %d\n", FULLRANK_VERSION_MAJOR, FULLRANK_VERSION_MINOR,
           FULLRANK_VERSION_PATCH, mrr.value, clash());
    return 0;
}
END
# Functions whose names the library also uses.
cat >outside/clash.c <<'END'
int fail(void);
int fail(void) { return 1; }
int harmonic(void);
int harmonic(void) { return 2; }
int check_records(void);
int check_records(void) { return 4; }
int clash(void);
int clash(void) { return fail() + harmonic() + check_records(); }
END
cat >outside/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES C)
find_package(fullrank ${WANTED} REQUIRED)
add_executable(shared main.c clash.c)
target_link_libraries(shared PRIVATE fullrank::fullrank)
if(TARGET fullrank::static)
  add_executable(static main.c clash.c)
  target_link_libraries(static PRIVATE fullrank::static)
endif()
END
outside() { cmake -S outside -B "$1" -DCMAKE_PREFIX_PATH="$scratch/usr" "-DWANTED=$2" "-DCMAKE_C_FLAGS=$flags"; }
version=$("$fullrank" version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
expected="$version: MRR 0.5, clash 7"
runs "find_package" 0 outside out "$version"
runs "and a build" 0 cmake --build out
runs "the shared library" 0 out/shared
is "answers" "$stdout" "$expected"
outside refused 99 >/dev/null 2>&1
is "find_package of a later version" $? 1
runs "pkg-config" 0 pkg-config --cflags --libs fullrank
# shellcheck disable=SC2086 # flags are words
runs "and a compiler" 0 cc $flags outside/main.c outside/clash.c $stdout "-Wl,-rpath,$library" -o by-pkg-config
runs "the program" 0 ./by-pkg-config
is "answers, too" "$stdout" "$expected"
if [ -e "$library/libfullrank.a" ]; then
    runs "the static library" 0 out/static
    is "answers without meeting the program's names" "$stdout" "$expected"
    is "and needs no other of ours" "$(ldd out/static | grep -c fullrank)" 0
    needs=$(pkg-config --variable=static_requires fullrank)
    # shellcheck disable=SC2046,SC2086 # flags are words
    runs "pkg-config, static" 0 cc $flags outside/main.c outside/clash.c $(pkg-config --cflags fullrank) \
        "$library/libfullrank.a" $(pkg-config --libs $needs) -lm -lpthread -ldl -o static-by-pkg-config
    runs "the static program" 0 ./static-by-pkg-config
    is "answers as well" "$stdout" "$expected"
else
    skip "the static library" "a build with sanitizers has none"
fi

# The header and CMake have the same version.
mkdir -p other/include
cp "$FULLRANK_SOURCE/CMakeLists.txt" other
sed 's/\(#define FULLRANK_VERSION_PATCH *\).*/\177/' "$FULLRANK_SOURCE/include/fullrank.h" >other/include/fullrank.h
runs "a header of another version" 1 cmake -S other -B other/build
has "is refused" "$stderr" "CMakeLists.txt of $version"
finish
