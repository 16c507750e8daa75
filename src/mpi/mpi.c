/* mpi.c - fullrank-mpi.so: the processes of an MPI job as fr_processes (docs/cluster.md).
 *
 * It is not part of the library or the tool. The tool loads it if mpirun or srun started it, so
 * neither needs MPI, and one tool runs with and without MPI. A message is its size and then its
 * bytes in pieces that an int can count. MPI ends the whole job if an exchange fails or a process
 * dies.
 */
#include <fullrank.h>
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { PIECE = 1 << 30 };

static fr_status send_bytes(void *state, int to, int channel, const void *bytes, size_t size,
                            fr_error *err) {
    uint64_t length = size;
    (void)state, (void)err;
    MPI_Send(&length, 1, MPI_UINT64_T, to, channel, MPI_COMM_WORLD);
    for (size_t done = 0; done < size; done += PIECE) {
        size_t left = size - done;
        MPI_Send((const char *)bytes + done, left < PIECE ? (int)left : PIECE, MPI_BYTE, to,
                 channel, MPI_COMM_WORLD);
    }
    return FR_OK;
}

/* Polling keeps a processor busy, so a process that waits for long sleeps instead. */
static void wait_for(int from, int channel, MPI_Status *found) {
    int there = 0;
    for (long asked = 0; !there; asked++) {
        MPI_Iprobe(from, channel, MPI_COMM_WORLD, &there, found);
        if (!there && asked > 1000) {
            struct timespec nap = {.tv_nsec = asked < 10000 ? 100000 : 5000000};
            (void)nanosleep(&nap, NULL);
        }
    }
}

static fr_status receive_bytes(void *state, int *from, int channel, void **bytes, size_t *size,
                               fr_error *err) {
    uint64_t length;
    MPI_Status found;
    (void)state;
    wait_for(*from < 0 ? MPI_ANY_SOURCE : *from, channel, &found);
    *from = found.MPI_SOURCE;
    MPI_Recv(&length, 1, MPI_UINT64_T, *from, channel, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *size = (size_t)length;
    *bytes = malloc(*size ? *size : 1);
    if (!*bytes) return fr_fail(err, FR_ENOMEM, "out of memory: %zu bytes", *size);
    for (size_t done = 0; done < *size; done += PIECE) {
        size_t left = *size - done;
        MPI_Recv((char *)*bytes + done, left < PIECE ? (int)left : PIECE, MPI_BYTE, *from, channel,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return FR_OK;
}

static bool is_waiting(void *state, int channel) {
    int there = 0;
    (void)state;
    MPI_Iprobe(MPI_ANY_SOURCE, channel, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    return there;
}

/* The entry points for the tool: begin and end. */
FR_API fr_status fullrank_processes_start(fr_processes *out, fr_error *err);
FR_API void fullrank_processes_end(void);

fr_status fullrank_processes_start(fr_processes *out, fr_error *err) {
    int level;
    *out = (fr_processes){
        .size = sizeof *out, .send = send_bytes, .receive = receive_bytes, .waiting = is_waiting};
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) || level < MPI_THREAD_FUNNELED)
        return fr_fail(err, FR_EINPUT, "MPI cannot be started for a program with threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &out->number);
    MPI_Comm_size(MPI_COMM_WORLD, &out->count);
    return FR_OK;
}

void fullrank_processes_end(void) { MPI_Finalize(); }
