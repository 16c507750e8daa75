/* plugin.c - see plugin.h.
 *
 * The system's loader trusts its files: a truncated one makes it crash. So the header, the segments
 * and the section table at the end are checked first. A plug-in stays loaded, because runtimes of
 * other languages often do not survive unloading.
 */
#define _GNU_SOURCE
#include "rank/plugin.h"

#include "base/file.h"
#include "base/options.h"
#include "base/os.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t plugin_file_length(const char *spec) {
    const char *slash = strrchr(spec, '/');
    const char *name = slash ? slash + 1 : spec;
    return (size_t)(name - spec) + strcspn(name, ",");
}

/* ---- what it says of itself ---- */

static fr_status check_options(const char *path, const fr_scorer_kind *kind, fr_error *err) {
    for (const fr_option *o = kind->options; o && o->key; o++) {
        size_t width = options_width(o);
        if (!width || !o->help || !o->standard || (o->type == FR_OPTION_CHOICE && !o->values))
            return fail(err, FR_EINPUT, "%s: option %s has no type, help, default or values", path,
                        o->key);
        if (width > kind->settings || o->offset > kind->settings - width)
            return fail(err, FR_EINPUT, "%s: option %s is not in its settings of %zu bytes", path,
                        o->key, kind->settings);
    }
    return FR_OK;
}

static fr_status check_plugin(const char *path, const fr_plugin *plugin, fr_error *err) {
    if (!plugin) return fail(err, FR_EINPUT, "%s: fullrank_plugin returned NULL", path);
    if (plugin->abi != FR_PLUGIN_ABI)
        return fail(err, FR_EINPUT, "%s: made for version %d of the plug-in interface, expected %d",
                    path, (int)plugin->abi, FR_PLUGIN_ABI);
    const fr_scorer_kind *kind = &plugin->kind;
    if (!kind->name || !*kind->name || !kind->summary || !kind->text || !kind->open)
        return fail(err, FR_EINPUT, "%s: the plug-in has no name, summary, text or open", path);
    return check_options(path, kind, err);
}

/* ---- loading ---- */

fr_status fr_plugin_load(const char *file, const fr_scorer_kind **out, fr_error *err) {
    NEED(out, err);
    *out = NULL;
    NEED(file, err);
    mapping bytes = {0};
    TRY(mapping_open(file, &bytes, err));
    const char *wrong = os_check_shared_object(bytes.bytes, bytes.size);
    mapping_close(&bytes);
    if (wrong) return fail(err, FR_EINPUT, "%s: %s", file, wrong);
    char *path = NULL; /* with a '/': a bare name would be looked for elsewhere */
    if (asprintf(&path, "%s%s", strchr(file, '/') ? "" : "./", file) < 0)
        return fail_memory(err, strlen(file));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    free(path);
    if (!library) return fail(err, FR_EINPUT, "%s: cannot be loaded: %s", file, dlerror());
    fr_plugin_function *function = NULL;
    *(void **)&function = dlsym(library, "fullrank_plugin"); /* as POSIX writes it */
    const fr_plugin *plugin = function ? function() : NULL;
    fr_status status =
        function
            ? check_plugin(file, plugin, err)
            : fail(err, FR_EINPUT, "%s: not a plug-in, it has no function fullrank_plugin", file);
    if (status)
        (void)dlclose(library);
    else
        *out = &plugin->kind;
    return status;
}
