/* download_sets.c - the public sets known by name (download.h). */
#include "data/download.h"

#include <stdio.h>
#include <string.h>

const download_source download_sources[] = {
    {"wikipedia", "http://snap.stanford.edu/jodie/wikipedia.csv", 157474},
    {"reddit", "http://snap.stanford.edu/jodie/reddit.csv", 672447},
    {"mooc", "http://snap.stanford.edu/jodie/mooc.csv", 411749},
    {"lastfm", "http://snap.stanford.edu/jodie/lastfm.csv", 1293103},
    {NULL, NULL, 0},
};

const download_source *download_find(const char *name) {
    for (const download_source *s = download_sources; s->name; s++)
        if (!strcmp(s->name, name)) return s;
    return NULL;
}

void download_names(char *out, size_t size) {
    size_t used = 0;
    if (size) out[0] = 0;
    for (const download_source *s = download_sources; s->name && used < size; s++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", s->name);
}
