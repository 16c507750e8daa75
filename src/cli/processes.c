/* processes.c - the tool as one of many processes (docs/cluster.md).
 *
 * If mpirun or srun started it, the tool loads fullrank-mpi.so from its own directory or from where
 * it was installed, and joins the job. Process 0 prints and writes. The others share the work of
 * commands that can be shared, and do nothing for other commands.
 */
#define _GNU_SOURCE
#include "cli.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fr_processes all;
static void (*end)(void);

/* The number of processes according to the environment; 1 = it says nothing. */
static int announced(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    const char *wanted = getenv("FULLRANK_MPI"), *slurm = getenv("SLURM_STEP_NUM_TASKS");
    if (wanted && !strcmp(wanted, "no")) return 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && atoi(text) > 1) return atoi(text);
    }
    if (slurm && getenv("PMIX_RANK") && atoi(slurm) > 1) return atoi(slurm);
    return wanted && !strcmp(wanted, "yes") ? 2 : 1;
}

static void *load(void) {
    static const char *const places[] = {"", CLI_LIBRARY_PLACE};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) n = 0;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (slash) slash[1] = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[2 * PATH_MAX];
        (void)snprintf(path, sizeof path, "%s%sfullrank-mpi.so", self, places[i]);
        if (access(path, F_OK)) continue;
        /* Global: MPI loads parts of itself that look for its names. */
        return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return NULL;
}

int cli_processes_start(void) {
    fr_error err = {0};
    int count = announced();
    if (count < 2) return CLI_OK;
    void *mpi = load();
    fr_status (*start)(fr_processes *, fr_error *) = NULL;
    if (mpi) {
        *(void **)&start = dlsym(mpi, "fullrank_processes_start");
        *(void **)&end = dlsym(mpi, "fullrank_processes_end");
    }
    if (!start || !end) {
        const char *why = mpi ? NULL : dlerror();
        end = NULL;
        cli_error(
            "started as one of %d processes, but there is no fullrank-mpi.so that works here%s%s; "
            "build with MPI, or set FULLRANK_MPI=no to let each process work alone",
            count, why ? ": " : "", why ? why : "");
        return CLI_FAILED;
    }
    fr_status status = start(&all, &err);
    if (status) return cli_report(status, &err);
    if (all.number && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
        return CLI_FAILED;
    return CLI_OK;
}

const fr_processes *cli_processes(void) { return all.count > 1 ? &all : NULL; }

bool cli_first(void) { return !all.number; }

void cli_processes_end(void) {
    if (end) end();
}
