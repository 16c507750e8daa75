# musl.cmake - toolchain file: builds against the C library musl (preset musl).
#
# Debian's musl-gcc, which is this machine's gcc with the headers and the library of musl; all other libraries are
# static ones from build/musl-root, which tools/musl.sh makes of Debian's sources.
get_filename_component(SOURCE ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(ROOT ${SOURCE}/build/musl-root)
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_FIND_ROOT_PATH ${ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${ROOT}/lib/pkgconfig)
# What cairo needs: a static library does not bring its own along.
set(CMAKE_C_STANDARD_LIBRARIES "-L${ROOT}/lib -lpixman-1 -lpng16 -lz -lm")
