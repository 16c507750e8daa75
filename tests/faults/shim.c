/* shim.c - makes calls of a program fail: loaded before the C library by LD_PRELOAD.
 *
 * The calls of one kind are counted from the start of main, and one of them fails, or it and all
 * that follow. tests/faults/faults.py runs commands under it and judges what they do.
 *
 *   FAULT_KIND   memory (malloc and its relatives), crypto (the same for calls by libcrypto, which
 *                allocates thousands of times at its start and crashes at some failures), thread
 *                (pthread_create) or file (below)
 *   FAULT_AT     the number of the call that fails, from 1; 0 = none, only count
 *   FAULT_ALL    set: all that follow fail, too
 *   FAULT_ERROR  file: the errno as a name (EIO, ENOSPC, EMFILE, EINTR), or short: a read or write
 *                transfers half of the bytes. With FAULT_ALL only calls fail that can fail
 *                in this way.
 *   FAULT_LOG    a file: "calls N" at the end; file: each call with its number, before that
 *   FAULT_TRACE  set: the log also has the stack of the first call that fails
 *   FAULT_SERVER "IN OUT", two file descriptors. The program is loaded once and does its main in a
 *                child for every line of "kind, at, all, error, log, folder, stdout, stderr",
 *                separated by tabs; the answer is a line with the status that wait gives.
 *
 * Only files below the working directory count. Calls that stdio makes inside the C library cannot
 * be reached from here. fontconfig crashes when memory is short, so its calls and those of
 * libraries it loads never fail. Other calls are passed on to the next library, so sanitizers work
 * under this, too. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum kind { NONE, MEMORY, CRYPTO, THREAD, FILES };

static enum kind kind;
static bool all, trace, shorter;
static long at;
static int error;
static _Atomic bool active;
static _Atomic long calls;
static int log_fd = -1;
static char here[4096];         /* the working directory */
static _Atomic bool ours[4096]; /* file descriptors whose calls count */

/* The next function of this name after ours. */
#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (!next) next = (__typeof__(name) *)(uintptr_t)dlsym(RTLD_NEXT, #name)

static void note(const char *text, size_t size) {
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) next = (ssize_t(*)(int, const void *, size_t))(uintptr_t)dlsym(RTLD_NEXT, "write");
    if (log_fd >= 0) (void)!next(log_fd, text, size);
}

static void note_trace(void) {
    void *frame[24];
    active = false;
    backtrace_symbols_fd(frame, backtrace(frame, 24), log_fd);
    active = true;
}

/* Counts a call of kind `of`; true = it must fail. */
static bool hit(enum kind of) {
    if (!active || kind != of) return false;
    long number = atomic_fetch_add(&calls, 1) + 1;
    bool now = at && (all ? number >= at : number == at);
    if (now && trace && number == at) note_trace();
    return now;
}

/* ---- who calls ---- */

enum { C_LIBRARY = -1, REGIONS = 256, FRAMES = 12, LIMIT = 60 /* seconds */ };

static struct region {
    uintptr_t from, to;
    int kind; /* of its allocations; NONE = they never fail */
} region[REGIONS];
static int regions;

/* The first of these names in the path of a library decides its kind. */
static int kind_of(const char *path) {
    static const struct {
        const char *part;
        int kind;
    } known[] = {{"/libc.so", C_LIBRARY}, {"shim", C_LIBRARY},     {"libasan", C_LIBRARY},
                 {"libcrypto", CRYPTO},   {"libfullrank", MEMORY}, {"libjansson", MEMORY},
                 {"libsqlite3", MEMORY},  {"libz.so", MEMORY},     {"libcairo", MEMORY}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(path, known[i].part)) return known[i].kind;
    return *path ? NONE : MEMORY; /* "" is the program itself */
}

static int add_regions(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < object->dlpi_phnum && regions < REGIONS; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        uintptr_t from = object->dlpi_addr + part->p_vaddr;
        region[regions++] = (struct region){from, from + part->p_memsz, kind_of(object->dlpi_name)};
    }
    return 0;
}

static int kind_at(const void *address) {
    for (int i = 0; i < regions; i++)
        if ((uintptr_t)address >= region[i].from && (uintptr_t)address < region[i].to)
            return region[i].kind;
    return NONE;
}

/* For strdup, asprintf and other functions of the C library, their caller counts. */
static bool memory_hit(const void *caller) {
    if (!active || (kind != MEMORY && kind != CRYPTO)) return false;
    int asks = kind_at(caller);
    if (asks == C_LIBRARY) {
        void *frame[FRAMES];
        int count = backtrace(frame, FRAMES);
        for (int i = 1; i < count && asks == C_LIBRARY; i++) asks = kind_at(frame[i]);
    }
    return asks == (int)kind && hit(kind);
}

/* ---- from the start of main to its end ---- */

static int (*program)(int, char **, char **);

static void finish(void) {
    active = false;
    char line[64];
    note(line, (size_t)snprintf(line, sizeof line, "calls %ld\n", (long)calls));
}

static void set_up(const char *const value[5]) {
    static const struct {
        const char *name;
        int number;
    } errors[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE}, {"EINTR", EINTR}};
    kind = *value[0] == 'm'   ? MEMORY
           : *value[0] == 'c' ? CRYPTO
           : *value[0] == 't' ? THREAD
           : *value[0] == 'f' ? FILES
                              : NONE;
    at = atol(value[1]);
    all = *value[2];
    shorter = !strcmp(value[3], "short");
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(value[3], errors[i].name)) error = errors[i].number;
    if (*value[4])
        log_fd = open(value[4], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    trace = getenv("FAULT_TRACE");
    if (!getcwd(here, sizeof here)) _exit(125);
    void *frame[FRAMES];
    (void)backtrace(frame, FRAMES); /* loads a library the first time */
    (void)dl_iterate_phdr(add_regions, NULL);
    (void)atexit(finish);
    active = kind != NONE;
}

/* The next line of `fd` cut at its tabs; false at the end. */
static bool next_line(int fd, char *line, size_t size, char *value[8]) {
    size_t used = 0;
    while (used + 1 < size && read(fd, line + used, 1) == 1 && line[used] != '\n') used++;
    if (line[used] != '\n') return false;
    line[used] = 0;
    for (int i = 0; i < 8; i++) value[i] = strsep(&line, "\t");
    return value[7];
}

/* In a child: changes to the folder and sends its output to the files of a request. */
static void enter(char *const value[8]) {
    for (int i = 0; i < 2; i++) {
        int fd = open(value[6 + i], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || dup2(fd, 1 + i) < 0 || close(fd)) _exit(125);
    }
    if (chdir(value[5])) _exit(125);
    alarm(LIMIT);
}

/* Returns in children only. */
static void serve(const char *descriptors) {
    int in = -1, out = -1;
    if (sscanf(descriptors, "%d %d", &in, &out) != 2) _exit(125);
    static char line[16384];
    char *value[8];
    while (next_line(in, line, sizeof line, value)) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            close(in);
            close(out);
            enter(value);
            set_up((const char *const *)value);
            return;
        }
        if (child < 0 || waitpid(child, &status, 0) < 0) _exit(125);
        (void)dprintf(out, "%d\n", status);
    }
    _exit(0);
}

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int begin(int count, char **arguments, char **environment) {
    unsetenv("LD_PRELOAD");
    const char *server = getenv("FAULT_SERVER");
    if (server)
        serve(server);
    else
        set_up((const char *const[]){setting("FAULT_KIND"), setting("FAULT_AT"),
                                     setting("FAULT_ALL"), setting("FAULT_ERROR"),
                                     setting("FAULT_LOG")});
    return program(count, arguments, environment);
}

EXPORT int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void),
                             void (*)(void), void (*)(void), void *);
int __libc_start_main(int (*function)(int, char **, char **), int count, char **arguments,
                      void (*init)(void), void (*fini)(void), void (*loader)(void), void *stack) {
    NEXT(__libc_start_main);
    program = function;
    return next(begin, count, arguments, init, fini, loader, stack);
}

/* ---- memory ---- */

#define MEMORY_CALL(name, parameters, values)                                                      \
    EXPORT void *name parameters {                                                                 \
        NEXT(name);                                                                                \
        if (memory_hit(__builtin_return_address(0))) {                                             \
            errno = ENOMEM;                                                                        \
            return NULL;                                                                           \
        }                                                                                          \
        return next values;                                                                        \
    }
MEMORY_CALL(malloc, (size_t size), (size))
MEMORY_CALL(realloc, (void *old, size_t size), (old, size))
MEMORY_CALL(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
MEMORY_CALL(memalign, (size_t alignment, size_t size), (alignment, size))

/* dlsym may ask for zeroed memory while it looks for calloc. */
EXPORT void *calloc(size_t count, size_t size) {
    static _Alignas(64) char early[8192];
    static size_t used;
    static bool asking;
    static void *(*next)(size_t, size_t);
    if (!next && asking) {
        void *block = early + used;
        used += (count * size + 63) & ~(size_t)63;
        return used <= sizeof early ? block : NULL;
    }
    if (!next) {
        asking = true;
        next = (void *(*)(size_t, size_t))(uintptr_t)dlsym(RTLD_NEXT, "calloc");
        asking = false;
    }
    if (memory_hit(__builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return next(count, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size) {
    NEXT(posix_memalign);
    return memory_hit(__builtin_return_address(0)) ? ENOMEM : next(out, alignment, size);
}

EXPORT int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument) {
    NEXT(pthread_create);
    return hit(THREAD) ? EAGAIN : next(out, attributes, run, argument);
}

/* ---- files ---- */

static bool elsewhere(const char *path) {
    return *path == '/' && strncmp(path, here, strlen(here)) != 0;
}

static bool our_fd(int fd) { return fd >= 0 && fd < 4096 && ours[fd]; }

static void own(int fd, bool value) {
    if (fd >= 0 && fd < 4096) ours[fd] = value;
}

enum ways { SIMPLE = 0, SPACE = 1, OPENS = 2, SLOW = 4, PARTS = 8 };

/* Counts a call that may fail in these ways besides EIO; true = it must fail, and errno is set. */
static bool file_hit(const char *name, const char *path, int fd, int ways) {
    if (!active || kind != FILES || (path ? elsewhere(path) : !our_fd(fd))) return false;
    bool fits = shorter           ? ways & PARTS
                : error == ENOSPC ? ways & SPACE
                : error == EMFILE ? ways & OPENS
                : error == EINTR  ? ways & SLOW
                                  : true;
    if (at == 0) {
        char line[4200];
        int size = snprintf(line, sizeof line, "%ld %s %d %s\n", (long)calls + 1, name, ways,
                            path ? path : "");
        note(line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
    }
    bool now = hit(FILES) && fits;
    if (now) errno = error;
    return now;
}

static mode_t mode_of(int flags, va_list values) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(values, mode_t) : 0;
}

static int opened(int fd, const char *path) {
    own(fd, !elsewhere(path));
    return fd;
}

#define OPEN_CALL(name, parameters, values)                                                        \
    EXPORT int name parameters {                                                                   \
        NEXT(name);                                                                                \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        mode_t mode = mode_of(flags, list);                                                        \
        va_end(list);                                                                              \
        if (file_hit(#name, path, -1, OPENS | SLOW | (flags & O_CREAT ? SPACE : 0))) return -1;    \
        return opened(next values, path);                                                          \
    }
OPEN_CALL(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN_CALL(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN_CALL(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPEN_CALL(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

#define MAKE_CALL(name, parameters, values)                                                        \
    EXPORT int name parameters {                                                                   \
        NEXT(name);                                                                                \
        return file_hit(#name, path, -1, OPENS | SPACE) ? -1 : opened(next values, path);          \
    }
MAKE_CALL(mkstemp, (char *path), (path))
MAKE_CALL(mkstemp64, (char *path), (path))
MAKE_CALL(mkostemp, (char *path, int flags), (path, flags))
MAKE_CALL(mkostemp64, (char *path, int flags), (path, flags))
MAKE_CALL(mkostemps, (char *path, int suffix, int flags), (path, suffix, flags))

/* Half of a read or write, at least one byte. */
static size_t part(size_t size) { return size > 1 ? size / 2 : size; }

#define BYTES_CALL(name, ways, parameters, values)                                                 \
    EXPORT ssize_t name parameters {                                                               \
        NEXT(name);                                                                                \
        if (file_hit(#name, NULL, fd, (ways) | SLOW | PARTS)) {                                    \
            if (!shorter) return -1;                                                               \
            size = part(size);                                                                     \
        }                                                                                          \
        return next values;                                                                        \
    }
BYTES_CALL(read, 0, (int fd, void *bytes, size_t size), (fd, bytes, size))
BYTES_CALL(pread, 0, (int fd, void *bytes, size_t size, off_t place), (fd, bytes, size, place))
BYTES_CALL(pread64, 0, (int fd, void *bytes, size_t size, off64_t place), (fd, bytes, size, place))
BYTES_CALL(write, SPACE, (int fd, const void *bytes, size_t size), (fd, bytes, size))
BYTES_CALL(pwrite, SPACE, (int fd, const void *bytes, size_t size, off_t place),
           (fd, bytes, size, place))
BYTES_CALL(pwrite64, SPACE, (int fd, const void *bytes, size_t size, off64_t place),
           (fd, bytes, size, place))

/* Calls that return -1 when they fail. */
#define FD_CALL(name, ways, parameters, values)                                                    \
    EXPORT int name parameters {                                                                   \
        NEXT(name);                                                                                \
        return file_hit(#name, NULL, fd, ways) ? -1 : next values;                                 \
    }
FD_CALL(fsync, SPACE | SLOW, (int fd), (fd))
FD_CALL(fdatasync, SPACE | SLOW, (int fd), (fd))
FD_CALL(ftruncate, SPACE | SLOW, (int fd, off_t size), (fd, size))
FD_CALL(ftruncate64, SPACE | SLOW, (int fd, off64_t size), (fd, size))
FD_CALL(fstat, SIMPLE, (int fd, struct stat *out), (fd, out))
FD_CALL(fstat64, SIMPLE, (int fd, struct stat64 *out), (fd, out))

#define PATH_CALL(name, ways, parameters, values)                                                  \
    EXPORT int name parameters {                                                                   \
        NEXT(name);                                                                                \
        return file_hit(#name, path, -1, ways) ? -1 : next values;                                 \
    }
PATH_CALL(rename, SPACE, (const char *from, const char *path), (from, path))
PATH_CALL(renameat, SPACE, (int a, const char *from, int b, const char *path), (a, from, b, path))
PATH_CALL(renameat2, SPACE, (int a, const char *from, int b, const char *path, unsigned flags),
          (a, from, b, path, flags))
PATH_CALL(link, SPACE, (const char *from, const char *path), (from, path))
PATH_CALL(linkat, SPACE, (int a, const char *from, int b, const char *path, int flags),
          (a, from, b, path, flags))
PATH_CALL(mkdir, SPACE, (const char *path, mode_t mode), (path, mode))
PATH_CALL(mkdirat, SPACE, (int folder, const char *path, mode_t mode), (folder, path, mode))
PATH_CALL(unlink, SIMPLE, (const char *path), (path))
PATH_CALL(unlinkat, SIMPLE, (int folder, const char *path, int flags), (folder, path, flags))
PATH_CALL(rmdir, SIMPLE, (const char *path), (path))
PATH_CALL(stat, SIMPLE, (const char *path, struct stat *out), (path, out))
PATH_CALL(stat64, SIMPLE, (const char *path, struct stat64 *out), (path, out))
PATH_CALL(lstat, SIMPLE, (const char *path, struct stat *out), (path, out))
PATH_CALL(lstat64, SIMPLE, (const char *path, struct stat64 *out), (path, out))
PATH_CALL(fstatat, SIMPLE, (int folder, const char *path, struct stat *out, int flags),
          (folder, path, out, flags))
PATH_CALL(access, SIMPLE, (const char *path, int mode), (path, mode))

EXPORT char *mkdtemp(char *path) {
    NEXT(mkdtemp);
    return file_hit("mkdtemp", path, -1, SPACE) ? NULL : next(path);
}

EXPORT char *realpath(const char *path, char *out) {
    NEXT(realpath);
    return file_hit("realpath", path, -1, SIMPLE) ? NULL : next(path, out);
}

EXPORT DIR *opendir(const char *path) {
    NEXT(opendir);
    DIR *folder = file_hit("opendir", path, -1, OPENS) ? NULL : next(path);
    if (folder) (void)opened(dirfd(folder), path);
    return folder;
}

EXPORT DIR *fdopendir(int fd) {
    NEXT(fdopendir);
    return file_hit("fdopendir", NULL, fd, SIMPLE) ? NULL : next(fd);
}

EXPORT ssize_t getdents64(int fd, void *bytes, size_t size) {
    NEXT(getdents64);
    return file_hit("getdents64", NULL, fd, SIMPLE) ? -1 : next(fd, bytes, size);
}

EXPORT struct dirent *readdir(DIR *folder) {
    NEXT(readdir);
    return file_hit("readdir", NULL, dirfd(folder), SIMPLE) ? NULL : next(folder);
}

/* A descriptor is gone even if close fails. */
EXPORT int close(int fd) {
    NEXT(close);
    bool now = file_hit("close", NULL, fd, SPACE | SLOW);
    int number = errno;
    own(fd, false);
    int result = next(fd);
    if (now) errno = number;
    return now ? -1 : result;
}

EXPORT void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t place) {
    NEXT(mmap);
    return fd >= 0 && file_hit("mmap", NULL, fd, SIMPLE)
               ? MAP_FAILED
               : next(where, size, protection, flags, fd, place);
}

EXPORT void *mmap64(void *where, size_t size, int protection, int flags, int fd, off64_t place) {
    NEXT(mmap64);
    return fd >= 0 && file_hit("mmap64", NULL, fd, SIMPLE)
               ? MAP_FAILED
               : next(where, size, protection, flags, fd, place);
}
