/*
 * Options of `countersink attach`, in the form that launcher/base/options.h describes. Those of run that mean the same
 * keep their environment variables.
 */
#ifndef CSINK_ATTACH_OPTIONS_H
#define CSINK_ATTACH_OPTIONS_H

#include "launcher/base/options.h"
#include "launcher/base/send_url.h"
#include "launcher/session/slices.h"

#define CSINK_ATTACH_OPTIONS(X)                                                                                        \
	X(PID, 'p', "PID[,PID]...", "", CSINK_OPT_NO_ENV,                                                              \
	  "attach to these processes: all threads, descendants, and processes started from now on")                    \
	X(TID, 't', "TID", "", CSINK_OPT_NUMBER | CSINK_OPT_NO_ENV, "attach to this thread only")                      \
	X(CGROUP, 0, "PATH", "", CSINK_OPT_NO_ENV, "attach to all processes in a control group")                       \
	X(DURATION, 'd', "SECONDS", "", CSINK_OPT_SECONDS | CSINK_OPT_NO_ENV,                                          \
	  "stop after this time (default: on Ctrl-C, or when the last target ends)")                                   \
	X(EVENTS, 'e', "LIST", "auto", 0,                                                                              \
	  "events, comma-separated; each one samples (auto: cycles, else task-clock); in a group {a,b} only the "      \
	  "first one")                                                                                                 \
	X(FREQUENCY, 'F', "HZ", "997", CSINK_OPT_NUMBER, "samples a second of each thread's CPU time")                 \
	X(PERIOD, 'c', "N", "", CSINK_OPT_NUMBER, "sample every N events (ns for clocks) instead of --frequency")      \
	X(OUTPUT, 'o', "FILE", "countersink.pb.gz", 0,                                                                 \
	  "profile to write; %p PID, %h host, %c command, %r rank, %t time, %% a percent sign; an older file becomes " \
	  "FILE.old")                                                                                                  \
	X(UNWIND, 0, "auto|dwarf|libunwind|fp|none", "auto", CSINK_OPT_NO_ENV,                                         \
	  "how stacks are walked (auto: dwarf, over a copy of the stack; libunwind where dwarf gives up)")             \
	X(STACK_BYTES, 0, "BYTES", "16K", CSINK_OPT_BYTES | CSINK_OPT_NO_ENV,                                          \
	  "of a stack, from its top, that the kernel copies with a sample, for auto, dwarf and libunwind: 1K to 64K")  \
	X(MAX_DEPTH, 0, "N", "512", CSINK_OPT_NUMBER, "largest number of frames in a stack, at most 512")              \
	X(FRAMES, 0, "auto|native|both", "auto", 0,                                                                    \
	  "functions of Python programs: in place of the evaluator's calls, not shown, or beside them")                \
	X(NO_STOP, 0, "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV,                                                      \
	  "do not stop the targets while attaching; threads and processes started meanwhile may be missing")           \
	CSINK_RESERVATION_OPTIONS(X, "do not attach")                                                                  \
	X(ALL, 'a', "", "0", CSINK_OPT_BOOL, "report every function, not the first 25")                                \
	CSINK_FOLD_NATIVE_OPTION(X, 0)                                                                                 \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL, "print only errors; implies --no-report")                               \
	X(NO_REPORT, 0, "", "0", CSINK_OPT_BOOL, "write the profile without printing the report")                      \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print the counts as JSON on standard output")        \
	CSINK_SEND_PROFILE_OPTIONS(X) CSINK_SLICES_OPTIONS(X)

#define CSINK_ATTACH_OPTION_ID(id, ...) CSINK_ATTACH_OPT_##id,
enum csink_attach_opt { CSINK_ATTACH_OPTIONS(CSINK_ATTACH_OPTION_ID) CSINK_NR_ATTACH_OPTS };

#endif
