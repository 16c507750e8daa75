/* fuzz_study.c - any text as the document of a study: refused with a one-line reason, or a plan
 * whose units have settings and different keys. */
#include "fuzz.h"

#include "study/plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *text = malloc(size + 1);
    plan p;
    fr_error err = {0};
    if (!text) return 0;
    if (size) memcpy(text, bytes, size);
    text[size] = 0;
    fr_status status = plan_parse(&p, text, "fuzz", "/", &err);
    if (status && (!err.message[0] || strpbrk(err.message, "\r\n"))) abort();
    for (size_t i = 0; !status && i < p.units.count; i++) {
        const plan_unit *u = &p.units.at[i];
        fr_model_settings shape;
        fr_training training = {0};
        if (!u->key[0] || u->data < 0 || u->data >= p.datas || u->train >= (int)i) abort();
        if (i && !strcmp(u->key, p.units.at[i - 1].key)) abort();
        if (u->trained && plan_settings(&p, u, &shape, &training, &err)) abort();
    }
    if (!status) plan_free(&p);
    free(text);
    return 0;
}
