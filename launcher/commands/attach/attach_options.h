/*
 * Options of `countersink attach`, in the form that launcher/base/options.h describes. Those of run that mean the same
 * keep their environment variables.
 */
#ifndef CSINK_ATTACH_OPTIONS_H
#define CSINK_ATTACH_OPTIONS_H

#include "launcher/base/options.h"

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

#endif
