/*
 * The one table of options that the run command and the injected library share.
 *
 * From a row derive: the long option (the identifier in lower case, '_' as '-'), its environment variable (COUNTERSINK_
 * and the identifier), --help, --print-config, completion and the man page check. The launcher writes what it resolved
 * back into the environment of the command it starts; the library reads those that are marked CSINK_OPT_LIB.
 */
#ifndef CSINK_SHARED_OPTIONS_H
#define CSINK_SHARED_OPTIONS_H

enum csink_opt_flags {
	CSINK_OPT_LIB = 1 << 0,      /* the injected library reads its variable */
	CSINK_OPT_BOOL = 1 << 1,     /* takes no argument; variable: 1/0, yes/no, true/false, on/off */
	CSINK_OPT_ENV_ONLY = 1 << 2, /* has a variable and no option */
	CSINK_OPT_NUMBER = 1 << 3,   /* a whole number, 1 or more */
	CSINK_OPT_NO_ENV = 1 << 4,   /* has no variable */
	CSINK_OPT_SECONDS = 1 << 5,  /* a time above 0, in seconds; decimals allowed */
	CSINK_OPT_OPTIONAL = 1 << 6, /* the value is attached (--name=value), or left out: "auto" */
	CSINK_OPT_ZERO = 1 << 8,     /* with a number, also of bytes: 0 is one */
	CSINK_OPT_UNITS = 1 << 9,    /* with seconds: s, m, h or d may stand behind */
	CSINK_OPT_SUFFIX = 1 << 10,  /* with a number: K, M or G may stand behind, as with bytes */
	CSINK_OPT_PERCENT = 1 << 11, /* a share above 0 and below 100 %; the sign may be left out */
	CSINK_OPT_BYTES = 1 << 7,    /* a number above 0; with K, M or G after it, times 1,024 once, twice, thrice */
};

/*
 * identifier, short, argument, default, flags, help (one line; shown with the default and the variable).
 * An argument of the form a|b|c lists the values that are allowed.
 */

/* Rows of the commands that reserve counters; otherwise: the effect of "require" without a confirmation. */
#define CSINK_RESERVE_HOOKS "/etc/countersink/reserve.d"
#define CSINK_RESERVE_HOOKS_OPTION(X)                                                                                  \
	X(RESERVE_HOOKS, 0, "DIR", CSINK_RESERVE_HOOKS, 0,                                                             \
	  "directory of programs to run with 'reserve' before and 'release' after")
#define CSINK_RESERVATION_OPTIONS(X, otherwise)                                                                        \
	X(RESERVE, 0, "auto|require|no", "auto", 0,                                                                    \
	  "ask PCP's agent and the hooks to free the hardware counters; require: without a confirmation " otherwise)   \
	X(RESERVE_TIMEOUT, 0, "SECONDS", "1", CSINK_OPT_SECONDS, "how long the reservation may take")                  \
	CSINK_RESERVE_HOOKS_OPTION(X)

/* A row of the commands that print, export or judge profiles. */
#define CSINK_FOLD_NATIVE_OPTION(X, flags)                                                                             \
	X(FOLD_NATIVE, 0, "", "0", CSINK_OPT_BOOL | (flags),                                                           \
	  "add native code to the interpreted or Java function that called it")

#define CSINK_RUN_OPTIONS(X)                                                                                           \
	X(EVENTS, 'e', "LIST", "auto", CSINK_OPT_LIB,                                                                  \
	  "events, comma-separated; the first one samples, all are counted (auto: cycles, else task-clock)")           \
	X(FREQUENCY, 'F', "HZ", "997", CSINK_OPT_LIB | CSINK_OPT_NUMBER, "samples a second of each thread's CPU time") \
	X(PERIOD, 'c', "N", "", CSINK_OPT_LIB | CSINK_OPT_NUMBER | CSINK_OPT_SUFFIX,                                   \
	  "sample every N events (ns for clocks, bytes for alloc; 64K is 65,536) instead of --frequency")              \
	X(OUTPUT, 'o', "FILE", "countersink.pb.gz", CSINK_OPT_LIB,                                                     \
	  "profile to write; %p PID, %h host, %c command, %r rank, %t time, %% a percent sign; an older file becomes " \
	  "FILE.old")                                                                                                  \
	X(ENGINE, 0, "auto|sigtrap|signal|timer|none", "auto", CSINK_OPT_LIB, "how samples are taken")                 \
	X(UNWIND, 0, "auto|dwarf|fp|none", "auto", CSINK_OPT_LIB, "how stacks are walked")                             \
	X(FRAMES, 0, "auto|native|both", "auto", CSINK_OPT_LIB,                                                        \
	  "functions of interpreters and Java: in place of the evaluator's calls, not shown, or beside them")          \
	X(OFF_CPU, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_LIB,                                                         \
	  "also sample where threads block: wall time less CPU time, with full stacks")                                \
	X(LEAKS, 0, "", "0", CSINK_OPT_BOOL,                                                                           \
	  "report allocations that were not freed, but for those of the run's last tenth; implies -e alloc")           \
	X(ALLOC, 0, "BYTES", "", CSINK_OPT_LIB | CSINK_OPT_ENV_ONLY,                                                   \
	  "where libcountersink-alloc.so is preloaded by hand: bytes between samples; the launcher sets it itself")    \
	X(LOCK, 0, "WORD", "", CSINK_OPT_LIB | CSINK_OPT_ENV_ONLY,                                                     \
	  "where libcountersink-lock.so is preloaded by hand: first, to begin the report with it; the launcher sets "  \
	  "it")                                                                                                        \
	X(TIMELINE, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_LIB,                                                        \
	  "also record the time of each sample (16 bytes per sample)")                                                 \
	X(MAX_MEMORY, 0, "MIB", "256", CSINK_OPT_LIB | CSINK_OPT_NUMBER,                                               \
	  "largest recording of a process; excess samples are dropped and reported")                                   \
	X(BUDGET, 0, "PERCENT", "", CSINK_OPT_LIB | CSINK_OPT_PERCENT,                                                 \
	  "sample less often where samples take more of a process's CPU time than this (1%, 0.5%; default: no limit)") \
	X(PLACE, 0, "DIR", "", CSINK_OPT_LIB,                                                                          \
	  "directory for the recordings, while it has room (default: the first that is memory)")                       \
	X(MAX_DEPTH, 0, "N", "512", CSINK_OPT_LIB | CSINK_OPT_NUMBER,                                                  \
	  "largest number of frames in a stack, at most 512")                                                          \
	X(FOLLOW, 0, "NAMES", "all", CSINK_OPT_LIB,                                                                    \
	  "child programs to profile: all, none, or comma-separated names, in which * matches any text and ? any "     \
	  "character")                                                                                                 \
	X(OUTSIDE, 0, "auto|no", "auto", 0,                                                                            \
	  "sample programs that cannot be injected (static, of another C library or word size) from outside")          \
	CSINK_RESERVATION_OPTIONS(X, "the command is not run")                                                         \
	X(DEBUGINFOD, 0, "", "0", CSINK_OPT_BOOL, "fetch missing debug information from DEBUGINFOD_URLS")              \
	X(ALL, 'a', "", "0", CSINK_OPT_BOOL, "report every function, not the first 25")                                \
	CSINK_FOLD_NATIVE_OPTION(X, 0)                                                                                 \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_LIB, "print only errors; implies --no-report")               \
	X(NO_REPORT, 0, "", "0", CSINK_OPT_BOOL, "write the profile without printing the report")                      \
	X(REPORT, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_LIB | CSINK_OPT_ENV_ONLY,                                     \
	  "library without launcher: print the report to stderr at exit")

#define CSINK_RUN_OPTION_ID(id, ...) CSINK_OPT_##id,
enum csink_opt { CSINK_RUN_OPTIONS(CSINK_RUN_OPTION_ID) CSINK_NR_RUN_OPTS };

#define CSINK_ENV_PREFIX "COUNTERSINK_"
/* Set by the launcher for the library, never by people: the run directory that recordings go to. */
#define CSINK_ENV_RUN_DIR CSINK_ENV_PREFIX "RUN_DIR"
/* Set by the launcher for the library: its own pid. Its child is the command, whatever that becomes by exec. */
#define CSINK_ENV_RUN_PARENT CSINK_ENV_PREFIX "RUN_PARENT"
/* Set by the library for its own children where there is no launcher: the pid that makes the profile of them all. */
#define CSINK_ENV_RUN_OWNER CSINK_ENV_PREFIX "RUN_OWNER"
/* Set by the library for the countersink that makes the profile at its end: the recordings may be removed. */
#define CSINK_ENV_RUN_ENDED CSINK_ENV_PREFIX "RUN_ENDED"
/*
 * Set together with the run directory: the description of its machine by csink_run_dir_describe(). A process in a
 * container or on another machine may inherit the directory's path; by this text it knows that it cannot use it.
 */
#define CSINK_ENV_RUN_PLACE CSINK_ENV_PREFIX "RUN_PLACE"
/*
 * Set by the launcher, or by the library for its own children, where there are seccomp filters: how many, and what is
 * deadly under them (enum csink_deadly).
 */
#define CSINK_ENV_RUN_FILTERS CSINK_ENV_PREFIX "RUN_FILTERS"
#define CSINK_RUN_FILTERS_FORMAT "%d:%x"
/* Set by the launcher where /bin/sh, which system(3) and popen(3) start, cannot be injected. */
#define CSINK_ENV_RUN_SHELL CSINK_ENV_PREFIX "RUN_SHELL"
/*
 * Set by the library for a program that posix_spawn(3) starts, and taken away by that program's own: the signals that
 * it is to find ignored, as a hexadecimal number (bit signo - 1). In this process they are ours, and not ignored.
 */
#define CSINK_ENV_IGNORED CSINK_ENV_PREFIX "IGNORED"
/* An option of `countersink salvage`: the library leaves it in the environment of the one that it starts. */
#define CSINK_ENV_MAX_PLACE CSINK_ENV_PREFIX "MAX_PLACE"
/* The library's own default output, when there is no launcher. */
#define CSINK_LIB_DEFAULT_OUTPUT "countersink.%p.pb.gz"

/* The default of CSINK_OPT_FREQUENCY with slices: for programs that run for months. */
#define CSINK_SLICES_FREQUENCY 97
/* As a number: what CSINK_OPT_FREQUENCY says in words. */
#define CSINK_DEFAULT_FREQUENCY 997
/* Samples by a clock cost about as much as their period beyond this rate: the program would hardly run. */
#define CSINK_MAX_CLOCK_FREQUENCY 50000

#endif
