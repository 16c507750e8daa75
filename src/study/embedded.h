/* embedded.h - files that are part of the library, as texts (cmake/embed.cmake). */
#ifndef FR_STUDY_EMBEDDED_H
#define FR_STUDY_EMBEDDED_H

extern const char embedded_paper[], embedded_quick[], embedded_demo[], embedded_selected[],
    embedded_architectures[];           /* presets/NAME.json */
extern const char embedded_settings[];  /* families of settings, presets/settings.json */
extern const char embedded_published[]; /* the paper's numbers, published.json */

#endif
