/* cmd_version.c - which build this is, and how to cite it. */
#include "cli.h"

static int run_version(cli_call *call) {
    fr_version v = fr_version_get();
    if (call->common.json)
        return cli_print_json(json_pack("{s:s, s:s, s:s, s:s}", "version", v.version, "commit",
                                        v.commit, "compiler", v.compiler, "cpu_features",
                                        v.features));
    (void)printf("fullrank %s\n", v.version);
    cli_pair("commit", "%s", v.commit);
    cli_pair("compiler", "%s", v.compiler);
    cli_pair("cpu features", "%s", v.features);
    return CLI_OK;
}

#define SOFTWARE_AUTHOR "The fullrank developers"
#define SOFTWARE_TITLE                                                                             \
    "fullrank: honest evaluation of link prediction in continuous-time dynamic graphs"
#define SOFTWARE_YEAR 2026
#define PAPER_TITLE                                                                                \
    "Back to All-Entity Ranking: Sampler-Dependent Evaluation in Continuous-Time Dynamic Graphs"

static int run_cite(cli_call *call) {
    const char *version = fr_version_get().version;
    char bibtex[1024];
    (void)snprintf(bibtex, sizeof bibtex,
                   "@software{fullrank,\n"
                   "  author  = {{" SOFTWARE_AUTHOR "}},\n"
                   "  title   = {" SOFTWARE_TITLE "},\n"
                   "  version = {%s},\n"
                   "  year    = {%d}\n"
                   "}\n"
                   "\n"
                   "@misc{yu-ha-all-entity-ranking,\n"
                   "  author = {Yu and Ha},\n"
                   "  title  = {{" PAPER_TITLE "}}\n"
                   "}\n",
                   version, SOFTWARE_YEAR);
    if (call->common.json)
        return cli_print_json(json_pack(
            "{s:{s:s, s:s, s:s, s:i}, s:{s:[s, s], s:s}, s:s}", "software", "author",
            SOFTWARE_AUTHOR, "title", SOFTWARE_TITLE, "version", version, "year", SOFTWARE_YEAR,
            "paper", "authors", "Yu", "Ha", "title", PAPER_TITLE, "bibtex", bibtex));
    (void)printf("If you use fullrank in your work, please cite the software and the paper whose\n"
                 "evaluation it implements:\n\n"
                 "  " SOFTWARE_AUTHOR ". " SOFTWARE_TITLE ".\n"
                 "  Version %s, %d.\n\n"
                 "  Yu and Ha. " PAPER_TITLE ".\n\n%s",
                 version, SOFTWARE_YEAR, bibtex);
    return CLI_OK;
}

const cli_command cli_version_command = {
    .name = "version",
    .summary = "Show version, commit, compiler and CPU features",
    .text = "`fullrank --version` does the same. Include this in bug reports.",
    .example = "fullrank version --json",
    .run = run_version,
};

const cli_command cli_cite_command = {
    .name = "cite",
    .summary = "Show how to cite the software and the paper",
    .text = "As text and as BibTeX. `fullrank --cite` does the same.",
    .example = "fullrank cite",
    .run = run_cite,
};
