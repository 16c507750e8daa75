/* os.c - see os.h. */
#define _GNU_SOURCE
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#ifdef __linux__
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

#if defined(__linux__) && !defined(FULLRANK_PLAIN_POSIX)
#define LINUX
#endif

int os_cores(void) {
#ifdef LINUX
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
#else
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
#endif
    return cores > 0 ? cores : 1;
}

int os_thread(pthread_t *out, void *(*run)(void *), void *job) {
    enum { LEAST = 2 << 20 };
    pthread_attr_t facts;
    size_t given;
    int wrong = pthread_attr_init(&facts);
    if (wrong) return wrong;
    wrong = pthread_attr_getstacksize(&facts, &given);
    if (!wrong && given < LEAST) wrong = pthread_attr_setstacksize(&facts, LEAST);
    if (!wrong) wrong = pthread_create(out, &facts, run, job);
    (void)pthread_attr_destroy(&facts);
    return wrong;
}

void os_write_back(int fd, int64_t from, int64_t count) {
#if defined(LINUX) && defined(SYNC_FILE_RANGE_WRITE)
    (void)sync_file_range(fd, from, count, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd;
    (void)from;
    (void)count;
#endif
}

int os_exchange(int folder, const char *one, const char *other, const char *spare) {
#if defined(LINUX) && defined(RENAME_EXCHANGE)
    (void)spare;
    return renameat2(folder, one, folder, other, RENAME_EXCHANGE);
#elif defined(LINUX) && defined(SYS_renameat2) /* musl may not have it yet */
    (void)spare;
    return (int)syscall(SYS_renameat2, folder, one, folder, other, 1 << 1);
#else
    if (renameat(folder, other, folder, spare)) return -1;
    if (renameat(folder, one, folder, other)) {
        int why = errno;
        (void)renameat(folder, spare, folder, other);
        errno = why;
        return -1;
    }
    return renameat(folder, spare, folder, one);
#endif
}

/* ---- locks ---- */

#if defined(LINUX) && defined(F_OFD_SETLK)
enum { SET_LOCK = F_OFD_SETLK, GET_LOCK = F_OFD_GETLK };
#else
enum { SET_LOCK = F_SETLK, GET_LOCK = F_GETLK };
#endif

static int at_byte(int fd, int how, short type, int64_t at, short *found) {
    struct flock wish = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
    int status = fcntl(fd, how, &wish);
    if (found) *found = wish.l_type;
    return status;
}

int os_lock(int fd, int64_t at, bool shared) {
    return at_byte(fd, SET_LOCK, shared ? F_RDLCK : F_WRLCK, at, NULL);
}

int os_unlock(int fd, int64_t at) { return at_byte(fd, SET_LOCK, F_UNLCK, at, NULL); }

bool os_locked(int fd, int64_t at) {
    short found = F_UNLCK;
    return !at_byte(fd, GET_LOCK, F_RDLCK, at, &found) && found != F_UNLCK;
}

/* ---- sorting ---- */

#ifdef LINUX
void os_sort(void *elements, size_t count, size_t size,
             int (*compare)(const void *a, const void *b, void *user), void *user) {
    if (count) qsort_r(elements, count, size, compare, user);
}
#else
static void swap(unsigned char *a, unsigned char *b, size_t size) {
    for (; size; size--, a++, b++) {
        unsigned char kept = *a;
        *a = *b;
        *b = kept;
    }
}

/* A heap sort, because qsort_r has another order of arguments on other systems, or is missing. */
void os_sort(void *elements, size_t count, size_t size,
             int (*compare)(const void *a, const void *b, void *user), void *user) {
    unsigned char *base = elements;
    size_t first = count / 2, end = count;
    while (end > 1) {
        if (first > 0) {
            first--; /* one more element joins the heap */
        } else {
            end--; /* the largest moves to the place after the heap */
            swap(base, base + end * size, size);
        }
        for (size_t at = first, child; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end &&
                compare(base + child * size, base + (child + 1) * size, user) < 0)
                child++;
            if (compare(base + at * size, base + child * size, user) >= 0) break;
            swap(base + at * size, base + child * size, size);
        }
    }
}
#endif

/* ---- memory ---- */

void os_forget_peak(void) {
#ifdef LINUX
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return;
    (void)fputs("5", file);
    (void)fclose(file);
#endif
}

int64_t os_peak_memory(void) {
#ifdef LINUX
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && kilobytes < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmHWM:", 6)) kilobytes = strtoll(line + 6, NULL, 10);
    if (file) (void)fclose(file);
    if (kilobytes >= 0) return 1024 * kilobytes;
#endif
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage)) return -1;
#ifdef __APPLE__
    return usage.ru_maxrss; /* in bytes */
#else
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}

/* ---- the rest ---- */

int os_random(void *bytes, size_t count) { return getentropy(bytes, count); }

int64_t os_modified(const struct stat *facts) {
#ifdef __APPLE__
    struct timespec t = facts->st_mtimespec;
#else
    struct timespec t = facts->st_mtim;
#endif
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void take_entry(int folder, const char *name, void (*each)(int folder, const char *name)) {
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) each(folder, name);
}

void os_each_entry(int folder, void (*each)(int folder, const char *name)) {
    int list = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (list < 0) return;
#ifdef LINUX
    _Alignas(struct dirent64) char some[4096];
    for (ssize_t size; (size = getdents64(list, (void *)some, sizeof some)) > 0;)
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const void *)(some + at);
            at += entry->d_reclen;
            take_entry(folder, entry->d_name, each);
        }
    close(list);
#else
    DIR *entries = fdopendir(list);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        take_entry(folder, entry->d_name, each);
    if (entries)
        closedir(entries);
    else
        close(list);
#endif
}

int os_open_unlisted(const char *path) {
#if defined(LINUX) && defined(O_PATH)
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
#elif defined(O_SEARCH)
    return open(path, O_SEARCH | O_DIRECTORY | O_CLOEXEC);
#else
    (void)path;
    errno = EACCES;
    return -1;
#endif
}

#ifdef LINUX
/* True if [at, at + count * each) lies within `size` bytes. */
static bool is_within(uint64_t at, uint64_t count, uint64_t each, size_t size) {
    return at <= size && (!each || count <= (size - at) / each);
}

static const char *check_segments(const char *bytes, size_t size, const ElfW(Ehdr) * head) {
    bool dynamic = false;
    for (int k = 0; k < head->e_phnum; k++) {
        ElfW(Phdr) segment;
        memcpy(&segment, bytes + head->e_phoff + (size_t)k * sizeof segment, sizeof segment);
        dynamic |= segment.p_type == PT_DYNAMIC;
        if (!is_within(segment.p_offset, segment.p_filesz, 1, size))
            return "is cut off: a segment ends beyond the file";
    }
    return dynamic ? NULL : "is no shared object: it has no dynamic section";
}
#endif

const char *os_check_shared_object(const void *bytes, size_t size) {
#ifdef LINUX
    ElfW(Ehdr) head, own;
    const ElfW(Ehdr) *program = (const void *)getauxval(AT_SYSINFO_EHDR); /* made for this CPU */
    if (size < sizeof head || memcmp(bytes, ELFMAG, SELFMAG)) return "is no shared object (ELF)";
    memcpy(&head, bytes, sizeof head);
    if (head.e_type != ET_DYN) return "is an ELF file, but no shared object";
    if (program) memcpy(&own, program, sizeof own);
    if (program &&
        (head.e_machine != own.e_machine || head.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] ||
         head.e_ident[EI_DATA] != own.e_ident[EI_DATA]))
        return "is a shared object for another kind of processor";
    if (head.e_phentsize != sizeof(ElfW(Phdr)) ||
        !is_within(head.e_phoff, head.e_phnum, sizeof(ElfW(Phdr)), size) ||
        !is_within(head.e_shoff, head.e_shnum, head.e_shentsize, size))
        return "is cut off: its tables end beyond the file";
    return check_segments(bytes, size, &head);
#else
    (void)bytes, (void)size;
    return NULL;
#endif
}
