/* fullrank.h - honest evaluation of link prediction in continuous-time dynamic graphs.
 *
 * This is the only public header. The chapters follow the data: 1 errors and callbacks, 2 options,
 * 3 import, 4 stream, 5 window, 6 facts, 7 downloads and synthetic streams, 8 rank records,
 * 9 scorers, 10 ranking, 11 metrics, 12 models and training, 13 comparing runs, 14 diagnostics,
 * 15 studies, 16 tables, 17 audit. PROTOCOL numbers refer to docs/protocol.md.
 *
 * Conventions
 *   - A function that can fail returns fr_status (0 = ok). Its last argument, fr_error *err,
 *     may be NULL. The error message says where, what was found, and what was expected.
 *   - The library never prints, exits or aborts on bad input. Logging, progress and cancellation
 *     are callbacks.
 *   - Handles are opaque. The caller owns every handle that a call returns, and closes it. If the
 *     call fails, the handle is NULL. Every close and free function accepts NULL.
 *   - The caller keeps its arguments: texts, lists, settings and contexts are not used after the
 *     call. If a handle must outlive another one, its contract says so.
 *   - One verb for one thing. _open, _make and _load return a handle, and _close ends it. _get
 *     returns facts, whose texts and lists live as long as the handle; for a NULL handle all facts
 *     are 0. _at returns a registered item by number from 0, and NULL after the last. _find returns
 *     it by name, or NULL. Registered items live as long as the program. _compute fills structs of
 *     the caller. _run does long work.
 *   - A seed is any int64_t. Equal seeds give equal results.
 *   - Settings may be NULL or a zeroed struct: then every option has its default. To change an
 *     option, first fill the struct with fr_options_defaults, or set `size` to its sizeof. A later
 *     library whose struct has more fields then uses their defaults. As soon as one option is set,
 *     all others must be in their ranges too; a 0 out of range is refused. A NULL text means the
 *     default. Structs without `size` have `reserved` fields, which must be 0.
 *   - A required argument that is NULL, a negative count and a setting out of range are FR_EUSAGE,
 *     and the message names it.
 *   - Many threads may read a handle at once; opening and closing are not thread-safe.
 *   - Results never depend on the number of threads.
 *   - Numbers in files and messages have a decimal point, whatever the locale.
 */
#ifndef FULLRANK_H
#define FULLRANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; fr_version_get returns that of the library in use. docs/library.md
 * says what may change between versions. */
#define FULLRANK_VERSION_MAJOR 0
#define FULLRANK_VERSION_MINOR 1
#define FULLRANK_VERSION_PATCH 0
#define FULLRANK_VERSION       "0.1.0"

#define FR_API      __attribute__((visibility("default")))
#define FR_MUST_USE __attribute__((warn_unused_result))

/* ---- 1. Status, errors, callbacks ---- */

typedef enum fr_status {
    FR_OK = 0,
    FR_EUSAGE,  /* a setting that does not exist or is out of range */
    FR_EINPUT,  /* the input is not what it should be */
    FR_EFILE,   /* the file system refused: missing, not permitted, full */
    FR_ENOMEM,  /* out of memory */
    FR_ECANCEL, /* the cancel callback asked to stop */
    FR_EFORCE,  /* needs `force`: an output exists, or runs have different protocols */
} fr_status;

/* Filled on failure. `message` is one line without a final full stop or newline. */
typedef struct fr_error {
    fr_status code;
    char message[1024];
} fr_error;

/* Makes foreign text, such as a file name, safe for a terminal. Control characters (C0, DEL, C1),
 * characters that change the direction or order of text, and invalid UTF-8 become \xHH for each
 * byte, such as \x1b. Writes at most `size` bytes including the final 0, and only whole characters.
 * Returns the length of the complete result without the 0. `out` may be NULL if `size` is 0. */
FR_API size_t fr_text_printable(const char *text, char *out, size_t size);

/* Fills *err, unless it is NULL, with a printf-style message and returns `code`. For callbacks. */
FR_API fr_status fr_fail(fr_error *err, fr_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The name closest in spelling to `text`, one of `names`; NULL if none is close. `names` returns
 * them by number from 0, NULL after the last. If nothing is close, it tries again without a number
 * at the end of the text, as in "tgb-hist-100" and "hits@7". */
typedef const char *fr_name_at(const void *list, int index);
FR_API const char *fr_text_nearest(const char *text, fr_name_at *names, const void *list);

/* FR_DETAIL is for a log file: for example, the time of each unit of a study. */
typedef enum fr_level { FR_NOTICE, FR_WARNING, FR_DETAIL } fr_level;

/* How long work communicates with its caller. Any pointer may be NULL, and so may the context.
 * Only the calling thread makes callbacks; their texts live during the call. */
typedef struct fr_context {
    void *user;
    void (*log)(void *user, fr_level level, const char *line);
    /* `done` of `total` units of the named stage; total 0 = unknown. The name may change, for
     * example because it contains the loss. A study reports milliseconds ("ms") of finished and
     * expected work; its total may change too. */
    void (*progress)(void *user, const char *stage, uint64_t done, uint64_t total,
                     const char *unit);
    bool (*cancel)(void *user); /* true = stop soon with FR_ECANCEL; no incomplete file is left */
    int threads;                /* 0 = all cores; at most 4,096 are used */
    /* Processes that share the work; each makes the same call with the same arguments. NULL = this
     * one does everything. The contract of a function says whether it shares its work. */
    const struct fr_processes *processes;
    void *reserved[3];
} fr_context;

/* How processes, such as those of mpirun, exchange bytes (docs/cluster.md). The library calls these
 * functions from the calling thread only. Messages of one channel from one process to another
 * arrive in order. */
enum { FR_CHANNEL_WORK, FR_CHANNEL_STOP };
typedef struct fr_processes {
    size_t size;       /* sizeof(fr_processes) */
    int number, count; /* this process, from 0; of how many */
    void *state;
    fr_status (*send)(void *state, int to, int channel, const void *bytes, size_t size,
                      fr_error *err);
    /* Waits for the next message from process *from; if it is -1, from any, and *from is set.
     * *bytes is allocated by malloc, and the caller frees it. */
    fr_status (*receive)(void *state, int *from, int channel, void **bytes, size_t *size,
                         fr_error *err);
    bool (*waiting)(void *state, int channel); /* true if there is a message */
} fr_processes;

/* All processes of a context call it at the same place. If one of them failed, all fail, with the
 * error of the first. A failure also ends long work of the others soon. A single process gets its
 * own status back. */
FR_API fr_status fr_processes_agree(const fr_context *context, fr_status status, fr_error *err);

typedef struct fr_version {
    const char *version;  /* "0.1.0" */
    const char *commit;   /* short git commit, "unknown" outside a checkout */
    const char *compiler; /* "gcc 12.2.0" */
    const char *features; /* relevant features of this CPU, "sse4.2 avx avx2 fma ..." */
} fr_version;

/* Facts of the library in use. The strings live as long as the program. */
FR_API fr_version fr_version_get(void);

/* The file whose mapped bytes contain `address`; NULL if there is none. The library maps its input
 * files. If a file becomes shorter meanwhile, or a disk fails, the system raises SIGBUS. The signal
 * handler may call this function with si_addr to name the file. The text lives as long as the
 * mapping. */
FR_API const char *fr_mapped_file(const void *address);

/* A file for the caller's own results that appears complete or not at all. It is written under an
 * unpredictable name in the same directory, and fr_file_commit puts it in place. Call fr_file_close
 * in any case; it removes an uncommitted file. */
typedef struct fr_file fr_file;
FR_API FR_MUST_USE fr_status fr_file_open(const char *path, fr_file **out, fr_error *err);
FR_API FR_MUST_USE fr_status fr_file_put(fr_file *file, const void *bytes, size_t size,
                                         fr_error *err);
FR_API FR_MUST_USE fr_status fr_file_commit(fr_file *file, fr_error *err);
FR_API void fr_file_close(fr_file *file);

/* ---- 2. Options: declared once, used by --help, config files, manifests and docs ---- */

typedef enum fr_option_type {
    FR_OPTION_INT,    /* int64_t */
    FR_OPTION_REAL,   /* double */
    FR_OPTION_TEXT,   /* char *, owned by the settings struct, NULL when empty */
    FR_OPTION_CHOICE, /* int: index into the '|'-separated `values` */
    FR_OPTION_FLAG,   /* bool */
} fr_option_type;

/* One option of a settings struct. A table ends with a NULL key. If the struct begins with `size_t
 * size`, that last row has in `offset` the bytes of the struct's first release and in `help` its
 * name; otherwise both are 0. */
typedef struct fr_option {
    const char *key; /* as typed: --train-share; '_' and '-' are equal */
    fr_option_type type;
    const char *standard; /* the default, as text */
    const char *values;   /* CHOICE: "stream|strict"; others: the word shown in help, "N" */
    double low, high;     /* INT, REAL: the closed range allowed */
    size_t offset;        /* of the field in the settings struct */
    const char *help;
} fr_option;

/* Number of rows of the tables in this header. It leaves room to grow, because a program keeps the
 * size it was linked with. */
enum { FR_OPTIONS_MAX = 32 };

/* Zeroes `settings`, a struct of `size` bytes, and fills it with the defaults of `table`. If the
 * struct does not begin with its size, only the fields of the table are filled. Call it first. The
 * library allocates the texts, and fr_options_free frees them. The caller may put its own text in
 * their place for a call, and must remove it before fr_options_free. fr_options_defaults takes the
 * size from the pointer's type. */
FR_API FR_MUST_USE fr_status fr_options_fill(const fr_option *table, void *settings, size_t size,
                                             fr_error *err);
#define fr_options_defaults(table, settings, err)                                                  \
    fr_options_fill((table), (settings), sizeof *(settings), (err))
/* Sets one option from text. An unknown key, a value out of range and an option beyond the struct's
 * `size` are FR_EUSAGE and change nothing. */
FR_API FR_MUST_USE fr_status fr_options_set(const fr_option *table, void *settings, const char *key,
                                            const char *value, fr_error *err);
/* The option with this key, NULL if there is none; it belongs to the table. */
FR_API const fr_option *fr_options_find(const fr_option *table, const char *key);
/* The key of `table` closest in spelling to `key`, the table's; NULL if none is close. */
FR_API const char *fr_options_nearest(const fr_option *table, const char *key);
/* Writes the current value of one option as text, or its default if it is beyond the struct's
 * `size`; at most `size` bytes including the final 0. */
FR_API void fr_options_text(const fr_option *option, const void *settings, char *out, size_t size);
/* Calls `set` for every entry of a JSON object of plain values ({"window": 1000, "order":
 * "strict"}) with the value as text, and stops at the first failure. The message then starts with
 * the name of the file. Key and value live during the call. */
typedef fr_status fr_config_set(void *user, const char *key, const char *value, fr_error *err);
FR_API FR_MUST_USE fr_status fr_config_read(const char *path, fr_config_set *set, void *user,
                                            fr_error *err);
/* Frees the texts of `settings`; the struct may then be filled again. */
FR_API void fr_options_free(const fr_option *table, void *settings);

/* ---- 3. Import: an interaction file becomes a directory of columns ---- */

/* How to read a file. `columns` overrides the detection by header names:
 * "source=user,destination=3,time=ts,features=5-176" (names or numbers from 1; features=none,
 * split=none). */
typedef struct fr_import {
    size_t size; /* as every settings struct */
    char *columns;
    int ids;         /* FR_IDS_*: whole numbers, or any words (numbered in sorted order) */
    bool shared_ids; /* sources and destinations are the same kind of node: one id space */
    bool force;      /* replace an existing output, if this tool made it */
    int time_unit;   /* FR_TIME_*: unit of numeric times; they are stored in seconds */
} fr_import;
enum { FR_IDS_AUTO, FR_IDS_NUMBERS, FR_IDS_WORDS }; /* auto: words if any id of the file is one */
enum { FR_TIME_S, FR_TIME_MS, FR_TIME_US, FR_TIME_NS };
extern FR_API const fr_option fr_import_options[FR_OPTIONS_MAX]; /* all fields except `force` */

/* Reads `input` (CSV, TSV, space separated; plain or .gz; docs/formats.md) and writes the directory
 * `output`: source.npy destination.npy time.npy [features.npy] source_ids.npy destination_ids.npy
 * manifest.json. The directory appears complete or not at all. Events out of order are sorted
 * stably by time, and one notice counts them. Times are numbers or ISO dates, stored as seconds
 * since 1970 UTC. With FR_IDS_AUTO, a file whose first word comes after numbers is read again from
 * the beginning; a pipe is refused there. A column `split` must have the parts train, val, test in
 * order of time. Memory grows only with the number of distinct ids. O(rows), or O(rows log rows) if
 * out of order. */
FR_API FR_MUST_USE fr_status fr_import_file(const char *input, const char *output,
                                            const fr_import *settings, const fr_context *context,
                                            fr_error *err);

/* Finds the role of each column of a table from its name; `columns` overrides it. Fills role[count]
 * with FR_COLUMN_*. A missing source, destination or time is FR_EINPUT. */
enum {
    FR_COLUMN_SKIPPED,
    FR_COLUMN_SOURCE,
    FR_COLUMN_DESTINATION,
    FR_COLUMN_TIME,
    FR_COLUMN_SPLIT,
    FR_COLUMN_FEATURE
};
FR_API FR_MUST_USE fr_status fr_import_roles(const char *const *name, int count,
                                             const char *columns, int *role, fr_error *err);

/* Events in memory, [events] each, in any order of time. */
typedef struct fr_arrays {
    size_t size;      /* as every settings struct */
    const char *name; /* name of the data in results; NULL = "arrays" */
    int64_t events;
    const int64_t *source, *destination; /* ids from 0; with words, indices into their lists */
    const double *time;
    int64_t width;         /* float32 features per event, 0 = none */
    const float *features; /* [events, width] */
    const uint8_t *split;  /* 0, 1, 2: part train, val, test; NULL = no split */
    /* The words of both roles, in UTF-8; NULL = ids are numbers. */
    const char *const *source_words, *const *destination_words;
    int64_t source_word_count, destination_word_count;
} fr_arrays;

/* Imports arrays as fr_import_file imports a table of the same events: equal columns, equal hash,
 * the same notices. `columns` and `ids` of the settings are not used. */
FR_API FR_MUST_USE fr_status fr_import_arrays(const fr_arrays *arrays, const char *output,
                                              const fr_import *settings, const fr_context *context,
                                              fr_error *err);

/* ---- 4. Stream: an imported set, opened by mmap ---- */

typedef struct fr_stream fr_stream;

/* Texts belong to the stream. */
typedef struct fr_stream_facts {
    const char *name;              /* name of its file, without folders */
    int64_t events;                /* rows */
    int64_t sources, destinations; /* distinct ids of each role */
    int64_t feature_width;         /* float32 features per event, 0 = none */
    double first_time, last_time;
    bool shared_ids;    /* sources and destinations share one id space */
    bool words;         /* ids are words */
    const char *sha256; /* over all columns and words, whatever file they came from */
    /* How the columns were compared with the hash: "full" = all bytes were hashed; "size-and-time"
     * = sizes and modification times are those of the import. */
    const char *checked;
    /* Number of rows of the parts train and val in a column `split`; the rest is test. -1 = there
     * was no such column. */
    int64_t split_train, split_val;
} fr_stream_facts;

/* Opens a directory made by fr_import_file, or imports a file to a temporary directory first, which
 * is removed with the handle. `settings` is for importing; with a directory, settings other than
 * the defaults are FR_EUSAGE. Columns that changed since the import are FR_EINPUT. Sizes and
 * modification times are always compared; contents are compared if a time differs (as in a copy of
 * the directory) or if all columns together have less than 64 MiB. The caller closes the stream,
 * after all its windows. */
FR_API FR_MUST_USE fr_status fr_stream_open(const char *path, const fr_import *settings,
                                            const fr_context *context, fr_stream **out,
                                            fr_error *err);
/* The same from arrays. They are copied, so the caller may free them. The copy is in an unnamed
 * temporary file in $TMPDIR or /tmp, as for a table. */
FR_API FR_MUST_USE fr_status fr_stream_make(const fr_arrays *arrays, const fr_import *settings,
                                            const fr_context *context, fr_stream **out,
                                            fr_error *err);
FR_API void fr_stream_close(fr_stream *stream);
/* Compares all contents with the manifest, unless opening did. fr_train_run and studies do this. */
FR_API FR_MUST_USE fr_status fr_stream_verify(fr_stream *stream, const fr_context *context,
                                              fr_error *err);

/* One file of an imported directory. */
typedef struct fr_data_file {
    const char *name;  /* "time.npy"; the library's */
    int64_t bytes;     /* -1 = cannot be read */
    char sha256[65];   /* of the present contents */
    char expected[65]; /* as imported; "" = unknown (a manifest of an earlier version) */
    bool same;
} fr_data_file;
enum { FR_DATA_FILES = 8 };
/* Hashes every file of a directory made by fr_import_file and fills out[*count], even on failure. A
 * difference is FR_EINPUT and names the first file that differs. */
FR_API FR_MUST_USE fr_status fr_data_verify(const char *path, const fr_context *context,
                                            fr_data_file out[FR_DATA_FILES], int *count,
                                            fr_error *err);
FR_API fr_stream_facts fr_stream_get(const fr_stream *stream);

/* Ids that are both a source and a destination. */
typedef struct fr_overlap {
    int64_t ids;        /* their number */
    int64_t self_loops; /* events from an id to itself */
    bool per_role; /* ids of both roles are whole numbers without a gap from 0 or 1. Most likely
                      each role was numbered separately, and the overlap means nothing */
} fr_overlap;
/* O(ids + events). */
FR_API FR_MUST_USE fr_status fr_stream_overlap(const fr_stream *stream, const fr_context *context,
                                               fr_overlap *out, fr_error *err);
/* Writes the stream as CSV (compressed if the name ends in .gz). Importing it gives the same
 * columns. */
FR_API FR_MUST_USE fr_status fr_stream_export(const fr_stream *stream, const char *output,
                                              bool force, const fr_context *context, fr_error *err);

/* ---- 5. Window: what a protocol sees of a stream (PROTOCOL 1-3) ---- */

typedef struct fr_window fr_window;

enum { FR_ORDER_STREAM, FR_ORDER_STRICT, FR_ORDER_BATCH };
enum { FR_OOV_EXCLUDE, FR_OOV_ZERO };
enum { FR_PART_TEST, FR_PART_VAL };
enum { FR_FILTER_NONE, FR_FILTER_SAME_TIME };

typedef struct fr_protocol {
    size_t size;        /* as every settings struct */
    int64_t window;     /* most recent events used; 0 = all */
    double train_share; /* first part of the window, for training */
    char *order;        /* the history of an event: "stream", "strict" or "batch:200" */
    char *catalog;      /* "fixed", "train+val", "all", "range", "time" or a file of ids */
    int oov;            /* FR_OOV_*: events whose destination is not in the catalog */
    double val_share;   /* the part after training, for validation; the rest is for test */
    char *split;        /* how parts are cut: "share", "quantile" of the times, "column", or where
                           validation and test begin: "rows:800,900", "times:2.5e6,2.6e6" */
    int part;           /* FR_PART_*: the part that is ranked */
    int filter;         /* FR_FILTER_*: removes true destinations of other events */
} fr_protocol;
extern FR_API const fr_option fr_protocol_options[FR_OPTIONS_MAX];
/* The same for diagnostics (PROTOCOL 8, 9): window (default 131,072), train share and order. Each
 * diagnostic has its own catalog. */
extern FR_API const fr_option fr_diagnostic_options[FR_OPTIONS_MAX];

typedef struct fr_window_facts {
    int64_t events;                /* of the window */
    int64_t train, val, test;      /* of its parts, in this order */
    int64_t from, to;              /* events from .. to - 1 are ranked: the protocol's part */
    int64_t first;                 /* row of the stream where the window begins */
    int64_t sources, destinations; /* that have events in it */
    int64_t candidates;      /* scores per event: destinations, and those without events that a
                                catalog file names */
    int64_t catalog_size;    /* of the catalog known before the first test event */
    char catalog_sha256[65]; /* over its ids: ascending, little-endian int64 */
    size_t index_bytes;      /* memory of window, catalog, history and membership index */
} fr_window_facts;

/* Cuts the window and its parts, and builds the catalog and the history and membership index in
 * O(events). The caller closes the window. The stream must outlive it. */
FR_API FR_MUST_USE fr_status fr_window_open(const fr_stream *stream, const fr_protocol *protocol,
                                            const fr_context *context, fr_window **out,
                                            fr_error *err);
FR_API void fr_window_close(fr_window *window);
/* Keeps the window alive until fr_window_close has been called once more. */
FR_API void fr_window_hold(fr_window *window);
FR_API fr_window_facts fr_window_get(const fr_window *window);
/* The original ids of the entries of a score vector, ascending; *count (which is
 * fr_window_facts.candidates) is their number. They live as long as the window. */
FR_API const int64_t *fr_window_candidates(const fr_window *window, int64_t *count);

/* The window as arrays, which live as long as the window. Sources and destinations are numbered in
 * ascending order of original id. The first `train` events are the training part (fr_window_facts);
 * validation and test follow. */
typedef struct fr_columns {
    const int32_t *source, *destination; /* [events] numbers */
    const double *time;                  /* [events] as in the stream */
    double start;                        /* time 0 of the window */
    const float *features;               /* [events, feature_width]; NULL = none */
    int64_t feature_width;
    const int64_t *source_id;      /* [sources] original ids */
    const int64_t *destination_id; /* [candidates] the same as fr_window_candidates */
    const int32_t *catalog;        /* [catalog_size] ranked destinations, ascending */
} fr_columns;
FR_API fr_columns fr_window_columns(const fr_window *window);

/* One event, as scorers observe it. The window owns the features. */
typedef struct fr_event {
    int32_t event;               /* number in the window, from 0 */
    int32_t source, destination; /* numbers */
    double time;                 /* seconds since the window's start */
    const float *features;       /* [feature_width]; NULL = none */
} fr_event;
/* An event by number; all fields are 0 if it is not in the window. */
FR_API fr_event fr_window_event(const fr_window *window, int32_t event);

/* Events below this number are "before" the event under the protocol's order (PROTOCOL 2). For the
 * number of all events it returns that number. */
FR_API int32_t fr_window_cut(const fr_window *window, int32_t event);

/* Ascending event numbers in the window's index; nothing is copied. Numbers out of range give an
 * empty list. */
typedef struct fr_history {
    const int32_t *event;
    int32_t count;
} fr_history;
/* The last `most` events of a source or a destination before event `before`, which may also be the
 * number of all events. O(log). */
FR_API fr_history fr_window_source_history(const fr_window *window, int32_t source, int32_t before,
                                           int32_t most);
FR_API fr_history fr_window_destination_history(const fr_window *window, int32_t destination,
                                                int32_t before, int32_t most);
/* All events of a pair before event `before`. */
FR_API fr_history fr_window_pair_history(const fr_window *window, int32_t source,
                                         int32_t destination, int32_t before);
/* The first event of each pair of the source before event `before`. Their destinations are those
 * that the source has met, in order of the first meeting. */
FR_API fr_history fr_window_met(const fr_window *window, int32_t source, int32_t before);

/* ---- 6. Facts of PROTOCOL 13 ---- */

typedef struct fr_facts {
    int64_t covered;          /* test events whose destination is in the catalog */
    int64_t repeated, new_;   /* covered events whose pair has met before, or not */
    int64_t tied_times;       /* window events that share their time with another one */
    int64_t available_ranked; /* test events whose destination is in the time-available catalog */
    double available_size;    /* its mean size over those */
    /* Diagnostic window (PROTOCOL 8, 9): events with >= 20 other destinations in source history. */
    int64_t diagnostic_events, diagnostic_catalog;
    int64_t eligible, eligible_repeated;
    double p1, q1, beta_star;                    /* NaN when there is no eligible event */
    int64_t membership_repeated, membership_new; /* eligible for the 2x2 table */
    /* Also eligible, but the positive has not occurred before and cannot be ranked. */
    int64_t membership_unavailable;
    /* Shape of the ranking window. */
    double test_repeat_share;       /* repeated share of all test events, covered or not */
    double destinations_per_source; /* distinct, mean over sources */
    double popularity_gini;         /* of events per destination of the window, 0 = even */
    double history_mean;            /* source events before a test event, mean */
} fr_facts;

/* Computes the facts for one window and one diagnostic window of the same stream. */
FR_API FR_MUST_USE fr_status fr_facts_compute(const fr_window *window, const fr_window *diagnostic,
                                              const fr_context *context, fr_facts *out,
                                              fr_error *err);

/* ---- 7. Getting streams: public sets and synthetic ones ---- */

/* Downloads the public set `name` (wikipedia, reddit, mooc, lastfm: the JODIE files), or the file
 * at `url` if it is not NULL, and imports it to `output`. The next call continues an interrupted
 * download. The downloaded file is removed after the import, or if it is not a table. */
FR_API FR_MUST_USE fr_status fr_stream_download(const char *name, const char *url,
                                                const char *output, const fr_import *settings,
                                                const fr_context *context, fr_error *err);

/* A synthetic stream with known p(v | u, t, history), docs/synth.md. */
typedef struct fr_synth {
    size_t size;      /* as every settings struct */
    char *preset;     /* tiny, wikipedia, reddit, mooc, lastfm */
    int64_t seed;     /* of the random numbers */
    int64_t events;   /* length; 0 = the preset's own */
    char *parameters; /* changes to the preset: "repeat=0.9,drift=0" */
    bool force;       /* replace an existing output; not in the table */
} fr_synth;
extern FR_API const fr_option fr_synth_options[FR_OPTIONS_MAX];

/* The presets and the parameters, for help. The library owns the texts. */
FR_API const char *fr_synth_preset_at(int index, const char **help);
FR_API const fr_option *fr_synth_parameters(void);

/* Draws the stream and writes it as fr_import_file does, with its parameters in the manifest. So
 * the `oracle` scorer can replay it and knows the probability of every destination. */
FR_API FR_MUST_USE fr_status fr_synth_make(const fr_synth *settings, const char *output,
                                           const fr_context *context, fr_error *err);

/* ---- 8. Rank records: the result of one pass over the scores (PROTOCOL 4, 5) ---- */

/* One test event. The struct is packed, so an array of records is the data of a structured .npy
 * (little-endian). Counts are of candidates other than the positive; -1 (NaN for masses) if they do
 * not apply. */
typedef struct __attribute__((packed)) fr_record {
    int64_t event;               /* row in the stream, from 0 */
    int64_t source, destination; /* original ids */
    double time;
    uint8_t covered;                       /* the destination is in the catalog */
    uint8_t repeated;                      /* the pair has met before */
    int32_t n;                             /* catalog size including the positive */
    int32_t above, tied;                   /* candidates that score above / equal to the positive */
    int32_t seen_n, seen_above, seen_tied; /* the same among destinations the source has met; seen_n
                                            counts negatives */
    double pop_above, pop_tied, pop_self;  /* shares of the catalog's training popularity */
    /* The same in the time-available catalog; avail_n includes the positive. -1 if the positive is
     * not in it, or if the scorer does not score all of it for every such event. */
    int32_t avail_n, avail_above, avail_tied;
    float score;                                           /* of the positive */
    int32_t pair_count, source_degree, destination_degree; /* events before this one */
    double gap;       /* since the pair's last event; NaN if new */
    int32_t filtered; /* candidates that the protocol's filter removed */
    /* The same as seen_* among destinations that the source has met in the training part. */
    int32_t train_n, train_above, train_tied;
    int32_t tied_before; /* tied candidates that trec_eval puts first: larger id as text */
} fr_record;

/* ---- 9. Scorers: anything that gives every candidate a score (PROTOCOL 4) ---- */

/* The query for a scorer: everything about an event except its destination. */
typedef struct fr_query {
    int32_t event;  /* number in the window, from 0 */
    int32_t source; /* number, ascending by original id */
    double time;    /* seconds since the window's start */
} fr_query;

/* Bytes of a scorer's name including the final 0: enough for any path. */
enum { FR_NAME_MAX = 4224 };

/* For a scorer that can serve any number of `score` calls at the same time. */
#define FR_WORKERS_ANY INT32_MAX

/* How the candidates of a query compare with one candidate (fr_scorer_definition.stand). */
typedef struct fr_standing {
    float score; /* of this candidate */
    /* Destinations that are not in the list below: from level `above` on they score above it, and
     * from level `tied` to above - 1 they tie with it. */
    int32_t tied, above;
    /* The list of destinations with special scores, each once. own_score may be any finite numbers
     * that compare with `score` as the real scores do. The list may contain this candidate. The
     * scorer owns it until its next call. */
    int32_t own;
    const int32_t *destination; /* [own] */
    const float *own_score;     /* [own] */
} fr_standing;

/* The definition of a scorer, for fr_scorer_make. Baselines, trained models, score files, the
 * oracle and plug-ins all use it. Scoring must not change later scores. The score of a candidate
 * must depend only on the query and on observed events. Zero the struct, set `size`, `name` and
 * `score`, and any other field that applies; 0 is right for most scorers. */
typedef struct fr_scorer_definition {
    size_t size;      /* sizeof(fr_scorer_definition): a later release may add fields */
    const char *name; /* as results show it: "my-tgn". Texts are copied */
    /* For trained models; stored with the records. NULL and 0 = none. */
    const char *model;     /* "craft": runs are grouped by it; NULL = the name */
    const char *objective; /* "bce", "bpr" */
    const char *sha256;    /* of its file */
    int64_t seed;
    int64_t epochs_done, epochs_asked;
    int64_t selected; /* the epoch selected on the validation part; 0 = none */

    void *state; /* for the functions below; the fr_scorer owns it, unless fr_scorer_make fails */
    /* Fills scores[count, row] with finite scores for `count` events, ascending; count is 1 to
     * `many`. A row has one entry per candidate in the order of fr_window_candidates (but see
     * catalog_only). An unfilled entry is an error that names it. Each row must have the same bits
     * as a call for this event alone. `worker` (0 .. workers - 1) distinguishes calls that run at
     * the same time. The caller owns queries and scores, which live during the call. May be NULL if
     * there is `part`. */
    fr_status (*score)(void *state, const fr_query *queries, int count, int worker, float *scores,
                       fr_error *err);
    int workers; /* most calls of `score` at the same time; 0 = 1 */
    int many;    /* most events of one call; 0 = 1 */
    /* NULL: the scorer has no memory, and events may be scored in any order. Otherwise it is called
     * exactly once per event of the window, in stream order: after the event's own scoring, and
     * before the scoring of any event that has it in its history. Such a scorer has one worker and
     * scores one event at a time. The event lives during the call. */
    fr_status (*observe)(void *state, const fr_event *event, fr_error *err);
    int32_t start; /* first event to observe: earlier ones are already in the state */
    /* The scorer knows only the catalog: a row has one entry per destination of
     * fr_window_columns.catalog, in that order. It is asked only for events whose destination is in
     * the catalog, and there are no time-available ranks. */
    bool catalog_only;
    /* A hash of everything that scoring must not change, for debug builds; may be NULL. */
    uint64_t (*fingerprint)(const void *state);
    void (*close)(void *state); /* may be NULL */

    /* For scorers whose ranks can be counted without a score vector: all candidates except a few
     * have a score that changes only with their own events. The records equal those of `score`,
     * which is then called only if a vector is needed. O(log + list) per event. May be NULL.
     *
     * level[event], from 0 to events - 1, is the level of the event's destination from this event
     * until its next one; before its first event it is -1. NULL = all destinations are always at
     * level 0. The scorer owns the list, which must not change.
     *
     * `stand` is called for one event at a time, in stream order, after the events below its cut
     * have been observed. */
    const int32_t *level;
    fr_status (*stand)(void *state, const fr_query *query, int32_t destination, fr_standing *out,
                       fr_error *err);

    /* Like `score`, but fills scores[count, to - from] for the entries from .. to - 1 of a row,
     * with the same bits. With it, ranking needs no whole row in memory: it asks for the positive
     * first, then for tiles of candidates. May be NULL if there is `score`. Not for a scorer that
     * observes. */
    fr_status (*part)(void *state, const fr_query *queries, int count, int32_t from, int32_t to,
                      int worker, float *scores, fr_error *err);
    int tile;             /* entries of a part; 0 = few. Shorter rows are asked for as a whole */
    const char *settings; /* of trained models: the family of their settings, "published" */
} fr_scorer_definition;

/* A scorer for one window. The window must outlive it. */
typedef struct fr_scorer fr_scorer;

/* Makes a scorer, which the caller closes. Of the definition only `state` is kept. Contradictory
 * settings are FR_EUSAGE; the caller then still owns the state. */
FR_API FR_MUST_USE fr_status fr_scorer_make(const fr_window *window,
                                            const fr_scorer_definition *definition, fr_scorer **out,
                                            fr_error *err);

/* Opens "FILE.safetensors", "baseline:NAME[,option=value...]", "plugin:FILE.so[,option=value...]",
 * "scores:FILE.npy", "factors:U.npy,V.npy[,BIAS.npy]" or "oracle" for a window. The context's
 * threads become the `workers` of a scorer that needs memory for each of them. The log gets a
 * warning if the training of a checkpoint stopped early. The caller closes the scorer. */
FR_API FR_MUST_USE fr_status fr_scorer_open(const char *spec, const fr_window *window, int64_t seed,
                                            const fr_context *context, fr_scorer **out,
                                            fr_error *err);
/* Scores that are products. The score of an event and a candidate starts with the candidate's bias
 * and adds u[k] * v[k] for ascending k, each by one fused multiply-add in float32. They are
 * computed in tiles and never all in memory. */
typedef struct fr_factors {
    size_t size; /* as every settings struct */
    int64_t rows, columns, width;
    const float *u; /* [rows, width]: one row per covered test event, as in a score file, or one
                       per test event */
    const float *v; /* [columns, width]: one per destination of the catalog; or one per candidate,
                       and then U has one per test event */
    const float *bias; /* [columns]; NULL = 0 */
} fr_factors;
/* The caller owns the arrays, which must outlive the scorer. `about` as in fr_feed_open; V decides
 * whether only the catalog is scored. The caller closes the scorer. */
FR_API FR_MUST_USE fr_status fr_scorer_factors(const fr_window *window, const fr_factors *factors,
                                               const fr_scorer_definition *about, fr_scorer **out,
                                               fr_error *err);
FR_API void fr_scorer_close(fr_scorer *scorer);

/* Texts belong to the scorer. */
typedef struct fr_scorer_facts {
    const char *name;
    const char *model, *objective, *sha256; /* "" = none */
    int64_t seed; /* of the training of a checkpoint; otherwise the one given */
    int64_t epochs_done, epochs_asked, selected;
    int64_t row;       /* scores per event */
    int workers, many; /* as defined, at least 1 */
    bool remembers;    /* it observes events */
    bool catalog_only;
    int32_t observed;     /* events below this number are in its state */
    const char *settings; /* the family of its training's settings, "" = none */
} fr_scorer_facts;
FR_API fr_scorer_facts fr_scorer_get(const fr_scorer *scorer);

/* For programs that need scores instead of ranks. Fills scores[count, row] for events in ascending
 * order. Calls with different workers may run at the same time. */
FR_API FR_MUST_USE fr_status fr_scorer_score(const fr_scorer *scorer, const fr_query *queries,
                                             int count, int worker, float *scores, fr_error *err);
/* Shows the scorer all events below `before` that it has not observed yet, each once. */
FR_API FR_MUST_USE fr_status fr_scorer_observe(fr_scorer *scorer, int32_t before, fr_error *err);

/* A kind of scorer, which can be opened by name. */
typedef struct fr_scorer_kind {
    const char *name;
    const char *summary;      /* one line */
    const char *text;         /* the definition, one paragraph */
    const fr_option *options; /* NULL = none */
    size_t settings;          /* bytes of the settings struct that the options fill */
    /* Fills a zeroed definition except `size`, `name` and `seed`. If it fails after it has set the
     * state, `close` is called. The window lives as long as the scorer. Settings and their texts
     * live only during the call, so copy what you need. */
    fr_status (*open)(const fr_window *window, const void *settings, int64_t seed,
                      fr_scorer_definition *out, fr_error *err);
} fr_scorer_kind;
/* A plug-in is a shared object that exports, with C linkage, `const fr_plugin
 * *fullrank_plugin(void)`. The returned struct must stay valid. It is opened as
 * "plugin:FILE.so[,option=value...]"; a name without '/' is a file in the current directory. It may
 * call the functions of this header. It stays loaded until the program ends.
 *
 * FR_PLUGIN_ABI changes if fr_plugin, fr_scorer_kind, fr_scorer_definition or anything they refer
 * to changes in a way that breaks a compiled plug-in. A plug-in for another number is refused. */
#define FR_PLUGIN_ABI 1
typedef struct fr_plugin {
    int32_t abi; /* FR_PLUGIN_ABI */
    fr_scorer_kind kind;
} fr_plugin;
typedef const fr_plugin *fr_plugin_function(void);
#ifdef __cplusplus
#define FR_PLUGIN extern "C" FR_API
#else
#define FR_PLUGIN FR_API
#endif
/* FR_PLUGIN const fr_plugin *fullrank_plugin(void) { return &mine; } */

/* Loads a plug-in, to show its description, which the plug-in owns. Other files are FR_EINPUT. */
FR_API FR_MUST_USE fr_status fr_plugin_load(const char *file, const fr_scorer_kind **out,
                                            fr_error *err);

/* The baselines, for "baseline:NAME"; NULL after the last. */
FR_API const fr_scorer_kind *fr_baseline_at(int index);

/* ---- 10. Ranking: one score vector per event, records out (PROTOCOL 4, 5) ---- */

typedef struct fr_ranking fr_ranking;

enum {
    FR_CATALOG_FIXED, /* destinations of the training part */
    FR_CATALOG_TIME,
    FR_CATALOG_FILE,
    FR_CATALOG_TRAIN_VAL,
    FR_CATALOG_ALL,
    FR_CATALOG_RANGE
};
enum { FR_TIES_AVERAGE };

/* The protocol of a ranking. Results may be compared only if all fields are equal (PROTOCOL 4). */
typedef struct fr_protocol_facts {
    char *data_sha256;           /* of the stream */
    int64_t window, train, test; /* events */
    int order;                   /* FR_ORDER_* */
    int catalog;                 /* FR_CATALOG_* */
    char *catalog_sha256;        /* over its ids, as in fr_window_facts */
    int64_t catalog_size;
    int oov;                 /* FR_OOV_* */
    int ties;                /* FR_TIES_* */
    double popularity_power; /* as in fr_rank_settings */
    int64_t met;             /* as in fr_rank_settings; 0 = all test events were ranked */
    int64_t val;             /* events for validation */
    int part;                /* FR_PART_*: whose events were ranked */
    int64_t batch;           /* events of a batch for FR_ORDER_BATCH, otherwise 0 */
    int filter;              /* FR_FILTER_* */
    char *negatives_sha256;  /* of the file with given negatives; NULL or "" = none */
    int64_t sample;          /* size of a simple random sample of test events; 0 = all were ranked.
                                Results of a sample are estimates */
    int64_t sample_of;       /* number of events in the part it was drawn from; 0 = no sample */
    int64_t sample_seed;     /* as in fr_rank_settings; 0 = no sample */
} fr_protocol_facts;
/* Its fields, by name and in order; fr_options_text prints one. */
extern FR_API const fr_option fr_protocol_fields[];

/* The number of fields in which two protocols differ; 0 = their results may be compared. Writes
 * "window (32768 against 8192), oov (exclude against zero)" to `out`, at most `size` bytes
 * including the final 0; hashes have 16 digits. `out` may be NULL if `size` is 0. */
FR_API int fr_protocol_compare(const fr_protocol_facts *a, const fr_protocol_facts *b, char *out,
                               size_t size);

enum { FR_SHARE_EVENTS, FR_SHARE_CANDIDATES };

typedef struct fr_rank_settings {
    size_t size;   /* as every settings struct */
    int64_t shard; /* events that one thread takes at a time; results do not depend on it */
    int64_t met;   /* rank only events whose source has met this many other destinations; 0 = all */
    double popularity_power; /* the popularity sampler draws with weights popularity^power */
    int64_t verify;          /* events scored again in another way, for models that have one */
    char *dump_scores;       /* write score vectors to this .npy, and its .json; NULL = no */
    char *events;            /* which of them: all, first:N, every:N or a list of rows 5,9,12 */
    bool force;              /* replace existing files; not in the table */
    char *negatives;  /* rank against the lists of this .npy instead of the catalog; NULL = no */
    bool repeats;     /* an id that is listed twice counts twice; the event's own id is allowed */
    int64_t top;      /* write this many candidates of every ranked event, best first; 0 = none */
    char *top_output; /* to this CSV file (docs/formats.md) */
    /* Rank a simple random sample of this many test events; 0, or as many as there are: all. The
     * sample depends only on sample_seed and the events' rows, so scorers with equal seeds stay
     * paired. A scorer still observes every event. All results are then estimates. */
    int64_t sample_events;
    int64_t sample_seed;
    int share; /* FR_SHARE_*: what the processes of the context share */
} fr_rank_settings;
extern FR_API const fr_option fr_rank_options[FR_OPTIONS_MAX];

/* Writes what must be scored, for programs that make score files. FILE.npy has one row per covered
 * test event in stream order, with the fields event (row of the stream), source (original id) and
 * time. FILE.destinations.npy has the original ids of the catalog (of all candidates, if it depends
 * on time). A score file has these rows and columns, in this order. Only the sample of the settings
 * is used; the list then has the events of the sample, and the score file needs its own list of
 * events. */
typedef struct fr_list {
    int64_t events, destinations;
} fr_list;
FR_API FR_MUST_USE fr_status fr_window_list(const fr_window *window,
                                            const fr_rank_settings *settings, const char *path,
                                            bool force, fr_list *out, fr_error *err);

/* Scores every test event and records the rank of its destination. The caller closes the ranking,
 * which depends on no other handle, and the scorer, which cannot be used again: its state is that
 * after the last event. Processes of the context share the events, or the candidates of every event
 * (settings.share). Process 0 gets the ranking, the same as alone; the others get NULL. They write
 * no score vectors. */
FR_API FR_MUST_USE fr_status fr_rank_run(fr_scorer *scorer, const fr_rank_settings *settings,
                                         const fr_context *context, fr_ranking **out,
                                         fr_error *err);
/* The same for a caller that keeps control of the loop: queries out, scores in, truth back.
 *
 *     fr_feed_open(window, &about, NULL, &feed, &err);
 *     while (fr_feed_next(feed, 200, &queries, &count, &err) == FR_OK && count) {
 *         ... fill scores[count, row] ...
 *         fr_feed_submit(feed, scores, count, &truth, &known, &err);
 *         ... learn truth[known] ...
 *     }
 *     fr_feed_finish(feed, &ranking, &err);
 *     fr_feed_close(feed);
 *
 * The records equal those of fr_rank_run with a scorer that gives the same scores. Nothing is
 * written before fr_feed_finish (except a temporary file of dump_scores), so a feed may be closed
 * at any time. */
typedef struct fr_feed fr_feed;

/* `about` has size, name and the description of the scores (model, objective, sha256, seed, epochs,
 * catalog_only); its functions and state are NULL. The window must outlive the feed. */
FR_API FR_MUST_USE fr_status fr_feed_open(const fr_window *window,
                                          const fr_scorer_definition *about,
                                          const fr_rank_settings *settings, fr_feed **out,
                                          fr_error *err);
FR_API void fr_feed_close(fr_feed *feed);

/* The next test events in stream order, at most `most`; *count 0 = there are no more. The previous
 * ones must have been submitted. All test events come, even those that are not ranked, because
 * leaving them out would reveal something about their destinations. With a sample
 * (settings.sample_events), only the sampled ones among the next `most` events come, or later ones
 * if there are none. The first test event always comes, so that the truth can be returned from
 * there on. The records are rows of those without a sample. The feed owns the queries until the
 * next call. */
FR_API FR_MUST_USE fr_status fr_feed_next(fr_feed *feed, int most, const fr_query **queries,
                                          int *count, fr_error *err);
/* Takes scores[count, row] of the last queries. truth[*known], which the feed owns until the next
 * call, are the events that have become history of the next query. These are the events of the last
 * queries; with strict order, events of one time come when a later time is reached. Events of the
 * training part are not returned; with strict order, those from fr_window_cut of the first query on
 * become history together with the first truth. `truth` and `known` may be NULL. On failure, for
 * example because of a NaN score, nothing has changed, and the scores may be submitted again. */
FR_API FR_MUST_USE fr_status fr_feed_submit(fr_feed *feed, const float *scores, int count,
                                            const fr_event **truth, int *known, fr_error *err);
/* Returns the records when all events have scores. The caller closes the ranking and the feed.
 * RANKS.json will have the largest number of queries in one batch. */
FR_API FR_MUST_USE fr_status fr_feed_finish(fr_feed *feed, fr_ranking **out, fr_error *err);

typedef struct fr_feed_facts {
    int64_t row;       /* scores per query */
    int64_t events;    /* of the test part */
    int64_t submitted; /* of these; with a sample, also those that were skipped */
    int pending;       /* queries without scores */
} fr_feed_facts;
FR_API fr_feed_facts fr_feed_get(const fr_feed *feed);

/* For programs that rank by themselves and keep counts instead of scores. */
typedef struct fr_counts {
    int32_t above, tied;           /* candidates that score above / equal to the positive */
    int32_t seen_above, seen_tied; /* the same among those the source has met; -1 = unknown */
} fr_counts;

/* Makes records from counts of the covered test events in stream order; `count` is their number.
 * Either all or none have the counts among seen destinations. Values that the counts do not provide
 * are -1 or NaN in the records, and metrics that need them are NaN. Counts that contradict the
 * window are FR_EINPUT and name the event. `about` as in fr_feed_open. */
FR_API FR_MUST_USE fr_status fr_rank_counts(const fr_window *window,
                                            const fr_scorer_definition *about,
                                            const fr_counts *counts, int64_t count,
                                            fr_ranking **out, fr_error *err);
/* The same from FILE.npy: int32 or int64 [events, 2] with above and tied, or [events, 4] with
 * seen_above and seen_tied. Its hash is stored with the records. */
FR_API FR_MUST_USE fr_status fr_rank_counts_file(const fr_window *window,
                                                 const fr_scorer_definition *about,
                                                 const char *path, fr_ranking **out, fr_error *err);

/* Writes RANKS.npy and RANKS.json (protocol, scorer, hashes, timings). Existing files are replaced
 * only with `force`; otherwise FR_EFORCE. */
FR_API FR_MUST_USE fr_status fr_ranking_save(const fr_ranking *ranking, const char *path,
                                             bool force, fr_error *err);
/* Checks, before the work, that it can be saved there, by making and removing a temporary file. */
FR_API FR_MUST_USE fr_status fr_ranking_check(const char *path, bool force, fr_error *err);
/* Reads the pair of files; the caller closes the ranking. Records that do not belong to RANKS.json
 * are FR_EINPUT. */
FR_API FR_MUST_USE fr_status fr_ranking_load(const char *path, fr_ranking **out, fr_error *err);
FR_API void fr_ranking_close(fr_ranking *ranking);

/* Records and texts belong to the ranking. */
typedef struct fr_ranking_facts {
    const fr_record *records; /* one per test event, or event of the sample, in stream order */
    int64_t count;
    const char *scorer;
    const char *model;     /* "craft" for a checkpoint, otherwise the scorer; groups runs */
    const char *objective; /* of training: "bce", "bpr"; "" = not trained */
    int64_t seed;          /* of training, or given when the scorer was opened */
    int64_t epochs_done, epochs_asked; /* of training; 0 = not trained, or not known */
    int64_t selected;                  /* epoch selected on the validation part; 0 = none */
    const char *data;                  /* name of the stream's file */
    fr_protocol_facts protocol;        /* its texts belong to the ranking */
    const char *protocol_text;         /* the same as text: "window=32768 train=27852 ..." */
    int oov;                           /* FR_OOV_* of the protocol */
    double seconds;                    /* scoring and ranking */
    double scores_per_second;
    int64_t verified;       /* events scored again by the plain forward pass (--verify) */
    double verified_error;  /* largest difference of a score, relative to its event's largest */
    int64_t verified_ranks; /* of these events: the positive has another rank */
    int64_t covered; /* of a sample (protocol.sample): covered events of the whole part, which is
                        known without ranking */
} fr_ranking_facts;
FR_API fr_ranking_facts fr_ranking_get(const fr_ranking *ranking);

/* ---- 11. Metrics: numbers from rank records alone (PROTOCOL 5-7) ---- */

/* Records are checked first: contradictory counts are FR_EINPUT and name the record. Sums are in
 * record order in float64. docs/metrics.md has the definitions in prose. */

/* The kind of a metric's value: a real number over events (a mean, a median, a difference of
 * means), a number of events, or a share of them. */
enum { FR_KIND_SAMPLER, FR_KIND_MEAN, FR_KIND_COUNT, FR_KIND_SHARE, FR_KIND_SLICE };

/* The definition of a metric, a sampler or a field of slices, to print its help and its values. */
typedef struct fr_definition {
    const char *name;        /* as typed: "mrr", "tgb-hist"; "hits@k" is typed with a number */
    int kind;                /* FR_KIND_* */
    const char *title;       /* a few words for a table */
    const char *explanation; /* one paragraph with the formula */
} fr_definition;

/* The registered metrics and samplers by number from 0; NULL after the last one. */
FR_API const fr_definition *fr_metric_at(int index);
FR_API const fr_definition *fr_sampler_at(int index);
/* Finds what a user types. "hits@7" finds hits@k; "uniform-50" and "uniform" find uniform. *k gets
 * the number, or 0. NULL if the name is unknown. `k` may be NULL. */
FR_API const fr_definition *fr_metric_find(const char *text, int64_t *k);
FR_API const fr_definition *fr_sampler_find(const char *text, int64_t *k);

typedef struct fr_metric_value {
    double value;   /* NaN if no event applies */
    int64_t events; /* number of events behind the value */
} fr_metric_value;

/* A larger difference between the tie rules (metric "tie-spread") needs a warning. */
#define FR_TIE_WARNING 1e-4

/* Computes the named metrics ("mrr", "hits@10", ...) into out[names]. `oov` is FR_OOV_*. */
FR_API FR_MUST_USE fr_status fr_metrics_compute(const fr_record *records, int64_t count, int oov,
                                                const char *const *name, int names,
                                                fr_metric_value *out, fr_error *err);

/* Records of similar events. Everything that is computed from records applies to them. */
typedef struct fr_slice {
    const char *label;        /* "repeated", "4-17", "[0, 3600)" */
    double from, to;          /* from <= value < to; NaN if its events have no number */
    const fr_record *records; /* [events] in their original order */
    int64_t events, ranked;   /* ranked: whose destination is in the catalog */
} fr_slice;

typedef struct fr_slices {
    const char *field; /* "time" */
    int count;
    const fr_slice *slice; /* [count] in ascending order; events without a number are the last */
    void *memory;          /* of all this; the library's */
} fr_slices;

/* The fields that can cut records, by number from 0; NULL after the last one. */
FR_API const fr_definition *fr_slice_field_at(int index);

/* Cuts records by a field: "repeated", "time", "source-degree:5". Numbers are cut at the quantiles
 * of their values into the requested number of slices (default 4 to 10). Edges are whole numbers,
 * unless that would merge slices. Equal values stay together, so there may be fewer slices. No
 * slice is empty, every record is in one slice, and rankings of the same events have the same
 * slices. fr_slices_free frees what `out` points to. */
FR_API FR_MUST_USE fr_status fr_slices_compute(const fr_record *records, int64_t count,
                                               const char *by, fr_slices *out, fr_error *err);
FR_API void fr_slices_free(fr_slices *slices);

enum { FR_SMALL_WHOLE, FR_SMALL_INELIGIBLE };
enum { FR_HITS_MAX = 8 };

/* How negatives are drawn. The lists belong to the caller. */
typedef struct fr_sampling {
    const char *sampler; /* a name of fr_sampler_at; a number at its end is ignored */
    int small;           /* FR_SMALL_*: a pool that is too small is taken whole, or the event is not
                            counted (PROTOCOL 6) */
    int oov;             /* FR_OOV_* */
    const int64_t *k;    /* negatives per event */
    int k_count;
    const int64_t *hits; /* the k of Hits@k, at most FR_HITS_MAX */
    int hits_count;
    void *reserved[4];
} fr_sampling;

/* The K of PROTOCOL 6: 1, 5, 20, 50, 100. */
enum { FR_STANDARD_K = 5 };
extern FR_API const int64_t fr_standard_k[FR_STANDARD_K];

/* A sampled metric without sampling: expectations and standard deviations over all draws. */
typedef struct fr_expected {
    int64_t k;
    int64_t events;           /* counted; if 0, the values below are NaN */
    int64_t ineligible;       /* ranked events of this sampler that are not counted */
    double mrr;               /* expectation of the sampled MRR */
    double sd;                /* its standard deviation over evaluation seeds */
    double hits[FR_HITS_MAX]; /* expected Hits@k, in the order of fr_sampling.hits */
} fr_expected;

/* Fills out[k_count]. An event without any negative is not counted, except by tgb-rnd and tgb-hist,
 * where the positive is first. tgb-hist needs the counts train_*: FR_EINPUT without them. Records
 * of given negatives have nothing to draw from: no event is counted. Equal events are computed
 * once, in the context's threads: O(records + distinct counts * K). */
FR_API FR_MUST_USE fr_status fr_expected_compute(const fr_record *records, int64_t count,
                                                 const fr_sampling *sampling,
                                                 const fr_context *context, fr_expected *out,
                                                 fr_error *err);

/* The same by drawing (PROTOCOL 7, a check): sampled MRR under `seeds` evaluation seeds. */
typedef struct fr_draws {
    int64_t k;
    int64_t events; /* as in fr_expected */
    double mrr;     /* mean over seeds */
    double sd;      /* sample standard deviation over seeds (n-1); NaN for one seed */
} fr_draws;

/* Draws with seed, seed+1, ..., seed+seeds-1, for samplers that take K different negatives of one
 * pool: uniform, source-history, unseen and the four cells of the membership table. Draws are
 * nested: the negatives of a smaller K are the first ones of a larger K. `each`, if not NULL, is
 * double[seeds][k_count] and gets the MRR of every seed. The context's threads share the seeds. */
FR_API FR_MUST_USE fr_status fr_draws_compute(const fr_record *records, int64_t count,
                                              const fr_sampling *sampling, int64_t seed,
                                              int64_t seeds, const fr_context *context,
                                              fr_draws *out, double *each, fr_error *err);

typedef struct fr_interval {
    double low, high; /* NaN = no interval */
} fr_interval;

/* What a confidence interval covers: other stretches of time (the block bootstrap of PROTOCOL 11),
 * or for a sample, all events that it was drawn from (PROTOCOL 15). */
enum { FR_OVER_TIME, FR_OVER_SAMPLE };

/* Confidence intervals of one ranking's metrics. */
typedef struct fr_interval_settings {
    size_t size;       /* as every settings struct */
    int64_t block;     /* consecutive ranked events that are drawn together */
    int64_t resamples; /* of the bootstrap */
    double level;      /* of the interval */
    /* The next two are not in the table. The records are a simple random sample of this many events
     * (protocol.sample_of); 0 = they are all. A block covers the time of `block` of all events, so
     * it has fewer events of the sample. */
    int64_t of;
    int over; /* FR_OVER_*; FR_OVER_SAMPLE needs `of` */
} fr_interval_settings;
extern FR_API const fr_option fr_interval_options[FR_OPTIONS_MAX];

/* Fills out[names] with the intervals of registered metrics. An event that is not ranked belongs to
 * the block of the ranked events before it. With fewer than two blocks there are no intervals, and
 * a metric that is NaN has none. O(resamples * blocks) for a mean over events, O(resamples *
 * records) for any other. With FR_OVER_SAMPLE counts have none, because they count the sample, and
 * means over events take O(records). */
FR_API FR_MUST_USE fr_status fr_intervals_compute(const fr_record *records, int64_t count, int oov,
                                                  const char *const *name, int names,
                                                  const fr_interval_settings *settings,
                                                  int64_t seed, const fr_context *context,
                                                  fr_interval *out, fr_error *err);
/* The same for expected MRR: fills out[k_count]. They cover other stretches of time, but not the
 * randomness of draws (that is fr_expected.sd). */
FR_API FR_MUST_USE fr_status fr_intervals_expected(const fr_record *records, int64_t count,
                                                   const fr_sampling *sampling,
                                                   const fr_interval_settings *settings,
                                                   int64_t seed, const fr_context *context,
                                                   fr_interval *out, fr_error *err);

/* ---- 12. Models and training ---- */

typedef struct fr_model {
    const char *name;    /* as typed: "craft-r" */
    const char *label;   /* as tables show it: "CRAFT-R" */
    const char *summary; /* one line */
    const char *text;    /* the definition, one paragraph */
    const char *options; /* keys of fr_model_options it uses, separated by spaces */
    /* For estimates before anything is measured: microseconds of an event in an epoch of training,
     * and of a score, with the default settings on the two cores of docs/speed.md. */
    double event_time, score_time;
} fr_model;
/* The models by number from 0; NULL after the last one. */
FR_API const fr_model *fr_model_at(int index);
/* The model with this name or label, ignoring case: "craft-r", "CRAFT-R"; NULL if there is none. */
FR_API const fr_model *fr_model_find(const char *text);

enum { FR_EMBEDDING_ATTENTION, FR_EMBEDDING_IDENTITY };
enum { FR_POOL_SLOTS, FR_POOL_REAL };
enum { FR_EMPTY_ZERO, FR_EMPTY_PAD };
enum { FR_NEWEST_FIRST, FR_NEWEST_LAST };
enum { FR_MESSAGE_IDENTITY, FR_MESSAGE_MLP };
enum { FR_CLOCK_WINDOW, FR_CLOCK_FILE };

/* The shape of a model; each model uses only some of these. */
typedef struct fr_model_settings {
    size_t size; /* as every settings struct */
    int64_t dim, heads, layers, history, head_layers;
    double dropout;
    int64_t time_dim, patch, neighbors, tokens, head_width;
    int64_t edge_dim; /* features per event: 0, or all of the data; -1 = all */
    double gamma;
    int embedding, pool; /* FR_EMBEDDING_*, FR_POOL_* */
    bool time_trainable;
    int64_t attend;           /* events that the attention reads; 0 = history */
    double attention_dropout; /* of attention weights; -1 = dropout */
    int64_t write_every;      /* in ranking, a pair memory is written once per this many events */
    int empty, newest;        /* FR_EMPTY_*, FR_NEWEST_* */
    int message, clock;       /* FR_MESSAGE_*, FR_CLOCK_* */
    bool padded;
    bool identities; /* a learned vector for every node */
} fr_model_settings;
extern FR_API const fr_option fr_model_options[FR_OPTIONS_MAX];

enum { FR_OBJECTIVE_BCE, FR_OBJECTIVE_BPR };
enum { FR_FINAL_TRAIN, FR_FINAL_TRAIN_VAL };
enum { FR_NEGATIVES_CATALOG, FR_NEGATIVES_WINDOW };
enum { FR_SHUFFLE_AUTO, FR_SHUFFLE_YES, FR_SHUFFLE_NO };

typedef struct fr_training {
    size_t size;   /* as every settings struct */
    int objective; /* FR_OBJECTIVE_* */
    int64_t epochs, batch_size, seed;
    double rate;        /* learning rate */
    bool deterministic; /* no dropout, stream order, negatives by formula; for comparisons */
    bool resume;        /* continue from the last complete epoch in the output */
    bool force;         /* replace an existing output; not in the table */
    /* Rank every epoch on the window's validation part, and keep the best by this metric: "mrr",
     * "hits@10", "expected-20" (uniform negatives), ... NULL = keep the last epoch. */
    char *select;
    int64_t patience;    /* stop after this many epochs in a row without improvement; 0 = never */
    int final;           /* FR_FINAL_*: train again on both parts for the selected epochs */
    double weight_decay; /* of AdamW: every step reduces parameters by lr times this share */
    int negatives;       /* FR_NEGATIVES_*: where they are drawn from */
    int shuffle;         /* FR_SHUFFLE_*: events in a new random order each epoch */
    char *settings;      /* the family of the options (fr_settings_apply); it is recorded */
} fr_training;
extern FR_API const fr_option fr_training_options[FR_OPTIONS_MAX];

/* Sets the options that a family of settings has for a model, and records the family in the
 * training; other options keep their values. "architecture": all options have their defaults, each
 * model as its own authors published it. "published": as the authors of the paper ran it
 * (docs/models.md). Options set afterwards override it. An unknown family is FR_EUSAGE. */
FR_API FR_MUST_USE fr_status fr_settings_apply(const char *family, const char *name,
                                               fr_model_settings *settings, fr_training *training,
                                               fr_error *err);

/* Trains `name` on the window's training prefix. After every epoch it writes RUN/model.safetensors,
 * RUN/train.json and RUN/state.safetensors (for `resume`). The bits are the same with any number of
 * threads, and with or without interruptions. An option that the model does not use and that is not
 * at its default is FR_EUSAGE.
 *
 * With `select`, model.safetensors is the best epoch so far, and train.json has the curve. With
 * patience alone the metric is mrr. Both are FR_EUSAGE without a validation part. */
FR_API FR_MUST_USE fr_status fr_train_run(const fr_window *window, const char *name,
                                          const fr_model_settings *model,
                                          const fr_training *training, const char *output,
                                          const fr_context *context, fr_error *err);

/* ---- 13. Comparing runs (PROTOCOL 11) ---- */

/* One rank-record file as a run of a model. */
typedef struct fr_compare_run {
    const fr_ranking *ranking;
    const char *file;    /* for messages */
    const char *model;   /* NULL = as in the ranking, with its objective if that is not bce */
    const int64_t *seed; /* NULL = as in the ranking */
    void *reserved[4];
} fr_compare_run;

typedef struct fr_compare_settings {
    size_t size;   /* as every settings struct */
    char *metric;  /* the metric to compare: any of fr_metric_at, with its number if it has one */
    char *sampler; /* of the expected-K columns, a name of fr_sampler_at */
    int small;     /* FR_SMALL_* */
    int64_t block; /* consecutive ranked events that are drawn together */
    int64_t resamples; /* of the bootstrap and the permutation test */
    double level;      /* of all intervals */
    bool force;        /* compare runs with different protocols, with a warning */
    /* Runs may differ in their order, to show the effect of a batch size. The order is then part of
     * the model's name: "tgn, batch:200". */
    bool across_orders;
} fr_compare_settings;
extern FR_API const fr_option fr_compare_options[FR_OPTIONS_MAX];

/* Fewer seeds give no interval over seeds, because it would be too wide to say anything. */
enum { FR_SEEDS_LEAST = 3 };

/* The metric of the second model minus that of the first, under one protocol. */
typedef struct fr_difference {
    double value;
    fr_interval seed_t; /* none with fewer than FR_SEEDS_LEAST seeds */
    fr_interval bootstrap;
    double permutation; /* p of the paired permutation test, two-sided */
    double adjusted;    /* the same after Holm's correction over all pairs of the comparison */
    double flipped;     /* share of resamples that order the models differently than the full
                           catalog does in the same resample */
    double reversed;    /* share of resamples that order them differently than `value` does */
} fr_difference;

/* Which runs of two models are paired. */
enum {
    FR_PAIRING_SEEDS, /* those with equal seeds; others are left out */
    FR_PAIRING_ONE,   /* one untrained model with one run, paired with every run of the other */
    FR_PAIRING_NONE,  /* no common seed: difference of means, with Welch's interval */
};

typedef struct fr_compared_column {
    int64_t k;      /* sampled negatives; 0 = the full catalog */
    int64_t events; /* counted in the first run; 0 = K is larger than the catalog, all is NaN */
    double tau;     /* Kendall's tau between this order of the models and that of the full catalog;
                       NaN if all are equal */
} fr_compared_column;

typedef struct fr_compared_model {
    const char *name;
    int runs;
    const int64_t *seeds;         /* [runs] ascending */
    const double *mean, *sd;      /* [columns] over runs; sd with n - 1, NaN for one run */
    const fr_interval *bootstrap; /* [columns] of the mean, by the block bootstrap */
    /* [columns] of runs over a sample: the mean over all events (PROTOCOL 15). Empty for a metric
     * that is not a mean over events; NULL = all events were ranked. */
    const fr_interval *sample;
} fr_compared_model;

typedef struct fr_compared_pair {
    int first, second; /* models */
    int pairing;       /* FR_PAIRING_* */
    int seeds; /* differences in seed_t; without a common seed, the smaller number of runs */
    const fr_difference *difference; /* [columns] */
    const fr_interval *sample;       /* [columns] of the difference, as in fr_compared_model */
} fr_compared_pair;

/* The comparison owns everything. Columns are every K, then the full catalog. Models are in the
 * order of their first run. Pairs are (0, 1), (0, 2), ..., (1, 2), ... */
typedef struct fr_comparison_facts {
    const char *protocol_text; /* of the first run */
    const char *metric;        /* the compared one */
    int64_t events;            /* ranked, cut into blocks */
    int64_t blocks;
    int columns, models, pairs;
    const fr_compared_column *column;
    const fr_compared_model *model;
    const fr_compared_pair *pair;
    int64_t sample, sample_of; /* as in the protocol of the runs; 0 = all events were ranked */
    int64_t block;             /* ranked events per block; for a sample fewer than requested */
} fr_comparison_facts;

typedef struct fr_comparison fr_comparison;

/* Compares at least two models. Only MRR and Hits@k have expectations over K negatives; other
 * metrics have only the column of the full catalog, so `k_count` must be 0. A metric that is not a
 * mean over events takes O(resamples * events) for every run and pair. Runs must have ranked the
 * same events. Runs with different protocols are FR_EFORCE, with the fields, unless forced. The
 * caller closes the comparison; the rankings may be closed before. */
FR_API FR_MUST_USE fr_status fr_compare(const fr_compare_run *runs, int count, const int64_t *k,
                                        int k_count, const fr_compare_settings *settings,
                                        int64_t seed, const fr_context *context,
                                        fr_comparison **out, fr_error *err);
FR_API void fr_comparison_close(fr_comparison *comparison);
FR_API fr_comparison_facts fr_comparison_get(const fr_comparison *comparison);

/* Explains why two protocols give one scorer different numbers, by switching one setting at a time
 * from the first protocol to the second. */
typedef struct fr_explain_settings {
    size_t size;  /* sizeof(fr_explain_settings) */
    char *from;   /* a name of fr_explain_presets and changes: "tgb,order=stream" */
    char *to;     /* in the same form */
    char *metric; /* "mrr", "hits@k"; any registered one if no negatives are drawn */
    bool average; /* effects are means over all orders of switching, not of the order below */
} fr_explain_settings;
extern FR_API const fr_option fr_explain_options[FR_OPTIONS_MAX];

/* Named protocols. Settings are those of fr_protocol_options, `ties` (average, optimistic,
 * pessimistic, random) and `negatives` (all, or a sampler with its K). */
typedef struct fr_explain_preset {
    const char *name, *settings, *help;
} fr_explain_preset;
enum { FR_EXPLAIN_PRESETS = 3 };
extern FR_API const fr_explain_preset fr_explain_presets[FR_EXPLAIN_PRESETS + 1]; /* ends with 0 */

enum { FR_EXPLAIN_MAX = 9 };
typedef struct fr_explain_step {
    const char *setting;     /* "order" */
    char from[256], to[256]; /* its values */
    double effect;           /* added to the metric by this switch */
    double value;            /* of the metric after this and all earlier steps */
    int64_t events;          /* counted after this and all earlier switches */
} fr_explain_step;

typedef struct fr_explanation {
    double from, to; /* the metric under each protocol: from + all effects = to */
    int64_t from_events, to_events;
    int count;
    /* [count] the settings that differ, in the order window, split, part, order, catalog, filter,
     * oov, ties, negatives. */
    fr_explain_step step[FR_EXPLAIN_MAX];
} fr_explanation;

/* Ranks the scorer of `spec` (fr_scorer_open) under every protocol on the way. A scorer that cannot
 * be opened under one of them, such as a checkpoint of another split, is an error that names the
 * settings. */
FR_API FR_MUST_USE fr_status fr_explain_run(const fr_stream *stream, const char *spec,
                                            const fr_explain_settings *settings, int64_t seed,
                                            const fr_context *context, fr_explanation *out,
                                            fr_error *err);

/* ---- 14. Diagnostics: pair membership, interventions, cost (PROTOCOL 8-10, 12) ---- */

typedef struct fr_minimal_settings {
    size_t size;    /* as every settings struct */
    double penalty; /* of beta: the fit minimises the logistic loss, summed, + penalty/2 beta^2 */
} fr_minimal_settings;
extern FR_API const fr_option fr_minimal_options[FR_OPTIONS_MAX];

/* The scorer b0 + beta M under one kind of negatives. */
typedef struct fr_minimal_fit {
    double q1;              /* probability that the source has met a negative, mean over events */
    double beta_star;       /* logit(p1) - logit(q1): the best beta; may be infinite */
    int64_t negatives;      /* drawn, 20 per event, or fewer if the catalog has no more */
    int64_t seen;           /* of these, those the source has met */
    double intercept, beta; /* b0 and beta learned from positives and drawn negatives */
    double error;           /* standard error of beta, from the curvature of the loss */
} fr_minimal_fit;

typedef struct fr_minimal {
    int64_t test;               /* events of the suffix */
    int64_t eligible, repeated; /* events whose source has met at least 20 others; the repeated */
    double p1;                  /* repeated / eligible */
    fr_minimal_fit random;      /* negatives from the catalog */
    fr_minimal_fit history;     /* negatives from the source's history: q1 is 1 */
} fr_minimal;

/* The minimal scorer on the eligible test events of a window. FR_EINPUT if there are none. */
FR_API FR_MUST_USE fr_status fr_minimal_compute(const fr_window *diagnostic,
                                                const fr_minimal_settings *settings, int64_t seed,
                                                const fr_context *context, fr_minimal *out,
                                                fr_error *err);

/* Repeated or new positives against seen or unseen negatives. */
enum { FR_REPEATED_SEEN, FR_REPEATED_UNSEEN, FR_NEW_SEEN, FR_NEW_UNSEEN, FR_CELLS };
extern FR_API const char *const fr_cell_names[FR_CELLS]; /* of their samplers: repeated-seen, ... */

typedef struct fr_cell {
    const char *name; /* of the sampler: "repeated-seen"; the library's */
    int64_t events;
    double mrr, sd; /* expectation and standard deviation over all draws; NaN if no events */
    double drawn;   /* one nested draw, as a check */
} fr_cell;

typedef struct fr_membership {
    int64_t k;
    int64_t ranked;      /* test events whose destination has occurred before */
    int64_t unavailable; /* the others: their positive is not a candidate of its own event */
    int64_t eligible;    /* ranked events with K seen and K unseen negatives */
    fr_cell cell[FR_CELLS];
} fr_membership;

/* The membership table from records made with the time-available catalog. Records of another
 * catalog are FR_EINPUT, and so is a K for which no event is eligible. */
FR_API FR_MUST_USE fr_status fr_membership_compute(const fr_ranking *ranking, int64_t k,
                                                   int64_t seed, const fr_context *context,
                                                   fr_membership *out, fr_error *err);
/* What an intervention removes from the vector that enters a trained model's scoring head
 * (PROTOCOL 10): nothing, the direction in which pairs that have met differ from others, a random
 * direction, or the direction of labels in random order. */
enum { FR_REMOVE_NOTHING, FR_REMOVE_MEMBERSHIP, FR_REMOVE_RANDOM, FR_REMOVE_SHUFFLED, FR_REMOVALS };
extern FR_API const char *const fr_removal_names[FR_REMOVALS]; /* base, membership, ... */

/* Permanently projects that direction out of the input of the scorer's head. The scorer must be
 * opened from a checkpoint and unused; any other is FR_EUSAGE. If all or none of the training pairs
 * have met, it is FR_EINPUT. `seed` is used for drawn negatives, random direction and shuffled
 * labels. The bits are the same with any number of threads. */
FR_API FR_MUST_USE fr_status fr_scorer_project(fr_scorer *scorer, int what, int64_t seed,
                                               const fr_context *context, fr_error *err);

/* How one direction a separates vectors z of pairs that have met from those that have not. */
typedef struct fr_direction {
    double length; /* |a| */
    double cosine; /* of the angle to the membership direction */
    double auc;    /* probability that a.z is larger for a pair that has met than for another */
    double membership_auc; /* the same along the membership direction, with a removed from z */
} fr_direction;

typedef struct fr_projection {
    int64_t pairs, met;
    int64_t width, rows; /* of z; of the head */
    /* FR_REMOVE_NOTHING has only membership_auc; the rest is NaN. */
    fr_direction direction[FR_REMOVALS];
} fr_projection;

/* The same intervention for models of other programs, from .npy files:
 *
 *   representations  float32 or float64 [pairs, D], the vectors z that enter its scoring head
 *   labels           bool or one-byte int [pairs], 1 = the pair has met before
 *   head             float32 or float64 [rows, D] or [D], the first matrix of the head
 *
 * Writes the directory `output` with head-NAME.npy, of the head's type and shape, and
 * direction-NAME.npy, float64 [D], for membership, random and shuffled. Scores with one of these
 * heads equal scores of vectors without the direction. The directory appears complete or not at
 * all; `force` replaces one made by this function. Non-finite numbers, labels other than 0 and 1,
 * labels of one kind and a direction of length 0 are FR_EINPUT. */
FR_API FR_MUST_USE fr_status fr_project_files(const char *representations, const char *labels,
                                              const char *head, const char *output, bool force,
                                              int64_t seed, const fr_context *context,
                                              fr_projection *out, fr_error *err);

/* ---- 15. Studies: many runs, kept in a ledger (docs/study.md) ---- */

typedef struct fr_study fr_study;

/* Opens the study that `document` describes: a JSON file, its text (which begins with '{') or the
 * name of a built-in study ("paper", "architectures", ...). `directory` is made if it is missing;
 * an existing one must be empty or belong to a study. The call is refused while another process
 * works there with another document, and if the ledger is damaged. Relative paths of data start at
 * `data`; NULL = the folder of the document, or the current one. `directory` NULL = no ledger: for
 * processes other than 0, see fr_study_run. The caller closes the study. */
FR_API FR_MUST_USE fr_status fr_study_open(const char *document, const char *data,
                                           const char *directory, fr_study **out, fr_error *err);
FR_API void fr_study_close(fr_study *study);

/* Does the remaining work. It may be killed at any moment and called again, and several processes
 * may work on one study. A unit of work that fails is recorded and does not stop the rest; the call
 * then returns FR_EINPUT at the end. A unit whose record in the ledger has changed is repeated,
 * with a warning.
 *
 * With processes of the context, process 0 has the ledger, assigns units, and does some in a
 * separate thread. The others open the same document without a directory, do units and send back
 * the results. */
FR_API FR_MUST_USE fr_status fr_study_run(fr_study *study, const fr_context *context,
                                          fr_error *err);

/* Forgets the results of units that another version or commit of the library did, so that
 * fr_study_run repeats them; *count is their number. */
FR_API FR_MUST_USE fr_status fr_study_redo(fr_study *study, int64_t *count, fr_error *err);

typedef struct fr_study_unit {
    const char *key;     /* "wikipedia/craft-r/bce/7/rank" */
    const char *kind;    /* "rank" */
    const char *status;  /* "done", "running", "failed", "left", "skipped" */
    const char *message; /* why it failed or was skipped; NULL = none */
    double seconds;      /* its duration, NaN if not done */
} fr_study_unit;

typedef struct fr_study_version {
    const char *tool; /* "0.1.0 4dde9831c2": version and commit */
    int64_t units;    /* done by it */
} fr_study_version;

typedef struct fr_study_state {
    const char *name;
    int64_t count, done, running, failed, left, skipped; /* units */
    double seconds_left;             /* of one process, estimated from similar units */
    int64_t unknown;                 /* units left without a similar one */
    const fr_study_unit *unit;       /* [count] */
    int64_t versions;                /* that did the finished units */
    const fr_study_version *version; /* [versions] */
    void *memory;                    /* of all this; the library's */
} fr_study_state;

/* The progress of the study in `directory`. fr_study_status_free frees what `out` points to. */
FR_API FR_MUST_USE fr_status fr_study_status(const char *directory, fr_study_state *out,
                                             fr_error *err);
FR_API void fr_study_status_free(fr_study_state *state);

/* The document of a built-in study; NULL if there is none with that name. */
FR_API const char *fr_study_preset_find(const char *name);

/* Writes tables/ (.txt, .md, .csv, .tex), figures/ (.svg, .pdf) and report.html into the study's
 * directory, from study.db alone. Everything that is shown was verified. */
FR_API FR_MUST_USE fr_status fr_study_report(const char *directory, const fr_context *context,
                                             fr_error *err);

/* A report from rank records without a study. */
typedef struct fr_report_settings {
    size_t size;  /* as every settings struct */
    char *name;   /* its title; NULL = the name of the data */
    char *gain;   /* "A,B": models whose difference is shown, B minus A; NULL = the first two */
    char *tables; /* a directory that gets tables/, costs/ and figures/; NULL = none */
    bool force;   /* replace existing files; in `tables` only those of a report */
    char *audit;  /* files of fr_audit_text, separated by commas, for a section; NULL = none */
} fr_report_settings;
extern FR_API const fr_option fr_report_options[FR_OPTIONS_MAX];

/* Writes the page of a study (docs/report.md) to `output`, from rank records alone. Tables, figures
 * and numbers equal those of a study with the same records. Runs of one model with different seeds
 * are combined; the name of a model comes from the run, or else from its records. k[k_count] are
 * the numbers of sampled negatives; none = fr_standard_k. Runs with different protocols are
 * FR_EINPUT, with the fields; two runs of one model and seed are FR_EUSAGE. The page and the
 * directory appear complete or not at all. */
FR_API FR_MUST_USE fr_status fr_report_write(const fr_compare_run *runs, int count,
                                             const int64_t *k, int k_count,
                                             const fr_report_settings *settings, const char *output,
                                             const fr_context *context, fr_error *err);

/* The cost of an event as the catalog grows (PROTOCOL 12). */
typedef struct fr_scaling_settings {
    size_t size;     /* as every settings struct */
    int64_t events;  /* ranked test events to measure */
    int64_t repeats; /* per event; the fastest counts */
} fr_scaling_settings;
extern FR_API const fr_option fr_scaling_options[FR_OPTIONS_MAX];

typedef struct fr_scaling_point {
    int64_t size; /* of the catalog, including the positive */
    /* "forward": the model's plain forward pass over these candidates only; "fast": its fast path,
     * which scores every destination; "whole": the same for a scorer without a model; "rank": any
     * scorer, as fr_rank_run ranks (counted ranks over all test events). The library owns it. */
    const char *path;
    int64_t scored; /* destinations with a score */
    int64_t events;
    double seconds;     /* per event, scoring and ranking, of one thread's work */
    double mrr;         /* of these events in this catalog */
    int64_t peak_bytes; /* largest resident memory of the process while it scored */
} fr_scaling_point;
enum { FR_SCALING_MAX = 32 };

/* Measures catalogs of 20, 50, 100, 200, 500, ... and all N destinations: the positive and the
 * first ones of one permutation of the catalog, so each contains the previous one. Fills
 * out[*count], at most FR_SCALING_MAX. Always uses one thread. Processes of the context share the
 * events out and measure at the same time, except "rank"; process 0 gets the points, and *count of
 * the others is 0. */
FR_API FR_MUST_USE fr_status fr_scaling_run(const fr_window *window, const char *spec,
                                            const fr_scaling_settings *settings, int64_t seed,
                                            const fr_context *context, fr_scaling_point *out,
                                            int *count, fr_error *err);

/* ---- 16. Tables: numbers in the usual formats ---- */

/* Text for a terminal, a booktabs table environment, a pipe table, RFC 4180, a <figure> with a
 * <table>. */
enum { FR_FORMAT_TEXT, FR_FORMAT_LATEX, FR_FORMAT_MARKDOWN, FR_FORMAT_CSV, FR_FORMAT_HTML };

/* The content of a cell. Every format writes it in its own way and escapes texts. CSV has all
 * digits, and a column for each part. A NaN value (or end of an interval) is missing. */
enum {
    FR_CELL_EMPTY,
    FR_CELL_TEXT,
    FR_CELL_INTEGER,    /* value */
    FR_CELL_NUMBER,     /* value */
    FR_CELL_MEAN,       /* value and sd; a NaN sd is left out */
    FR_CELL_INTERVAL,   /* low and high */
    FR_CELL_DIFFERENCE, /* value with its sign */
};
typedef struct fr_table_cell {
    int kind; /* FR_CELL_* */
    int decimals;
    const char *text; /* for a missing number or interval; NULL = "--" */
    double value, sd, low, high;
    void *reserved[4];
} fr_table_cell;

/* A table under construction. Calls that add to it do not fail: the first failure is kept, and
 * fr_table_text returns it. */
typedef struct fr_table fr_table;

/* Begins a table; the caller closes it. `protocol`, that of the numbers, follows the caption; in
 * LaTeX it is a comment. Each may be NULL. */
FR_API FR_MUST_USE fr_status fr_table_make(const char *title, const char *caption,
                                           const char *protocol, fr_table **out, fr_error *err);
FR_API void fr_table_close(fr_table *table);
/* Adds a column, before the first row. Neighbours with equal `group` share a head; NULL = none. */
FR_API void fr_table_column(fr_table *table, const char *group, const char *head, bool left);
FR_API void fr_table_row(fr_table *table);
/* Fills the next cell of the row; cells that are not filled are empty. */
FR_API void fr_table_put(fr_table *table, fr_table_cell cell);
/* Marks the best and the second value of a column, counted from 0; a single row has neither. */
FR_API void fr_table_mark(fr_table *table, int column, bool higher_is_better);
/* Adds a line below the table; CSV has none. */
FR_API void fr_table_note(fr_table *table, const char *note);
/* The table as text, which the table owns until the next call. `format` is FR_FORMAT_*. */
FR_API FR_MUST_USE fr_status fr_table_text(fr_table *table, int format, const char **out,
                                           fr_error *err);

/* ---- 17. Audit: does a scorer see what it must not see? (docs/audit.md) ---- */

/* Opens a scorer for a window: the audited one, or a changed one, which lives until that scorer is
 * closed, or longer if it is held. */
typedef fr_status fr_scorer_factory(void *user, const fr_window *window, const fr_context *context,
                                    fr_scorer **out, fr_error *err);

enum {
    FR_AUDIT_FUTURE,
    FR_AUDIT_SAME_TIME,
    FR_AUDIT_BATCH,
    FR_AUDIT_CANDIDATES,
    FR_AUDIT_STATE,
    FR_AUDIT_POSITION,
    FR_AUDIT_NUMBERS,
    FR_AUDIT_CHECKS
};
enum { FR_SEVERITY_LEAK, FR_SEVERITY_BATCH, FR_SEVERITY_NOISE, FR_SEVERITY_NUMERIC, FR_SEVERITIES };
extern FR_API const fr_definition fr_audit_checks[FR_AUDIT_CHECKS]; /* by FR_AUDIT_* */
extern FR_API const char *const fr_severity_names[FR_SEVERITIES];   /* "leak", ... */

typedef struct fr_audit_settings {
    size_t size;      /* as every settings struct */
    char *checks;     /* "all", or names of fr_audit_checks, separated by commas */
    char *events;     /* how many ranked events, or which: "row:142857,142900" of the stream */
    int64_t streams;  /* changed streams of the checks `future` and `same-time` */
    double tolerance; /* for rounding, relative to the event's largest score */
} fr_audit_settings;
extern FR_API const fr_option fr_audit_options[FR_OPTIONS_MAX];

/* Texts belong to the audit. */
typedef struct fr_audit_check {
    bool tested;      /* if not, `note` says why */
    int64_t events;   /* compared */
    int64_t scores;   /* compared */
    int64_t found;    /* events with a difference larger than `tolerance`, or another finding */
    double largest;   /* difference of a score, relative to the largest of its event */
    double tolerance; /* 0 = bits are compared */
    double mrr, changed_mrr; /* of these events, as scored and with the change; NaN = none */
    const char *note;        /* further information; "" = none */
} fr_audit_check;

typedef struct fr_audit_finding {
    int check, severity;   /* FR_AUDIT_*, FR_SEVERITY_* */
    int64_t event;         /* row of the stream; -1 = all */
    int64_t candidate;     /* original id; -1 = all */
    double score, changed; /* of the candidate, as scored and with the change; NaN = none */
    const char *what;      /* what was changed or found */
    const char *reproduce; /* settings that show it: "checks=future,events=row:5,seed=7" */
} fr_audit_finding;

typedef struct fr_audit_facts {
    const char *scorer, *data, *protocol_text, *badge; /* badge: one line for a paper */
    int64_t events, streams, seed;
    double noise; /* largest difference between two equal runs, as in fr_audit_check.largest */
    const fr_audit_check *check; /* [FR_AUDIT_CHECKS] */
    const fr_audit_finding *finding;
    int findings; /* 0 = nothing was found */
} fr_audit_facts;

typedef struct fr_audit fr_audit;

/* Audits the scorer that `open` opens, or if that is NULL, the one that fr_scorer_open opens for
 * `spec`; `spec` is its name in any case. Scores from a file cannot change, so only a few checks
 * are possible, and notes say so. A finding is not a failure. The caller closes the audit. */
FR_API FR_MUST_USE fr_status fr_audit_run(const fr_window *window, const char *spec,
                                          fr_scorer_factory *open, void *user,
                                          const fr_audit_settings *settings, int64_t seed,
                                          const fr_context *context, fr_audit **out, fr_error *err);
FR_API void fr_audit_close(fr_audit *audit);
FR_API fr_audit_facts fr_audit_get(const fr_audit *audit);
/* The whole result as JSON (docs/audit.md); the audit owns the text. */
FR_API FR_MUST_USE fr_status fr_audit_text(fr_audit *audit, const char **out, fr_error *err);

#ifdef __cplusplus
}
#endif
#endif
