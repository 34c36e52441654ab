/*
 * The harnesses: how each one's cases are listed, chosen and counted. CONTRIBUTING.md describes how to add one. Context
 * of everything here: the launcher's one thread.
 */
#ifndef CSINK_HARNESS_H
#define CSINK_HARNESS_H

#include "launcher/base/message.h"
#include "launcher/gate/gate_command.h"
#include "launcher/gate/suite/suite.h"

/* In the order in which a command is asked whether it is one. */
#define CSINK_SUITE_HARNESSES(X)                                                                                       \
	X(ctest)                                                                                                       \
	X(hyperfine)                                                                                                   \
	X(pytest)                                                                                                      \
	X(vitest)                                                                                                      \
	X(tinybench)                                                                                                   \
	X(gbench)                                                                                                      \
	X(catch2)                                                                                                      \
	X(criterion)                                                                                                   \
	X(gotest)                                                                                                      \
	X(jmh)                                                                                                         \
	X(lines)

#define CSINK_SUITE_ASK_SECONDS 60 /* a list takes as long at most */

#define CSINK_SUITE_MAX_FIGURES 20
#define CSINK_SUITE_MAX_UNIT 15   /* bytes; a figure with a longer one is not judged */
#define CSINK_SUITE_OWN_FIGURES 4 /* that --printed has no part in, at most */

/* What a harness reports of a case, beside its time: an iteration's, the most that there was at once, or a rate. */
struct csink_suite_figure {
	char name[64], title[80], unit[16]; /* as of a metric (gate.h) */
	double value;
	bool is_printed; /* judged with --printed only */
	bool more_is_better;
	const char *why; /* it is not judged, behind "since"; NULL: it is, if its value can be */
};

struct csink_suite_figures {
	struct csink_suite_figure all[CSINK_SUITE_MAX_FIGURES];
	uint32_t nr;
	char surplus[80]; /* the first title for which there was no room; "": there was for all */
};

enum csink_suite_better { CSINK_SUITE_BETTER_UNKNOWN, CSINK_SUITE_BETTER_MORE, CSINK_SUITE_BETTER_LESS };

struct csink_suite_harness {
	const char *name;

	/** Is the command one of this harness? It may be asked. Returns 1, 0 or -errno. NULL: it has to be named. */
	int (*is_kind)(struct csink_suite *suite);

	/** Add the cases of a side (csink_suite_case_add), and see what the harness can do. Returns 0, or -errno with
	 * suite->error. */
	int (*list)(struct csink_suite *suite, int side);

	/** Append what chooses exactly that case and that work to job->argv, which has the side's command already
	 * (where list has given each case its job, that one). n: iterations, or of what is_by_time ns. Lack of memory
	 * is remembered in the words. NULL: that job is the whole command. */
	void (*choose)(struct csink_suite *suite, const struct csink_suite_case *c, int side, uint64_t n,
		       struct csink_suite_job *job);

	/**
	 * How many iterations of the case were made, by what a run of it printed and reported.
	 * @out     its standard output; NULL: not kept
	 * @report  the harness's file; NULL: there is none
	 * Returns a number above 0; 0: the case was not run; below 0: it failed (why). NULL: the harness says nothing,
	 * and status 0 will do.
	 */
	double (*count)(struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size);

	/** Of harnesses whose processes do much else: is this function called for nothing but the iterations of the
	 * case (a struct csink_suite_case)? Only the samples below such functions are judged. NULL: all are. */
	bool (*holds)(void *c, int side, const char *function);

	/**
	 * Append what runs all of these cases in one process, each for its own number of iterations and below the
	 * function c->frame. The process appends to suite->report what struct csink_suite_reported has. NULL: it takes
	 * a process for each case. Returns 0, or -errno with suite->error.
	 */
	int (*choose_all)(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
			  struct csink_suite_job *job);

	/** How many seconds those iterations took, by the same report as for count; NAN: it does not say so. NULL: CPU
	 * time is measured. */
	double (*seconds)(const struct csink_suite_case *c, const char *out, const char *report);

	/** Append figures of the case in what a measured run printed (prints_number) or reported. NULL: it has none. */
	void (*figures)(const struct csink_suite_case *c, const char *text, struct csink_suite_figures *figures);

	bool by_time;       /* it takes no number, but a time: see is_by_time */
	bool prints_number; /* what count needs is printed, in measured runs, too */
	bool varies;        /* equal numbers do not give equal work: each run is divided by what count says of it */
	bool one_run;       /* a run is one iteration: there is no number to choose */
	/* The number is chosen by a word of the command, which may have none: NULL or the function that says so. */
	bool (*takes_number)(const struct csink_suite *suite);
	/* The least seconds of an iteration at which exact numbers pay; of what is cheaper, a time is chosen. NULL:
	 * any. */
	double (*cheapest)(const struct csink_suite *suite);
};

#define X(name) extern const struct csink_suite_harness csink_suite_##name;
CSINK_SUITE_HARNESSES(X)
#undef X

/** Give the reason of a failure in suite->error. Returns err. */
#define CSINK_SUITE_WHY(suite, err, ...) csink_why(err, (suite)->error, sizeof((suite)->error), __VA_ARGS__)

/* ---- suite_cases.c: what functions that list cases share ---- */

/** Run a job and free it; one without a directory runs where the side does. Returns 0 (csink_suite_answer_free,
 * whatever the status), or -errno with suite->error; -EINTR and -ENOMEM need none. */
int csink_suite_ask_job(struct csink_suite *suite, int side, struct csink_suite_job *job,
			struct csink_suite_answer *answer);

/** The same with a side's command and some more words, ended by NULL. */
int csink_suite_ask_side(struct csink_suite *suite, int side, const char *const *more,
			 struct csink_suite_answer *answer);

/** The same, and a status other than 0 is an error. */
int csink_suite_ask_list(struct csink_suite *suite, int side, const char *const *more,
			 struct csink_suite_answer *answer);

/** Begin a job with a side's command, and where that runs; or with what the case's own list gives. Lack of memory is
 * remembered in the words. */
void csink_suite_begin_job(struct csink_suite *suite, int side, const struct csink_suite_job *given,
			   struct csink_suite_job *job);

/** Returns 0, or -ENOMEM: some of the job is missing. */
int csink_suite_check_job(const struct csink_suite_job *job);

/** Add a case for each line that is not empty. @name_of  the length of the name that a line begins with; 0: it has
 * none; NULL: the whole line is the name. Returns 0 or -ENOMEM. */
int csink_suite_add_lines(struct csink_suite *suite, int side, const char *text,
			  size_t (*name_of)(const char *line, size_t len));

/** Ask a side for its cases (csink_suite_ask_list), and add one for each line of the answer. Returns as both. */
int csink_suite_list_lines(struct csink_suite *suite, int side, const char *const *more,
			   size_t (*name_of)(const char *line, size_t len));

/* ---- suite_figures.c ---- */

/** Append one of the CSINK_SUITE_OWN_FIGURES. */
void csink_suite_add_figure(struct csink_suite_figures *figures, const struct csink_suite_figure *figure, double value);

/**
 * Append a figure that is called as it is printed, or give the one of that title another value.
 * @unit   of more than 15 bytes: the figure is not judged
 * @value  NAN: what was printed is no number
 */
void csink_suite_print_figure(struct csink_suite_figures *figures, const char *title, size_t len, const char *unit,
			      enum csink_suite_better better, double value);

/** Add what the harness reports of the latest run of a case to that run. text: as of figures; may be NULL. */
void csink_suite_take_figures(struct csink_suite *suite, struct csink_suite_case *c, const char *text);

/** After the runs: note the figures that were not judged, with the reasons. */
void csink_suite_note_figures(struct csink_suite *suite);

/* ---- suite_module.c: for harnesses into whose processes a module is loaded ---- */

/** Put the module where the harness can load it, once: suite->module is its path. Returns 0, or -errno with
 * suite->error. */
int csink_suite_write_module(struct csink_suite *suite, const char *name, const char *text);

/**
 * Give the module some cases, by its environment: COUNTERSINK_CASES is a file of JSON, a list of what each is called
 * ("name": its place, or its name), its index ("case"), the function that it makes its iterations in ("function"), and
 * how many ("number"); COUNTERSINK_CASES_REPORT is suite->report.
 * @n  iterations of the only case; 0: each case's own.
 * Returns 0, -ENOMEM, or another -errno with suite->error.
 */
int csink_suite_put_cases(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
			  uint64_t n, struct csink_suite_job *job);

/** Append the files that the cases are in, each once. @file_of  the length of the file's name that a case's begins with
 */
void csink_suite_put_files(struct csink_suite_case *const *cases, uint32_t nr, size_t (*file_of)(const char *name),
			   struct csink_suite_words *argv);

/* What a module reports, in lines of JSON: "case", and "begins", "error" or "skipped" (and why), "iterations" and
 * "seconds" of CPU time and whether they were "async", or "ends": nothing is left of the case, its fixtures included.
 */
struct csink_suite_reported {
	double index; /* in suite->cases; NAN: none */
	bool begins, ends, is_async;
	double made, seconds; /* iterations and their CPU time; 0: none */
	char error[700];      /* "": none */
};

/** The next line of a report; the report may be NULL. Returns false where there is none. */
bool csink_suite_next_reported(const char **report, struct csink_suite_reported *line);

/* Of struct csink_suite_harness. */
double csink_suite_module_count(struct csink_suite_case *c, const char *out, const char *report, char *why,
				size_t size);
double csink_suite_module_seconds(const struct csink_suite_case *c, const char *out, const char *report);

#endif
