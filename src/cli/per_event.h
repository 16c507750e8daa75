/* per_event.h - ranks of single events as lines of text: `metrics --per-event`. */
#ifndef FR_CLI_PER_EVENT_H
#define FR_CLI_PER_EVENT_H

#include "cli.h"

#include <limits.h>

/* Where the lines go. A file appears complete or not at all, in place of what a symbolic link
 * points to; devices and pipes are written as they are. */
typedef struct event_file {
    char path[PATH_MAX]; /* "" = standard output */
    bool direct;
} event_file;

/* Asked before the work: may it be written? Says why not and returns an exit code otherwise. */
int find_event_file(event_file *out, const char *path, bool force);
/* Writes the events of count rankings; returns an exit code. */
int write_per_event(const event_file *file, fr_ranking *const *all, int count);

#endif
