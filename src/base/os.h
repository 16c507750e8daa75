/* os.h - what systems do differently. Everything else is POSIX with flock, getentropy and asprintf,
 * which Linux (glibc, musl), the BSDs and macOS have.
 *
 * Each function has a way for Linux and one for any POSIX system. FULLRANK_PLAIN_POSIX takes the
 * second on Linux too, so that it is compiled and tested there (tests/test_base_os.c).
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

/* Cores this process may use, at least 1. Plain: those of the machine. */
int os_cores(void);

/* Starts a thread that has a stack of 2 MB at least: musl would give 128 KB, macOS 512 KB, and fast
 * paths and scorers of other programs may need more. Returns 0, else an errno. */
int os_thread(pthread_t *out, void *(*run)(void *), void *job);

/* Lets the disk begin with bytes that were written; nothing waits for it. Plain: nothing. */
void os_write_back(int fd, int64_t from, int64_t count);

/* Exchanges two names in an open directory. Returns 0, else -1 with errno. Plain: in three steps by
 * way of the name `spare`, which is free, so that a crash in between leaves one of them there. */
int os_exchange(int folder, const char *one, const char *other, const char *spare);

/* Locks a byte of a file, alone or beside others that share it; a lock that is held is changed. It
 * ends with the process. The open file holds it; plain: the process, which does not keep out
 * itself. Returns 0, else -1 with errno: EAGAIN or EACCES = another keeps it out. */
int os_lock(int fd, int64_t at, bool shared);
int os_unlock(int fd, int64_t at); /* 0, else -1 with errno */
/* Does another lock it alone? */
bool os_locked(int fd, int64_t at);

/* Sorts `count` elements; which of equal ones comes first is not said. */
void os_sort(void *elements, size_t count, size_t size,
             int (*compare)(const void *a, const void *b, void *user), void *user);

/* Most bytes of memory this process has had at once, since os_forget_peak where the system can
 * count anew; -1 = unknown. */
int64_t os_peak_memory(void);
void os_forget_peak(void);

/* Fills in up to 256 bytes that nobody can foresee. Returns 0, else -1 with errno. */
int os_random(void *bytes, size_t count);

/* When a file was last changed, in nanoseconds since 1970. */
int64_t os_modified(const struct stat *facts);

/* Calls `each` for every entry of an open directory but "." and "..", with the directory; it may
 * remove the entry. Needs no memory, so that nothing is left behind when it is short; plain: does.
 */
void os_each_entry(int folder, void (*each)(int folder, const char *name));

/* Why the bytes of a file are no shared object that this program could load; NULL = nothing speaks
 * against it. Sees files that are cut off, which the loader does not. Plain: sees nothing. */
const char *os_check_shared_object(const void *bytes, size_t size);

/* Opens a directory that may be entered but not listed, to name what is in it. Returns -1 with
 * errno if that cannot be. */
int os_open_unlisted(const char *path);

#endif
