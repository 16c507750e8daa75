/* per_event.h - ranks of single events as lines of text: `metrics --per-event`. */
#ifndef FR_CLI_PER_EVENT_H
#define FR_CLI_PER_EVENT_H

#include "cli.h"

#include <limits.h>

/* Where the lines go. A file appears complete or not at all; a symbolic link keeps pointing to it.
 * Devices and pipes are written directly. */
typedef struct event_file {
    char path[PATH_MAX]; /* "" = standard output */
    bool direct;
} event_file;

/* Checks before the work that it can be written. On an error it prints a message and returns an
 * exit code. */
int find_event_file(event_file *out, const char *path, bool force);
/* Writes the events of count rankings; returns an exit code. */
int write_per_event(const event_file *file, fr_ranking *const *all, int count);

#endif
