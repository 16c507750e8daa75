/* kill_shim.c - ends the program with SIGKILL at its n-th file operation; preloaded by kill.py.
 *
 *   KILL_AT=n          before the n-th of open, mkdir, write, fsync, rename, unlink, close, ...
 *   KILL_COUNT=FILE    instead writes the number of operations to FILE at exit
 *
 * Incomplete states exist only between file operations, and random moments rarely hit them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long count, last;

__attribute__((constructor)) static void start(void) {
    const char *at = getenv("KILL_AT");
    last = at ? atol(at) : 0;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("KILL_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    (void)fprintf(file, "%ld\n", (long)count);
    (void)fclose(file);
}

static void operation(void) {
    if (++count == last) (void)raise(SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(type, name, parameters, arguments)                                                    \
    type name parameters {                                                                         \
        static __typeof__(&name) real;                                                             \
        if (!real) real = REAL(name);                                                              \
        operation();                                                                               \
        return real arguments;                                                                     \
    }

WRAP(ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size))
WRAP(ssize_t, pwrite, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at))
WRAP(int, fsync, (int file), (file))
WRAP(int, fdatasync, (int file), (file))
WRAP(int, ftruncate, (int file, off_t size), (file, size))
WRAP(int, close, (int file), (file))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned how),
     (a, from, b, to, how))
WRAP(int, linkat, (int a, const char *from, int b, const char *to, int how), (a, from, b, to, how))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, unlinkat, (int folder, const char *path, int how), (folder, path, how))
WRAP(int, rmdir, (const char *path), (path))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(char *, mkdtemp, (char *path), (path))
WRAP(int, mkostemp, (char *path, int how), (path, how))

/* open and openat have an argument that is there only for new files. */
#define MODE                                                                                       \
    va_list more;                                                                                  \
    va_start(more, how);                                                                           \
    mode_t mode = how & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                          \
    va_end(more);                                                                                  \
    operation();

int open(const char *path, int how, ...) { MODE return REAL(open)(path, how, mode); }

int openat(int folder, const char *path, int how, ...) {
    MODE return REAL(openat)(folder, path, how, mode);
}
