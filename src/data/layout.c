/* layout.c - see layout.h. */
#define _GNU_SOURCE
#include "data/layout.h"

#include "base/number.h"
#include "data/date.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 64, MAX_FIELDS = 1 << 16 };

typedef struct column_name {
    char text[NAME_ROOM]; /* lower case, without quotes and blanks around it; cut if longer */
} column_name;

typedef ARRAY(column_name) name_list;

/* Spellings seen in JODIE, DyGLib, TGB, TGB-Seq, SNAP, MovieLens, Amazon reviews, Yelp, Twitch and
 * in people's own files. */
static const struct {
    role role;
    const char *words;
} spellings[] = {
    {ROLE_SOURCE,
     " user_id user userid uid u src source src_id source_id source_node from from_id sender head "
     "reviewerid reviewer_id customerid customer_id "},
    {ROLE_DESTINATION, " item_id item itemid i v dst destination dst_id dest destination_id "
                       "destination_node to to_id target "
                       "target_id receiver tail iid movieid movie_id asin parent_asin productid "
                       "product_id businessid business_id stream streamer "},
    {ROLE_TIME, " timestamp time ts t unixts unix_timestamp day date datetime unixtime "
                "unix_time unixreviewtime start "},
    {ROLE_SPLIT, " split "},
    {ROLE_INDEX, " idx "},
};
/* Columns that exist in public sets and are rightly not used. */
static const char unused[] = " state_label label y edge_id ";
static const char feature_list[] = "comma_separated_list_of_features";

const char *role_name(role r) {
    static const char *const names[] = {"skipped", "source",     "destination", "time",
                                        "split",   "row number", "feature"};
    return names[r];
}

/* Not tolower, which depends on the locale: in a Turkish one it does not change "ITEM_ID". */
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c; }

static bool line_ends(char c) { return c == '\n' || c == 0 || c == '\r'; }

static char find_separator(const char *line) {
    static const char order[] = "\t,; ";
    for (const char *s = order; *s; s++)
        for (const char *p = line; !line_ends(*p); p++)
            if (*p == *s) return *s;
    return ','; /* a single column: the error about missing columns comes later */
}

/* Splits a line into names. Quotes may hold separators. */
static fr_status split(const char *line, char separator, name_list *out, fr_error *err) {
    const char *p = line;
    for (;;) {
        column_name field = {""};
        size_t n = 0;
        bool quoted = false;
        while (*p == ' ' || (separator == ' ' && *p == '\t')) p++;
        if (separator == ' ' && line_ends(*p) && out->count) return FR_OK; /* blanks at the end */
        for (; !line_ends(*p) && (quoted || (*p != separator && !(separator == ' ' && *p == '\t')));
             p++) {
            if (*p == '"') {
                quoted = !quoted;
                continue;
            }
            if (n + 1 < sizeof field.text) field.text[n++] = lower(*p);
        }
        while (n && field.text[n - 1] == ' ') n--;
        field.text[n] = 0;
        ARRAY_PUSH(out, field, err);
        if (line_ends(*p)) return FR_OK;
        p++;
    }
}

/* A number or a date: a value, not a name. */
static bool is_value(const char *text) {
    double value;
    char padded[NAME_ROOM + 8] = {0}; /* number_real looks 8 bytes ahead */
    (void)snprintf(padded, NAME_ROOM, "%s", text);
    const char *end = date_begins(padded) ? date_read(padded, true, &value) : NULL;
    if (!end) end = number_real(padded, &value);
    return end && !*end;
}

static bool in_list(const char *words, const char *text) {
    char spaced[NAME_ROOM + 2];
    if (!*text || strchr(text, ' ')) return false;
    (void)snprintf(spaced, sizeof spaced, " %s ", text);
    return strstr(words, spaced) != NULL;
}

/* "f1", "feat_12", "feature3", "features.7" */
static bool is_feature_name(const char *text) {
    static const char *const stems[] = {"features", "feature", "feat", "f"};
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        size_t n = strlen(stems[i]);
        if (strncmp(text, stems[i], n)) continue;
        text += n;
        text += *text == '_' || *text == '.';
        if (!*text) return n > 1;
        return strspn(text, "0123456789") == strlen(text);
    }
    return false;
}

/* Several columns may get the same role here; if --columns does not change this, check_roles
 * refuses it. */
static void guess_roles(layout *l, const name_list *names) {
    bool list = !strcmp(names->at[names->count - 1].text, feature_list);
    for (int f = 0; f < l->fields; f++) {
        if ((size_t)f >= names->count - list) {
            l->roles[f] = ROLE_FEATURE; /* a column that the list stands for */
            continue;
        }
        const char *text = names->at[f].text;
        for (size_t s = 0; s < sizeof spellings / sizeof *spellings; s++) {
            role r = spellings[s].role;
            if (!in_list(spellings[s].words, text)) continue;
            l->roles[f] = r;
            break;
        }
        if (!l->roles[f] && is_feature_name(text)) l->roles[f] = ROLE_FEATURE;
    }
}

/* The column meant by "3" or "user"; -1 if there is none. */
static int find_column(const layout *l, const name_list *names, const char *word) {
    if (*word && strspn(word, "0123456789") == strlen(word)) {
        long number = strtol(word, NULL, 10);
        return number >= 1 && number <= l->fields ? (int)number - 1 : -1;
    }
    for (size_t f = 0; l->named && f < names->count && (int)f < l->fields; f++)
        if (!strcmp(names->at[f].text, word)) return (int)f;
    return -1;
}

/* "features=5-176", "features=5-", "features=a", "features=none" */
static bool set_features(layout *l, const name_list *names, char *word) {
    for (int f = 0; f < l->fields; f++)
        if (l->roles[f] == ROLE_FEATURE) l->roles[f] = ROLE_SKIP;
    if (!strcmp(word, "none")) return true;
    int first = find_column(l, names, word), last = first;
    char *dash = first < 0 ? strchr(word, '-') : NULL;
    if (dash) {
        *dash = 0;
        first = find_column(l, names, word);
        last = dash[1] ? find_column(l, names, dash + 1) : l->fields - 1;
        *dash = '-';
    }
    if (first < 0 || last < first) return false;
    for (int f = first; f <= last; f++) l->roles[f] = ROLE_FEATURE;
    return true;
}

static fr_status override(layout *l, const name_list *names, const char *columns, fr_error *err) {
    char text[1024];
    if (snprintf(text, sizeof text, "%s", columns) >= (int)sizeof text)
        return fail(err, FR_EUSAGE, "option columns: longer than %zu characters", sizeof text);
    char *rest = text;
    for (char *entry; (entry = strsep(&rest, ","));) {
        char *word = strchr(entry, '=');
        if (!word)
            return fail(err, FR_EUSAGE, "option columns: found \"%s\", expected ROLE=COLUMN",
                        entry);
        *word++ = 0;
        for (char *c = word; *c; c++) *c = lower(*c);
        if (!strcmp(entry, "features")) {
            if (set_features(l, names, word)) continue;
            return fail(
                err, FR_EUSAGE,
                "option columns: features=%s, expected none, a column or a range such as 5-%d",
                word, l->fields);
        }
        role r = !strcmp(entry, "source")        ? ROLE_SOURCE
                 : !strcmp(entry, "destination") ? ROLE_DESTINATION
                 : !strcmp(entry, "time")        ? ROLE_TIME
                 : !strcmp(entry, "split")       ? ROLE_SPLIT
                                                 : ROLE_SKIP;
        if (!r)
            return fail(err, FR_EUSAGE,
                        "option columns: found role \"%s\", expected source, destination, time, "
                        "split or features",
                        entry);
        bool none = r == ROLE_SPLIT && !strcmp(word, "none");
        int column = none ? -1 : find_column(l, names, word);
        if (column < 0 && !none)
            return fail(
                err, FR_EUSAGE,
                "option columns: there is no column \"%s\", expected a name of the header or a "
                "number from 1 to %d",
                word, l->fields);
        for (int f = 0; f < l->fields; f++)
            if (l->roles[f] == r) l->roles[f] = ROLE_SKIP;
        if (!none) l->roles[column] = r;
    }
    return FR_OK;
}

/* Appends to a comma separated list that is cut when full. */
static void list_add(char *list, size_t size, const char *word) {
    size_t n = strlen(list);
    (void)snprintf(list + n, size - n, "%s%s", n ? ", " : "", *word ? word : "(unnamed)");
}

static fr_status check_roles(layout *l, const name_list *names, int64_t line, const char *name,
                             fr_error *err) {
    int found[ROLE_FEATURE + 1] = {0}; /* 1 + the first column of each role */
    char all[256] = "";
    for (int f = 0; f < l->fields; f++) {
        const char *text = l->named && (size_t)f < names->count ? names->at[f].text : "";
        role r = l->roles[f];
        if (r >= ROLE_SOURCE && r <= ROLE_SPLIT && found[r])
            return fail(err, FR_EINPUT,
                        "%s:%lld: columns \"%s\" and \"%s\" could both be the %s; say which with "
                        "option columns: %s=%d or %s=%d",
                        name, (long long)line, names->at[found[r] - 1].text, text, role_name(r),
                        role_name(r), found[r], role_name(r), f + 1);
        if (!found[r]) found[r] = f + 1;
        l->width += l->roles[f] == ROLE_FEATURE;
        if (*text) list_add(all, sizeof all, text);
        if (!l->roles[f] && l->named && *text && !in_list(unused, text))
            list_add(l->ignored, sizeof l->ignored, text);
    }
    l->split = found[ROLE_SPLIT];
    for (role r = ROLE_SOURCE; r <= ROLE_TIME; r++)
        if (!found[r])
            return fail(
                err, FR_EINPUT,
                "%s:%lld: no column for the %s among: %s; name it by option columns: %s=...", name,
                (long long)line, role_name(r), *all ? all : "(none)", role_name(r));
    return FR_OK;
}

/* A header has names above numbers and dates. A first line of words above words (ids, labels) is a
 * row. */
static bool has_names(const name_list *first, const name_list *row, bool alone) {
    for (size_t f = 0; f < first->count; f++)
        if (!is_value(first->at[f].text) && (alone || f >= row->count || is_value(row->at[f].text)))
            return true;
    return false;
}

fr_status layout_detect(layout *out, const char *first, const char *row, int64_t line,
                        const char *columns, const char *name, fr_error *err) {
    *out = (layout){.separator = find_separator(first)};
    name_list names = {0}, values = {0};
    fr_status status = split(first, out->separator, &names, err);
    if (!status) status = split(row, out->separator, &values, err);
    if (status) goto done;

    out->named = has_names(&names, &values, first == row);
    bool list = !strcmp(names.at[names.count - 1].text, feature_list);
    size_t fields = list ? values.count : names.count;
    if (list && fields + 1 < names.count)
        fields = names.count; /* the row is too short: the reader reports it with its line */
    if (fields < 3 || fields > MAX_FIELDS) {
        status = fields < 3
                     ? fail(err, FR_EINPUT,
                            "%s:%lld: %zu column%s, expected at least 3: source, destination, time",
                            name, (long long)line, fields, fields == 1 ? "" : "s")
                     : fail(err, FR_EINPUT, "%s:%lld: %zu columns, expected at most %d", name,
                            (long long)line, fields, MAX_FIELDS);
        goto done;
    }
    out->fields = (int)fields;
    if ((status = ALLOCATE(out->roles, fields, err))) goto done;
    if (out->named) {
        guess_roles(out, &names);
        static const char *const dyglib[] = {"", "u", "i", "ts", "label", "idx"};
        out->dyglib = names.count == 6;
        for (size_t f = 0; f < names.count && f < 6; f++)
            if (strcmp(names.at[f].text, dyglib[f])) out->dyglib = false;
    } else { /* as in a JODIE file: source, destination, time, label, features */
        static const role order[] = {ROLE_SOURCE, ROLE_DESTINATION, ROLE_TIME, ROLE_SKIP};
        for (size_t f = 0; f < fields; f++) out->roles[f] = f < 4 ? order[f] : ROLE_FEATURE;
    }
    if (columns) status = override(out, &names, columns, err);
    if (!status) status = check_roles(out, &names, line, name, err);
    for (int f = 0; !out->dyglib && f < out->fields; f++)
        if (out->roles[f] == ROLE_INDEX) out->roles[f] = ROLE_SKIP;
done:
    free(names.at);
    free(values.at);
    if (status) layout_free(out);
    return status;
}

void layout_free(layout *l) {
    free(l->roles);
    *l = (layout){0};
}

/* ---- columns that are in memory ---- */

/* A first line with these names, and a row below it, as a table would have them. */
static void write_lines(const char *const *name, int count, char *first, char *row) {
    for (int f = 0; f < count; f++) {
        for (const char *p = name[f]; *p; p++)
            *first++ = *p == '\t' || *p == '"' || line_ends(*p) ? ' ' : *p;
        *row++ = '0';
        *first++ = *row++ = f + 1 < count ? '\t' : 0;
    }
}

fr_status fr_import_roles(const char *const *name, int count, const char *columns, int *out,
                          fr_error *err) {
    static const int roles[] = {
        [ROLE_SOURCE] = FR_COLUMN_SOURCE, [ROLE_DESTINATION] = FR_COLUMN_DESTINATION,
        [ROLE_TIME] = FR_COLUMN_TIME,     [ROLE_SPLIT] = FR_COLUMN_SPLIT,
        [ROLE_INDEX] = FR_COLUMN_SKIPPED, [ROLE_FEATURE] = FR_COLUMN_FEATURE};
    NEED(name, err);
    NEED(out, err);
    if (count < 1) return fail(err, FR_EUSAGE, "%d columns, expected 1 or more", count);
    char *first = NULL, *row = NULL;
    layout l = {0};
    size_t size = 0;
    for (int f = 0; f < count; f++) {
        if (!name[f]) return fail(err, FR_EUSAGE, "column %d: its name is NULL", f + 1);
        size += strlen(name[f]) + 1;
    }
    fr_status status = ALLOCATE(first, size, err);
    if (!status) status = ALLOCATE(row, 2 * (size_t)count, err);
    if (!status) {
        write_lines(name, count, first, row);
        status = layout_detect(&l, first, row, 1, columns, "columns", err);
    }
    for (int f = 0; !status && f < count; f++) out[f] = roles[l.roles[f]];
    layout_free(&l);
    free(first);
    free(row);
    return status;
}
