# aarch64.cmake - toolchain file: builds for AArch64 Linux on another machine (preset aarch64).
#
# Debian's cross compiler, libraries from build/aarch64-root, which tools/aarch64.sh makes, and
# qemu-user to run what was built.
get_filename_component(SOURCE ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT ${SOURCE}/build/aarch64-root)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Dependencies of libraries are in the same folder; pkg-config must not find this machine's libraries.
add_link_options(LINKER:-rpath-link,${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
add_link_options(LINKER:-rpath-link,${CMAKE_SYSROOT}/lib/aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
