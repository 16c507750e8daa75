/* os.h - differences between systems. Everything else is POSIX with flock, getentropy and asprintf,
 * which Linux (glibc, musl), the BSDs and macOS have.
 *
 * Each function has a version for Linux and one for any POSIX system. FULLRANK_PLAIN_POSIX uses the
 * second on Linux too, so it is compiled and tested there (tests/test_base_os.c).
 */
#ifndef FR_BASE_OS_H
#define FR_BASE_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "columns, records and checkpoints are read and written as they are in memory, and "
               "their formats are little-endian: this processor would need conversions");
_Static_assert(sizeof(float) == 4 && sizeof(double) == 8 && sizeof(int) == 4,
               "formats have floats of 4 and doubles of 8 bytes");

/* The number of cores this process may use, at least 1. Plain: all cores of the machine. */
int os_cores(void);

/* Starts a thread with a stack of at least 2 MB. musl would give 128 KB and macOS 512 KB, but fast
 * paths and scorers of other programs may need more. Returns 0 or an errno. */
int os_thread(pthread_t *out, void *(*run)(void *), void *job);

/* Starts writing bytes to the disk without waiting. Plain: does nothing. */
void os_write_back(int fd, int64_t from, int64_t count);

/* Exchanges two names in an open directory. Returns 0, or -1 with errno. Plain: in three steps
 * through the unused name `spare`, so a crash in between leaves one of them there. */
int os_exchange(int folder, const char *one, const char *other, const char *spare);

/* Locks a byte of a file, exclusively or shared; an existing lock is changed. It ends with the
 * process. The open file owns it; plain: the process owns it, so it does not exclude itself.
 * Returns 0, or -1 with errno: EAGAIN or EACCES = another one has the lock. */
int os_lock(int fd, int64_t at, bool shared);
int os_unlock(int fd, int64_t at); /* 0, or -1 with errno */
/* True if another one has an exclusive lock. */
bool os_locked(int fd, int64_t at);

/* Sorts `count` elements; the order of equal ones is not defined. */
void os_sort(void *elements, size_t count, size_t size,
             int (*compare)(const void *a, const void *b, void *user), void *user);

/* Peak memory of this process in bytes, since os_forget_peak if the system can reset it;
 * -1 = unknown. */
int64_t os_peak_memory(void);
void os_forget_peak(void);

/* Fills in up to 256 unpredictable bytes. Returns 0, or -1 with errno. */
int os_random(void *bytes, size_t count);

/* When a file was last changed, in nanoseconds since 1970. */
int64_t os_modified(const struct stat *facts);

/* Calls `each` for every entry of an open directory except "." and "..", with the directory; it may
 * remove the entry. Needs no memory, so cleaning up also works when memory is short. Plain: needs
 * memory. */
void os_each_entry(int folder, void (*each)(int folder, const char *name));

/* Says why a file is not a shared object that this program can load; NULL = no reason was found.
 * Also finds truncated files, which the loader does not. Plain: finds nothing. */
const char *os_check_shared_object(const void *bytes, size_t size);

/* Opens a directory that may be entered but not listed, to name what is in it. Returns -1 with
 * errno if this is not possible. */
int os_open_unlisted(const char *path);

#endif
