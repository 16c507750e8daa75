/* get.c - public sets by name: download, then import (fullrank.h, chapter 7).
 *
 * While it is downloaded, the file is next to the output as OUTPUT.download. The name is always the
 * same, so a repeated command finds the part of an interrupted one.
 */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/options.h"
#include "data/columns.h"
#include "data/download.h"
#include "data/import.h"
#include "data/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fr_status find_url(const char *name, const char **url, fr_error *err) {
    const download_source *source = download_find(name);
    char names[128];
    if (source) {
        *url = source->url;
        return FR_OK;
    }
    download_names(names, sizeof names);
    return fail(err, FR_EUSAGE, "unknown set %s, expected one of %s, or any name with a url", name,
                names);
}

/* If a public set has changed, there is a notice, not an error. */
static fr_status check_count(const char *name, const char *output, const fr_context *context,
                             fr_error *err) {
    const download_source *source = download_find(name);
    fr_stream *stream;
    if (!source) return FR_OK;
    TRY(fr_stream_open(output, NULL, context, &stream, err));
    int64_t events = fr_stream_get(stream).events;
    if (events != source->events)
        context_log(context, FR_WARNING, "%s: %lld events, but the public set had %lld", name,
                    (long long)events, (long long)source->events);
    fr_stream_close(stream);
    return FR_OK;
}

fr_status fr_stream_download(const char *name, const char *url, const char *output,
                             const fr_import *settings, const fr_context *context, fr_error *err) {
    fr_import own;
    if (!url) NEED(name, err);
    NEED(output, err);
    TRY(options_settle(fr_import_options, settings, &own, sizeof own, err));
    if (!url) TRY(find_url(name, &url, err));
    TRY(columns_check(output, own.force, err));
    char *file = NULL;
    size_t n = strlen(output);
    while (n > 1 && output[n - 1] == '/') n--;
    if (asprintf(&file, "%.*s.download", (int)n, output) < 0) return fail_memory(err, n);
    download_result result;
    fr_status status = download_file(url, file, context, &result, err);
    if (!status) {
        fr_error inner = {0};
        import_origin origin = {.name = path_name(url), .url = url};
        status = import_file(file, &origin, output, &own, context, &inner);
        if (status ==
            FR_EINPUT) /* the user does not know this file name: say where the file is from */
            (void)fail(err, status, "%s: %s", url, inner.message);
        else if (status && err)
            *err = inner;
        if (status != FR_ECANCEL) unlink(file);
    }
    if (!status && name) status = check_count(name, output, context, err);
    free(file);
    return status;
}
