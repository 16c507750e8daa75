/* terminal.c - everything on stderr, and signals.
 *
 * On a terminal, progress is one line, redrawn at most ten times a second and removed when its
 * stage is done; elsewhere it is a plain line every ten seconds. Any other output removes the bar
 * first, so that lines do not mix. Blanks overwrite it, so that there is no escape sequence at all
 * with NO_COLOR. The first SIGINT, SIGTERM or SIGHUP sets a flag, which the library reads through
 * the cancel callback; the second one ends the process. A mapped file that becomes shorter raises
 * SIGBUS, which ends the process with a message that names the file.
 *
 * The state is global because a process has one terminal and one set of signals.
 */
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { STAGE_SIZE = 256, LINE_SIZE = 1280, BAR = 20 };

static struct {
    bool live;                   /* stderr can redraw lines */
    bool quiet, verbose;         /* --quiet, --verbose */
    bool planned;                /* a plan was printed, so the time of each stage is printed too */
    bool told;                   /* the time of this stage was printed */
    bool study;                  /* the progress is that of a study, in milliseconds */
    volatile sig_atomic_t drawn; /* columns of the bar that are on the screen, before the cursor */
    char stage[STAGE_SIZE];      /* of the progress shown, "" = none */
    uint64_t first, done; /* where the stage began (a resumed download), and where it is now */
    uint64_t total;       /* where it ends, 0 = unknown */
    double began, shown;  /* seconds */
} terminal;

static volatile sig_atomic_t interrupted;

static int number_of(FILE *stream) { return stream == stdout ? cli_fold_output() : fileno(stream); }

static bool is_terminal(FILE *stream) {
    const char *kind = getenv("TERM");
    return isatty(number_of(stream)) && kind && strcmp(kind, "dumb") != 0;
}

static void on_signal(int number) {
    if (interrupted) { /* as if it had not been caught, so that the shell sees the signal */
        (void)signal(number, SIG_DFL);
        (void)raise(number);
        return;
    }
    interrupted = 1;
    static const char text[] = "\nfullrank: stopping; press Ctrl-C again to end at once\n";
    int skip = !terminal.drawn;
    if (terminal.live && !terminal.quiet &&
        write(STDERR_FILENO, text + skip, sizeof text - 1 - (size_t)skip) < 0) {
        /* there is nowhere to report it */
    }
}

/* The bytes are gone, so the process cannot continue; no incomplete file is in place. Several
 * threads may fail at the same time: one reports, the others wait for the end. A handler may not
 * use stdio. */
static void on_lost_bytes(int number, siginfo_t *facts, void *machine) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    (void)machine;
    const char *path = fr_mapped_file(facts->si_addr);
    if (!path) { /* a bug in fullrank: leave it to the system */
        (void)signal(number, SIG_DFL);
        return;
    }
    while (atomic_flag_test_and_set(&told)) (void)pause();
    char shown[LINE_SIZE / 2];
    (void)fr_text_printable(path, shown, sizeof shown);
    const char *const parts[] = {terminal.drawn ? "\n" : "", "fullrank: ", shown,
                                 ": was shortened or could not be read while it was in use\n"};
    char line[LINE_SIZE];
    size_t used = 0;
    for (int k = 0; k < 4; k++)
        for (const char *c = parts[k]; *c && used < sizeof line; c++) line[used++] = *c;
    if (write(STDERR_FILENO, line, used) < 0) {
        /* there is nowhere to report it */
    }
    _exit(CLI_FAILED);
}

/* If a standard stream is closed, the next opened file gets its number, and messages would go into
 * that file. So the number is given to a file that allows only the opposite direction: using it
 * still fails. */
static void take_standard_streams(void) {
    for (int number = 0; number <= 2; number++)
        if (fcntl(number, F_GETFD) < 0)
            (void)open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void cli_terminal_start(void) {
    static char buffer[1 << 16];
    take_standard_streams();
    (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer); /* results come after the bar is gone */
    terminal.live = is_terminal(stderr);
    /* SA_RESTART: an interrupted read is not an error; the library stops at its cancel callback. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER};
    (void)sigemptyset(&action.sa_mask);
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        struct sigaction old;
        (void)sigaction(caught[i], NULL, &old);
        if (old.sa_handler == SIG_IGN) continue; /* nohup and shells ignore it on purpose */
        (void)sigaction(caught[i], &action, NULL);
    }
    struct sigaction lost = {.sa_sigaction = on_lost_bytes, .sa_flags = SA_SIGINFO};
    (void)sigemptyset(&lost.sa_mask);
    (void)sigaction(SIGBUS, &lost, NULL);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file-size limit becomes a failed write with a message */
}

int cli_terminal_width(FILE *stream) {
    struct winsize size;
    if (ioctl(number_of(stream), TIOCGWINSZ, &size) || !size.ws_col) return 80;
    return size.ws_col;
}

const char *cli_style(FILE *stream, cli_look look) {
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[33m", "\033[36m"};
    const char *unwanted = getenv("NO_COLOR");
    if ((unwanted && *unwanted) || !is_terminal(stream)) return "";
    return codes[look];
}

static void erase(void) {
    if (terminal.drawn) (void)fprintf(stderr, "\r%*s\r", (int)terminal.drawn, "");
    terminal.drawn = 0;
}

/* Breaks a text that begins in this column at blanks, so that the terminal need not. */
static void wrap(char *text, int column) {
    int width = cli_terminal_width(stderr);
    char *blank = NULL;
    for (char *c = text; *c; c++) {
        if (*c == ' ') blank = c;
        column += ((unsigned char)*c & 0xc0) != 0x80;
        if (column <= width || !blank) continue;
        *blank = '\n';
        column = (int)(c - blank);
        blank = NULL;
    }
}

/* Prints one line in place of the bar; control characters are escaped. */
static void print_line(cli_look look, const char *kind, const char *text) {
    char line[4 * LINE_SIZE]; /* each byte may become \xHH */
    (void)fr_text_printable(text, line, sizeof line);
    erase();
    (void)fflush(stdout); /* earlier results come before the message about them */
    if (terminal.live) wrap(line, (int)strlen("fullrank: ") + (int)strlen(kind));
    (void)fprintf(stderr, "fullrank: %s%s%s%s\n", cli_style(stderr, look), kind,
                  cli_style(stderr, CLI_PLAIN), line);
}

void cli_terminal_clear(void) {
    erase();
    terminal.stage[0] = 0;
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* "1,234/15,000 events  432/s  0:31 left"; without a total the elapsed time is at the end. */
static void progress_numbers(uint64_t total, const char *unit, double elapsed, char *out,
                             size_t size) {
    bool bytes = !strcmp(unit, "bytes");
    cli_text done = bytes ? cli_megabytes(terminal.done) : cli_count((int64_t)terminal.done);
    cli_text all = bytes ? cli_megabytes(total) : cli_count((int64_t)total);
    double rate = elapsed > 0 ? (double)(terminal.done - terminal.first) / elapsed : 0;
    char speed[48] = "", left[48] = "";
    if (rate > 0) {
        if (bytes)
            (void)snprintf(speed, sizeof speed, "  %s MB/s", cli_megabytes((uint64_t)rate).s);
        else if (rate < 100)
            (void)snprintf(speed, sizeof speed, "  %.1f/s", rate);
        else
            (void)snprintf(speed, sizeof speed, "  %s/s", cli_count((int64_t)rate).s);
    }
    if (!total)
        (void)snprintf(left, sizeof left, "  %s", cli_duration(elapsed).s);
    else if (rate > 0)
        (void)snprintf(left, sizeof left, "  %s left",
                       cli_duration((double)(total - terminal.done) / rate).s);
    (void)snprintf(out, size, "%s%s%s %s%s%s", done.s, total ? "/" : "", total ? all.s : "",
                   bytes ? "MB" : unit, speed, left);
}

/* The number of columns: a letter of several bytes counts once. */
static int columns_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Ends a text after this many columns, with dots if something is cut off. */
static void cut(char *text, int columns) {
    if (columns_of(text) <= columns) return;
    int dots = columns >= 12 ? 3 : 0, n = 0;
    char *c = text;
    for (; *c; c++) {
        if (((unsigned char)*c & 0xc0) != 0x80 && n++ == columns - dots) break;
    }
    (void)memcpy(c, "...", (size_t)dots);
    c[dots] = 0;
}

/* "[====>    ]  34%  1,234/15,000 events  432/s  0:31 left  rank", of at most the terminal's width:
 * a bar where there is room for it, and what does not fit is cut off at the end. */
static void draw_bar(uint64_t total, const char *numbers) {
    char bar[BAR + 1] = "", line[LINE_SIZE];
    int width = cli_terminal_width(stderr) - 1; /* the last column would wrap on some terminals */
    double share = total ? (double)terminal.done / (double)total : 0;
    if (total)
        (void)snprintf(line, sizeof line, "%3d%%  %s  %s", (int)(share * 100), numbers,
                       terminal.stage);
    else
        (void)snprintf(line, sizeof line, "%s  %s", numbers, terminal.stage);
    cut(line, width > 0 ? width : 0);
    int room = width - columns_of(line) - 3; /* few possible widths: no jumping */
    int size = !total ? 0 : room >= BAR ? BAR : room >= BAR / 2 ? BAR / 2 : 0;
    for (int i = 0, full = (int)(share * size); i < size; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    erase();
    if (size)
        (void)fprintf(stderr, "[%s%s%s] ", cli_style(stderr, CLI_CYAN), bar,
                      cli_style(stderr, CLI_PLAIN));
    (void)fputs(line, stderr);
    terminal.drawn = columns_of(line) + (size ? size + 3 : 0);
}

/* A stage with a total may change its text, for example to show the loss. */
static bool same_stage(const char *stage, uint64_t done, uint64_t total) {
    return terminal.stage[0] && done >= terminal.done && total == terminal.total &&
           (total || !strcmp(terminal.stage, stage));
}

/* If there is no bar, prints how long a stage of a plan takes, after its first second. */
static void tell_time(double elapsed) {
    if (terminal.live || !terminal.planned || terminal.told || elapsed < 1) return;
    double part = (double)(terminal.done - terminal.first);
    if (part <= 0) return;
    terminal.told = true;
    double all = elapsed / part * (double)(terminal.total - terminal.first);
    (void)fprintf(stderr, "fullrank: %s: about %s in all, estimated from the first %.1f s\n",
                  terminal.stage, cli_duration(all).s, elapsed);
}

static void on_study(uint64_t total) {
    char left[48];
    double seconds = total > terminal.done ? (double)(total - terminal.done) * 1e-3 : 0;
    (void)snprintf(left, sizeof left, "%s left", cli_duration(seconds).s);
    if (terminal.live)
        draw_bar(total ? total : 1, left);
    else
        (void)fprintf(stderr, "fullrank: %d%% of the study, %s, %s\n",
                      total ? (int)((double)terminal.done / (double)total * 100) : 0, left,
                      terminal.stage);
}

static void on_progress(void *user, const char *stage, uint64_t done, uint64_t total,
                        const char *unit) {
    (void)user;
    if (terminal.quiet) return;
    double time = now();
    char name[STAGE_SIZE];
    bool study = unit && !strcmp(unit, "ms");
    (void)fr_text_printable(stage, name, sizeof name);
    if (!same_stage(name, done, total) && !(study && terminal.study)) {
        cli_terminal_clear();
        terminal.first = done;
        terminal.began = terminal.shown = time;
        terminal.told = false;
    }
    terminal.study = study;
    terminal.total = total;
    memcpy(terminal.stage, name, sizeof name);
    terminal.done = total && done > total ? total : done;
    if (total && done >= total) {
        cli_terminal_clear();
        return;
    }
    if (total && !study) tell_time(time - terminal.began);
    if (time - terminal.shown < (terminal.live ? 0.1 : 10)) return;
    terminal.shown = time;
    if (study) {
        on_study(total);
        return;
    }
    char numbers[256];
    progress_numbers(total, unit ? unit : "", time - terminal.began, numbers, sizeof numbers);
    if (terminal.live)
        draw_bar(total, numbers);
    else
        (void)fprintf(stderr, "fullrank: %s: %s\n", terminal.stage, numbers);
}

static void on_log(void *user, fr_level level, const char *line) {
    (void)user;
    if (level == FR_WARNING)
        print_line(CLI_YELLOW, "warning: ", line);
    else if (!terminal.quiet && (level != FR_DETAIL || terminal.verbose))
        print_line(CLI_BOLD, "note: ", line);
}

static bool on_cancel(void *user) {
    (void)user;
    return interrupted;
}

fr_context cli_terminal_context(const cli_common *common) {
    terminal.quiet = common->quiet;
    terminal.verbose = common->verbose;
    return (fr_context){.log = on_log,
                        .progress = on_progress,
                        .cancel = on_cancel,
                        .threads = (int)common->threads};
}

void cli_format(char *out, size_t size, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int used = vsnprintf(out, size, format, args), half = (int)size / 2 - 3;
    char *whole = used >= (int)size ? malloc((size_t)used + 1) : NULL;
    if (whole) {
        (void)vsnprintf(whole, (size_t)used + 1, format, again);
        (void)snprintf(out, size, "%.*s ... %s", half, whole, whole + used - half);
    }
    va_end(again);
    free(whole);
}

static void print_error(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
static void print_error(const char *format, va_list args) {
    char text[LINE_SIZE];
    cli_format(text, sizeof text, format, args);
    print_line(CLI_PLAIN, "", text);
}

static void print_note(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
static void print_note(const char *format, va_list args) {
    char text[LINE_SIZE];
    cli_format(text, sizeof text, format, args);
    if (!terminal.quiet) print_line(CLI_BOLD, "note: ", text);
}

void cli_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_note(format, args);
    va_end(args);
}

void cli_plan(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (cli_first()) print_note(format, args);
    va_end(args);
    terminal.planned = true;
}

void cli_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_error(format, args);
    va_end(args);
}

int cli_usage(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_error(format, args);
    va_end(args);
    return CLI_USAGE;
}

static const char *forced = "--force replaces it";

void cli_terminal_forced(const char *text) { forced = text; }

int cli_report(fr_status status, const fr_error *err) {
    if (!status) return CLI_OK;
    if (status == FR_EFORCE)
        cli_error("%s; %s", err->message, forced);
    else
        print_line(CLI_PLAIN, "", err->message);
    return status == FR_EUSAGE ? CLI_USAGE : status == FR_ECANCEL ? CLI_INTERRUPTED : CLI_FAILED;
}
