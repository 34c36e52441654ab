/* Options of `countersink gate`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_GATE_OPTIONS_H
#define CSINK_GATE_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_GATE_OPTIONS(X)                                                                                          \
	X(VS, 0, "COMMAND", "", CSINK_OPT_NO_TWIN,                                                                     \
	  "compare with this command (quoted as for a shell), running both in turn")                                   \
	X(BASELINE, 'b', "FILE", "", CSINK_OPT_NO_TWIN,                                                                \
	  "compare with the runs in FILE, which --update-baseline wrote")                                              \
	X(UPDATE_BASELINE, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                             \
	  "make the runs and write them to the baseline; compare with nothing")                                        \
	X(SELF_CHECK, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                  \
	  "compare the command with itself: what is found then is false")                                              \
	X(RUNS, 'r', "N", "auto", 0, "runs of each side; auto: until every question is settled or the time is spent")  \
	X(MAX_TIME, 't', "SECONDS", "300", CSINK_OPT_SECONDS, "the time that auto may take")                           \
	X(WARMUP, 'w', "N", "1", 0, "runs of each side beforehand that do not count")                                  \
	X(THRESHOLD, 'T', "PERCENT", "5%", 0, "the smallest change that matters")                                      \
	X(MIN_SHARE, 0, "PERCENT", "1%", 0, "judge functions that take at least this share of the time")               \
	X(ALPHA, 0, "PERCENT", "1%", 0, "how often a gate may find a regression where there is none")                  \
	X(SEED, 0, "N", "", CSINK_OPT_NUMBER,                                                                          \
	  "of all that is random: order, padding, permutations (else by the clock; printed)")                          \
	X(STRICT, 0, "", "0", CSINK_OPT_BOOL, "fail if a regression is not excluded, too")                             \
	X(PIN, 0, "CPU", "", 0, "make all runs on one CPU, counted from 0")                                            \
	X(PLACEMENT, 0, "random|kept", "random", 0,                                                                    \
	  "where in memory the code of each side lies: elsewhere in each run, or where it is")                         \
	X(PREPARE, 0, "COMMAND", "", CSINK_OPT_NO_TWIN, "a shell command before each run, not measured")               \
	X(CLEANUP, 0, "COMMAND", "", CSINK_OPT_NO_TWIN, "a shell command after each run, also if it failed")           \
	X(INPUT, 'i', "FILE", "", CSINK_OPT_NO_TWIN, "the standard input of each run (else /dev/null)")                \
	X(EVENTS, 'e', "LIST", "auto", 0, "as of run: the first one samples, all are counted and judged")              \
	X(FREQUENCY, 'F', "HZ", "4999", CSINK_OPT_NUMBER, "samples a second of each thread's CPU time")                \
	X(ENGINE, 0, "auto|sigtrap|signal|timer|none", "auto", 0, "how samples are taken")                             \
	X(DETERMINISTIC, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                               \
	  "count instructions exactly, under valgrind, instead of measuring time")                                     \
	X(ANY_ENVIRONMENT, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                             \
	  "take a baseline from another machine, event or program")                                                    \
	X(TAP, 'o', "FILE", "-", CSINK_OPT_NO_TWIN, "write TAP 13 to FILE (-: standard output)")                       \
	X(JUNIT, 0, "FILE", "", CSINK_OPT_NO_TWIN, "write JUnit XML to FILE, too")                                     \
	X(JSON, 'j', "FILE", "", CSINK_OPT_NO_TWIN, "write JSON to FILE, too")                                         \
	X(MARKDOWN, 0, "FILE", "", CSINK_OPT_NO_TWIN,                                                                  \
	  "append Markdown to FILE, too (in GitHub's actions also to $GITHUB_STEP_SUMMARY)")                           \
	X(HTML, 0, "FILE", "", CSINK_OPT_NO_TWIN, "write a page with a differential flame graph to FILE, too")         \
	X(GITHUB, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                      \
	  "print annotations for GitHub's actions on standard error (there: the default)")                             \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL, "show no progress")

enum csink_gate_opt {
#define X(id, sh, arg, def, flags, help) CSINK_GATE_OPT_##id,
	CSINK_GATE_OPTIONS(X)
#undef X
		CSINK_NR_GATE_OPTS
};

#endif
