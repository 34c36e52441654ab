/*
 * Options of the launcher's commands: tables, parsing, and the texts that derive from the tables.
 *
 * A value comes from the command line, else from the environment twin (COUNTERSINK_ and the identifier), else from the
 * default. An empty value in the environment counts as unset. Nothing here prints or exits; texts go into buffers or to
 * the stream that the caller gives.
 */
#ifndef CSINK_OPTIONS_H
#define CSINK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "include/internal/options.h"

struct csink_option {
	const char *id; /* "NO_REPORT": the long name and the twin derive from it */
	int short_name; /* 0: none */
	const char *arg;
	const char *def;
	unsigned int flags; /* enum csink_opt_flags */
	const char *help;
};

/* The row of a table: used with the X-macros that list options. */
#define CSINK_OPTION_ROW(id, sh, arg, def, flags, help) {#id, sh, arg, def, flags, help},

/* Of `report`. What it writes to is said for each call: a twin that is meant for run must not make it write. */
#define CSINK_REPORT_OPTIONS(X)                                                                                        \
	X(ALL, 'a', "", "0", CSINK_OPT_BOOL, "report every function, not the first 25")                                \
	X(LIMIT, 'n', "N", "25", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN, "report the first N functions")                 \
	X(TREE, 't', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                      \
	  "print who called whom, from the outermost function")                                                        \
	X(CALLERS, 'c', "FUNCTION", "", CSINK_OPT_NO_TWIN, "print who called FUNCTION (a name or regular expression)") \
	X(ANNOTATE, 0, "FUNCTION", "", CSINK_OPT_NO_TWIN, "print what its lines and instructions cost")                \
	X(FOLD, 0, "PERCENT", "1", CSINK_OPT_NO_TWIN, "of a tree, fold what has less than that")                       \
	X(BY, 0, "function|module|line|thread|process|phase", "function", CSINK_OPT_NO_TWIN, "what to add up by")      \
	X(EVENT, 'e', "NAME", "", CSINK_OPT_NO_TWIN, "what to add up: an event that the profile has")                  \
	X(THREAD, 0, "REGEX", "", CSINK_OPT_NO_TWIN, "only threads whose name or id matches")                          \
	X(COMM, 0, "REGEX", "", CSINK_OPT_NO_TWIN, "only processes whose name or id matches")                          \
	X(MODULE, 0, "REGEX", "", CSINK_OPT_NO_TWIN, "only what ran in the code of matching files")                    \
	X(FOCUS, 0, "REGEX", "", CSINK_OPT_NO_TWIN, "only stacks with a matching function")                            \
	X(IGNORE, 0, "REGEX", "", CSINK_OPT_NO_TWIN, "only stacks without one")                                        \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print JSON")                                        \
	X(CSV, 'x', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print comma-separated values")                       \
	X(DEBUGINFOD, 0, "", "0", CSINK_OPT_BOOL,                                                                      \
	  "of recordings: fetch missing debug information from DEBUGINFOD_URLS")                                       \
	X(NO_PAGER, 0, "", "0", CSINK_OPT_BOOL, "use no pager on a terminal")                                          \
	X(OUTPUT, 'o', "FILE", "", CSINK_OPT_NO_TWIN, "write the profile to FILE, too")                                \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print no report")

enum csink_report_opt {
#define X(id, sh, arg, def, flags, help) CSINK_REPORT_OPT_##id,
	CSINK_REPORT_OPTIONS(X)
#undef X
		CSINK_NR_REPORT_OPTS
};

/* Of `merge`. */
#define CSINK_MERGE_OPTIONS(X)                                                                                         \
	X(OUTPUT, 'o', "FILE", "merged.pb.gz", CSINK_OPT_NO_TWIN,                                                      \
	  "the profile to write; an older file becomes FILE.old")                                                      \
	X(KEEP_IDS, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                    \
	  "keep the numbers of processes and threads and the times of samples")                                        \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "say nothing but errors")

enum csink_merge_opt {
#define X(id, sh, arg, def, flags, help) CSINK_MERGE_OPT_##id,
	CSINK_MERGE_OPTIONS(X)
#undef X
		CSINK_NR_MERGE_OPTS
};

/* Of `diff`. */
#define CSINK_DIFF_OPTIONS(X)                                                                                          \
	X(PER, 0, "run|second|total", "run", CSINK_OPT_NO_TWIN, "what values are counted for")                         \
	X(BY, 0, "function|module|line", "function", CSINK_OPT_NO_TWIN, "what rows are")                               \
	X(STACKS, 's', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "compare whole stacks of such rows")               \
	X(EVENT, 'e', "NAME", "", CSINK_OPT_NO_TWIN, "compare by this event")                                          \
	X(LIMIT, 'n', "N", "25", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN, "print the first N rows")                       \
	X(ALL, 'a', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print every row")                                    \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print JSON")                                        \
	X(HTML, 0, "FILE", "", CSINK_OPT_NO_TWIN, "write a page with a differential flame graph to FILE, too")         \
	X(NO_PAGER, 0, "", "0", CSINK_OPT_BOOL, "use no pager on a terminal")

enum csink_diff_opt {
#define X(id, sh, arg, def, flags, help) CSINK_DIFF_OPT_##id,
	CSINK_DIFF_OPTIONS(X)
#undef X
		CSINK_NR_DIFF_OPTS
};

/* Of `events`. */
#define CSINK_EVENTS_OPTIONS(X)                                                                                        \
	X(USABLE, 'u', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "list only what opens here")                       \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print JSON, with the reason of each refusal")

enum csink_events_opt {
#define X(id, sh, arg, def, flags, help) CSINK_EVENTS_OPT_##id,
	CSINK_EVENTS_OPTIONS(X)
#undef X
		CSINK_NR_EVENTS_OPTS
};

/* Of `doctor`. */
#define CSINK_DOCTOR_OPTIONS(X) X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print JSON")

enum csink_doctor_opt {
#define X(id, sh, arg, def, flags, help) CSINK_DOCTOR_OPT_##id,
	CSINK_DOCTOR_OPTIONS(X)
#undef X
		CSINK_NR_DOCTOR_OPTS
};

/* Of `reserve`: perfalloc(1)'s letters D, d, f, v, and what it has not. */
#define CSINK_RESERVE_OPTIONS(X)                                                                                       \
	X(FOREGROUND, 'D', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                \
	  "hold the reservation in the foreground, until a signal comes (the default)")                                \
	X(BACKGROUND, 'd', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                \
	  "hold it in the background; return when it is made")                                                         \
	X(LOCK_FILE, 'f', "FILE", "", CSINK_OPT_NO_TWIN,                                                               \
	  "the agent's lock file, if it is not $PCP_PMDAS_DIR/perfevent/perflock")                                     \
	X(SHOW_VERSION, 'v', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print the version")                         \
	X(EVENTS, 'e', "LIST", "", CSINK_OPT_NO_TWIN, "see that these events fit on the counters, too")                \
	X(REQUIRE, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "fail unless it is confirmed")                      \
	X(WAIT, 'w', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                      \
	  "wait for others to let go, as long as it takes or --timeout says")                                          \
	X(TIMEOUT, 't', "SECONDS", "1", CSINK_OPT_SECONDS | CSINK_OPT_NO_TWIN, "how long the agent may take")          \
	X(RESERVE_HOOKS, 0, "FOLDER", CSINK_RESERVE_HOOKS, 0,                                                          \
	  "programs to run with 'reserve' before, 'release' after")                                                    \
	X(STATUS, 's', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                    \
	  "say who holds and uses the counters, and what the agent does; reserve nothing")                             \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "with --status: print JSON")                         \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "say nothing but errors")

enum csink_reserve_opt {
#define X(id, sh, arg, def, flags, help) CSINK_RESERVE_OPT_##id,
	CSINK_RESERVE_OPTIONS(X)
#undef X
		CSINK_NR_RESERVE_OPTS
};

/* Of `stat`. */
#define CSINK_STAT_OPTIONS(X)                                                                                          \
	X(EVENTS, 'e', "LIST", "", CSINK_OPT_NO_TWIN,                                                                  \
	  "events to count, comma-separated, at most 32 (else time, scheduling, faults, cycles, instructions, "        \
	  "branches); {a,b} are counted together")                                                                     \
	X(REPEAT, 'r', "N", "1", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN,                                                 \
	  "run the command N times; print the mean and its 95 % confidence interval")                                  \
	X(INTERVAL, 'I', "MS", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN,                                               \
	  "print every MS milliseconds what was counted meanwhile")                                                    \
	X(PER_THREAD, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print what each thread counted, too")           \
	X(OUTPUT, 'o', "FILE", "", CSINK_OPT_NO_TWIN, "write to FILE instead of standard error")                       \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print JSON")                                        \
	X(CSV, 'x', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print comma-separated values")                       \
	X(RESERVE, 0, "auto|require|no", "auto", 0,                                                                    \
	  "ask PCP's agent and the hooks to leave hardware counters to us; require: or do not run the command")        \
	X(RESERVE_TIMEOUT, 0, "SECONDS", "1", CSINK_OPT_SECONDS, "how long that may take")                             \
	X(RESERVE_HOOKS, 0, "FOLDER", CSINK_RESERVE_HOOKS, 0, "programs to run with 'reserve' before, 'release' after")

enum csink_stat_opt {
#define X(id, sh, arg, def, flags, help) CSINK_STAT_OPT_##id,
	CSINK_STAT_OPTIONS(X)
#undef X
		CSINK_NR_STAT_OPTS
};

/* Of `export`. */
#define CSINK_EXPORT_OPTIONS(X)                                                                                        \
	X(FORMAT, 'f', "pprof|folded|html|perf.data|callgrind|speedscope|firefox", "", CSINK_OPT_NO_TWIN,              \
	  "the format; else what the ending of FILE's name stands for")                                                \
	X(OUTPUT, 'o', "FILE", "", CSINK_OPT_NO_TWIN, "write to FILE, not to standard output (-)")                     \
	X(EVENT, 'e', "NAME", "", CSINK_OPT_NO_TWIN,                                                                   \
	  "the event whose values count, for formats that hold one (else the profile's own choice)")                   \
	X(BASE, 'b', "FILE", "", CSINK_OPT_NO_TWIN, "html: show what changed since the profile FILE")

enum csink_export_opt {
#define X(id, sh, arg, def, flags, help) CSINK_EXPORT_OPT_##id,
	CSINK_EXPORT_OPTIONS(X)
#undef X
		CSINK_NR_EXPORT_OPTS
};

/* Of `gate`. */
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

/* Of `persist`. */
#define CSINK_PERSIST_OPTIONS(X)                                                                                       \
	X(EVENT, 'e', "NAME", "task-clock", CSINK_OPT_NO_TWIN, "detach: the event to open")                            \
	X(PID, 'p', "PID", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN,                                                   \
	  "detach: of this process, all its threads, or of this one thread")                                           \
	X(CPU, 'C', "CPU", "", CSINK_OPT_NO_TWIN, "detach: on this CPU, of every process unless --pid is given")       \
	X(PAGES, 'm', "N", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN,                                                   \
	  "detach: keep a ring of N pages, a power of two, of the latest samples; of a process one for each CPU")      \
	X(MODE, 0, "OCTAL", "0600", CSINK_OPT_NO_TWIN, "detach: who may read its values; 0644: everybody")             \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print JSON")                                        \
	X(PERSIST_DIR, 0, "FOLDER", "", 0,                                                                             \
	  "where the keeper's folder is (else $XDG_RUNTIME_DIR, else /tmp/countersink-persist-UID)")

enum csink_persist_opt {
#define X(id, sh, arg, def, flags, help) CSINK_PERSIST_OPT_##id,
	CSINK_PERSIST_OPTIONS(X)
#undef X
		CSINK_NR_PERSIST_OPTS
};

/* Of `attach`: those of run that mean the same keep their twins. */
#define CSINK_ATTACH_OPTIONS(X)                                                                                        \
	X(PID, 'p', "PID[,PID]...", "", CSINK_OPT_NO_TWIN,                                                             \
	  "attach to these processes: all their threads, their descendants, and what they start from now on")          \
	X(TID, 't', "TID", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_TWIN, "attach to this one thread and nothing else")     \
	X(CGROUP, 0, "PATH", "", CSINK_OPT_NO_TWIN, "attach to a control group, whoever is in it")                     \
	X(DURATION, 'd', "SECONDS", "", CSINK_OPT_SECONDS | CSINK_OPT_NO_TWIN,                                         \
	  "stop after that time (else by Ctrl-C, or when the last of them ends)")                                      \
	X(EVENTS, 'e', "LIST", "auto", 0,                                                                              \
	  "events, comma-separated; each one samples (auto: cycles, else task-clock); in {a,b} the first one does")    \
	X(FREQUENCY, 'F', "HZ", "997", CSINK_OPT_NUMBER, "samples a second of each thread's CPU time")                 \
	X(PERIOD, 'c', "N", "", CSINK_OPT_NUMBER, "sample every N events (ns for clocks) instead of --frequency")      \
	X(OUTPUT, 'o', "FILE", "countersink.pb.gz", 0,                                                                 \
	  "profile to write; %p pid, %h host, %c command, %r rank, %% a percent sign; an older file becomes FILE.old") \
	X(UNWIND, 0, "auto|dwarf|fp|none", "auto", CSINK_OPT_NO_TWIN,                                                  \
	  "how stacks are walked (auto: dwarf, over a copy of the stack)")                                             \
	X(MAX_DEPTH, 0, "N", "512", CSINK_OPT_NUMBER, "frames kept of a stack, at most 512")                           \
	X(NO_STOP, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN,                                                     \
	  "do not stop them for the moment of attaching: what they start in it may be missing")                        \
	X(RESERVE, 0, "auto|require|no", "auto", 0,                                                                    \
	  "ask PCP's agent and the hooks to leave hardware counters to us; require: or do not attach")                 \
	X(RESERVE_TIMEOUT, 0, "SECONDS", "1", CSINK_OPT_SECONDS, "how long that may take")                             \
	X(RESERVE_HOOKS, 0, "FOLDER", CSINK_RESERVE_HOOKS, 0,                                                          \
	  "programs to run with 'reserve' before, 'release' after")                                                    \
	X(ALL, 'a', "", "0", CSINK_OPT_BOOL, "report every function, not the first 25")                                \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL, "say nothing but errors; implies --no-report")                          \
	X(NO_REPORT, 0, "", "0", CSINK_OPT_BOOL, "write the profile, print no report")                                 \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_TWIN, "print what was counted as JSON on standard output")

enum csink_attach_opt {
#define X(id, sh, arg, def, flags, help) CSINK_ATTACH_OPT_##id,
	CSINK_ATTACH_OPTIONS(X)
#undef X
		CSINK_NR_ATTACH_OPTS
};

extern const struct csink_option csink_run_options[CSINK_NR_RUN_OPTS];
extern const struct csink_option csink_persist_options[CSINK_NR_PERSIST_OPTS];
extern const struct csink_option csink_stat_options[CSINK_NR_STAT_OPTS];
extern const struct csink_option csink_gate_options[CSINK_NR_GATE_OPTS];
extern const struct csink_option csink_attach_options[CSINK_NR_ATTACH_OPTS];
extern const struct csink_option csink_report_options[CSINK_NR_REPORT_OPTS];
extern const struct csink_option csink_export_options[CSINK_NR_EXPORT_OPTS];
extern const struct csink_option csink_diff_options[CSINK_NR_DIFF_OPTS];
extern const struct csink_option csink_merge_options[CSINK_NR_MERGE_OPTS];
extern const struct csink_option csink_events_options[CSINK_NR_EVENTS_OPTS];
extern const struct csink_option csink_doctor_options[CSINK_NR_DOCTOR_OPTS];
extern const struct csink_option csink_reserve_options[CSINK_NR_RESERVE_OPTS];

/* What every command takes, without a twin. */
enum csink_request {
	CSINK_REQUEST_NONE,
	CSINK_REQUEST_HELP,    /* -h, --help */
	CSINK_REQUEST_VERSION, /* -V, --version */
	CSINK_REQUEST_CONFIG,  /* --print-config */
	CSINK_NR_REQUESTS
};

struct csink_request_option {
	const char *name;
	int short_name;
	const char *help;
};
extern const struct csink_request_option csink_request_options[CSINK_NR_REQUESTS]; /* [0] is empty */

enum csink_option_source { CSINK_FROM_DEFAULT, CSINK_FROM_ENVIRONMENT, CSINK_FROM_OPTION };

#define CSINK_MAX_OPTIONS 32
#define CSINK_OPTION_NAME 32 /* room for a long name, and for a twin's */

struct csink_options {
	const struct csink_option *table;
	uint32_t nr;
	enum csink_request request; /* the first one that was asked for */
	uint32_t last_rank;
	struct csink_option_value {
		const char *text; /* never NULL; points into argv, the environment or the table */
		enum csink_option_source source;
		uint32_t rank; /* from an option: the later it was given, the higher */
	} values[CSINK_MAX_OPTIONS];
	char error[640]; /* on failure: one line: what, why, what to do */
};

/** The long name, "no-report", and the twin, "COUNTERSINK_NO_REPORT"; out has room for CSINK_OPTION_NAME. */
void csink_option_name(const struct csink_option *opt, char *out);
void csink_option_twin(const struct csink_option *opt, char *out);

/**
 * Parse a command line and the environment.
 * @argv  argv[0] is the command's own name and is skipped. Options end at "--" (skipped) or at the first word that is
 *        not one.
 * Returns the index of the first operand (argc if there is none), or -EINVAL and o->error. Once a request (--help ...)
 * is met, the values of the rest are no longer judged, so that help is never refused.
 */
int csink_options_parse(struct csink_options *o, const struct csink_option *table, uint32_t nr, int argc, char **argv);

/** The same for commands that run no other: options may come behind operands, before which they are moved in argv. */
int csink_options_parse_mixed(struct csink_options *o, const struct csink_option *table, uint32_t nr, int argc,
			      char **argv);

/** Where the value of an option comes from, for messages: "option --events", "COUNTERSINK_EVENTS in the environment".
 */
void csink_options_where(const struct csink_options *o, uint32_t index, char *out, size_t size);

/** The value of the option with that index in the table; a boolean as such; a number as such (0 where it is empty); a
 * time in ns (0 likewise). */
const char *csink_options_text(const struct csink_options *o, uint32_t index);
bool csink_options_bool(const struct csink_options *o, uint32_t index);
uint64_t csink_options_number(const struct csink_options *o, uint32_t index);
uint64_t csink_options_seconds(const struct csink_options *o, uint32_t index);

/** Read a boolean: 1/0, yes/no, true/false, on/off, in any case. Returns 1, 0 or -EINVAL. */
int csink_bool_parse(const char *text);

/** Read a whole number from 1 to 2^63 - 1, digits only. Returns 0 or -EINVAL, -ERANGE. */
int csink_number_parse(const char *text, uint64_t *out);

/** Read a time in seconds above 0, as "2" or "0.25", into ns. Returns 0 or -EINVAL, -ERANGE (over 100 days). */
int csink_seconds_parse(const char *text, uint64_t *out_ns);

/** Print text from column at on (blanks up to indent), broken between words at 80; later lines start at indent. */
void csink_print_wrapped(FILE *out, int at, int indent, const char *text);

/** Print the rows of --help for a table, wrapped to 80 columns. */
void csink_options_print_help(FILE *out, const struct csink_option *table, uint32_t nr);

/** Print each value and its source (--print-config), one line each. */
void csink_options_print_config(FILE *out, const struct csink_options *o);

#endif
