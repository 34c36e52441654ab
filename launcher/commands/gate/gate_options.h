/* Options of `countersink gate`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_GATE_OPTIONS_H
#define CSINK_GATE_OPTIONS_H

#include "include/internal/shared_options.h"
#include "launcher/base/options.h"
#include "launcher/gate/suite/harness.h"

#define CSINK_GATE_KIND(name) "|" #name

#define CSINK_GATE_OPTIONS(X)                                                                                          \
	X(VS, 0, "COMMAND", "", CSINK_OPT_NO_ENV,                                                                      \
	  "compare with this command (quoted as for a shell); the runs alternate")                                     \
	X(VS_DIR, 0, "DIR", "", CSINK_OPT_NO_ENV, "of a suite: compare with the same command, run in this directory")  \
	X(SUITE, 0, "auto" CSINK_SUITE_HARNESSES(CSINK_GATE_KIND), "", CSINK_OPT_NO_ENV | CSINK_OPT_OPTIONAL,          \
	  "the commands are benchmark harnesses: compare each of their cases (auto: which one, by asking)")            \
	X(LIST, 0, "COMMAND", "", CSINK_OPT_NO_ENV,                                                                    \
	  "of --suite=lines: prints a case in each line; {case} in the commands is its name, {n} a number")            \
	X(CASES, 0, "REGEX", "", CSINK_OPT_NO_ENV, "of a suite: only the cases whose names match")                     \
	X(LIST_CASES, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                   \
	  "of a suite: print the cases and their commands, and stop")                                                  \
	X(RUN_TIME, 0, "TIME", "30ms", 0, "of a suite: how long a run of a case is to take")                           \
	X(PROCESS, 0, "auto|case|suite", "auto", 0,                                                                    \
	  "of a suite: a process for each case, or one for all (auto: if starting it takes longer than a case)")       \
	X(SCREEN, 0, "N", "20", 0, "of a suite: pairs of runs by which cases are screened; 0: confirm all")            \
	X(CONFIRM, 0, "N", "20", 0,                                                                                    \
	  "of a suite: fresh pairs of runs by which a case is judged first; open ones get more")                       \
	X(PRINTED, 0, "", "0", CSINK_OPT_BOOL,                                                                         \
	  "of a suite: also judge the rates that google-benchmark or go test prints, where less is a regression")      \
	X(BASELINE, 'b', "FILE", "", CSINK_OPT_NO_ENV, "compare with the runs in FILE, written by --update-baseline")  \
	X(UPDATE_BASELINE, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                              \
	  "make the runs and write them to the baseline, without comparing")                                           \
	X(SELF_CHECK, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                   \
	  "compare the command with itself: any regression reported is a false positive")                              \
	X(RUNS, 'r', "N", "auto", 0, "runs per side; auto: until every question is settled or --max-time is used up")  \
	X(MAX_TIME, 't', "SECONDS", "300", CSINK_OPT_SECONDS, "time limit of --runs=auto")                             \
	X(WARMUP, 'w', "N", "1", 0, "unmeasured runs per side beforehand")                                             \
	X(THRESHOLD, 'T', "PERCENT", "5%", 0, "smallest change that counts as a regression or improvement")            \
	X(MIN_SHARE, 0, "PERCENT", "1%", 0, "judge functions with at least this share of the time")                    \
	X(ALPHA, 0, "PERCENT", "1%", 0, "accepted rate of false positives")                                            \
	X(SEED, 0, "N", "", CSINK_OPT_NUMBER, "random seed (default: from the clock; printed)")                        \
	X(STRICT, 0, "", "0", CSINK_OPT_BOOL, "also fail on inconclusive results")                                     \
	X(PIN, 0, "CPU", "auto", 0, "auto: each pair of runs with one thread on one CPU; no; or all runs on this CPU") \
	X(PLACEMENT, 0, "random|kept", "random", 0, "randomize page placement per run, or keep it")                    \
	X(PREPARE, 0, "COMMAND", "", CSINK_OPT_NO_ENV, "shell command before each run, not measured")                  \
	X(CLEANUP, 0, "COMMAND", "", CSINK_OPT_NO_ENV, "shell command after each run, even a failed one")              \
	X(INPUT, 'i', "FILE", "", CSINK_OPT_NO_ENV, "standard input of each run (default: /dev/null)")                 \
	X(EVENTS, 'e', "LIST", "auto", 0, "events, as for run: the first one samples, all are counted and judged")     \
	X(FREQUENCY, 'F', "HZ", "4999", CSINK_OPT_NUMBER, "samples a second of each thread's CPU time")                \
	CSINK_FOLD_NATIVE_OPTION(X, 0)                                                                                 \
	X(ENGINE, 0, "auto|sigtrap|signal|timer|none", "auto", 0, "how samples are taken")                             \
	X(DETERMINISTIC, 0, "auto|pmu|qemu|callgrind|no", "no", CSINK_OPT_OPTIONAL | CSINK_OPT_NO_ENV,                 \
	  "count instructions exactly instead of measuring time, by this tool; without one: auto")                     \
	X(ANY_ENVIRONMENT, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                              \
	  "accept a baseline from another machine, event or program")                                                  \
	X(TAP, 'o', "FILE", "-", CSINK_OPT_NO_ENV, "write TAP 13 to FILE (-: standard output)")                        \
	X(JUNIT, 0, "FILE", "", CSINK_OPT_NO_ENV, "also write JUnit XML to FILE")                                      \
	X(JSON, 'j', "FILE", "", CSINK_OPT_NO_ENV, "also write JSON to FILE")                                          \
	X(MARKDOWN, 0, "FILE", "", CSINK_OPT_NO_ENV,                                                                   \
	  "also append Markdown to FILE (in GitHub Actions also to $GITHUB_STEP_SUMMARY)")                             \
	X(HTML, 0, "FILE", "", CSINK_OPT_NO_ENV, "also write a page with a differential flame graph to FILE")          \
	X(HTML_LINK, 0, "URL", "", CSINK_OPT_NO_ENV, "where the page of --html will be found, for a link in Markdown") \
	X(BADGE, 0, "FILE", "", CSINK_OPT_NO_ENV,                                                                      \
	  "also write a badge to FILE, as JSON that shields.io reads from a URL")                                      \
	X(VERDICT, 0, "FILE", "", CSINK_OPT_NO_ENV,                                                                    \
	  "also write the verdict to FILE: ok, regressed, inconclusive or error, and a line of JSON")                  \
	X(HISTORY, 0, "FILE", "", CSINK_OPT_NO_ENV,                                                                    \
	  "also append a line with the ratios to FILE, for countersink history")                                       \
	X(ANCHOR, 0, "NAME", "", CSINK_OPT_NO_ENV, "the commit or tag of --vs, which the ratios of --history are to")  \
	X(COMMIT, 0, "NAME", "HEAD", CSINK_OPT_NO_ENV, "the commit of the command, for --history, as git names it")    \
	X(GITHUB, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                       \
	  "print GitHub Actions annotations on standard error (default in GitHub Actions)")                            \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL, "do not show progress")

#define CSINK_GATE_OPTION_ID(id, ...) CSINK_GATE_OPT_##id,
enum csink_gate_opt { CSINK_GATE_OPTIONS(CSINK_GATE_OPTION_ID) CSINK_NR_GATE_OPTS };

#endif
