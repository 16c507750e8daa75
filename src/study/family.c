/* family.c - named families of settings (fullrank.h, chapter 12), from presets/settings.json.
 *
 * The file has, for each family, options of all models ("all") and of single ones. An option of
 * "all" that a model does not use is ignored; training would refuse an unused option of the model
 * itself.
 */
#include "base/json.h"
#include "base/options.h"
#include "base/text.h"
#include "models/model.h"
#include "study/embedded.h"

#include <string.h>

typedef struct target {
    const fr_model *facts;
    fr_model_settings *model;
    fr_training *training;
} target;

static fr_status set(void *user, const char *key, const char *value, fr_error *err) {
    target *to = user;
    if (fr_options_find(fr_training_options, key))
        return fr_options_set(fr_training_options, to->training, key, value, err);
    if (!model_uses(to->facts, key)) return FR_OK;
    return fr_options_set(fr_model_options, to->model, key, value, err);
}

static const char *family_at(const void *families, int index) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)families, name, value) if (!index--) return name;
    return NULL;
}

static fr_status apply(const json_t *families, const char *family, target *to, fr_error *err) {
    const json_t *of = json_object_get(families, family);
    if (!of)
        return text_unknown("family of settings", family, family_at, families,
                            "`fullrank train --help`", err);
    TRY(options_from_json(json_object_get(of, "all"), family, set, to, err));
    TRY(options_from_json(json_object_get(of, to->facts->name), family, set, to, err));
    return fr_options_set(fr_training_options, to->training, "settings", family, err);
}

fr_status fr_settings_apply(const char *family, const char *name, fr_model_settings *settings,
                            fr_training *training, fr_error *err) {
    NEED(family, err);
    NEED(name, err);
    NEED(settings, err);
    NEED(training, err);
    target to = {fr_model_find(name), settings, training};
    if (!to.facts) return model_unknown(name, err);
    json_t *families = json_parse(embedded_settings, strlen(embedded_settings), 0, NULL);
    fr_status status = families ? apply(families, family, &to, err) : fail_memory(err, 0);
    json_decref(families);
    return status;
}
