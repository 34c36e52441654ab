/*
 * Benchmark suites: many cases of one harness, each of which is run in a process of its own, or with others in one,
 * below a function of its own. suite_ask.c runs a command and keeps what it prints; a harness (harness.h) lists and
 * chooses its cases; suite_cases.c finds the kind and the cases of both sides; suite_work.c finds how much work a run
 * of each does; suite_module.c is for harnesses that load a module of the gate; suite_rounds.c makes the runs in random
 * order; suite_shared.c, where one process runs all cases, since starting it costs more than they do; suite_judge.c
 * comes to verdicts at one error rate over all cases; suite_count.c counts instructions instead of measuring;
 * suite_figures.c takes what a harness itself reports;
 * suite_watchdog.c ends runs that do not end.
 *
 * No command goes through a shell, but where the harness itself has one. Context of everything here: the launcher's one
 * thread.
 */
#ifndef CSINK_SUITE_H
#define CSINK_SUITE_H

#include "launcher/base/table.h"
#include "launcher/collect/run_directory.h"
#include "launcher/gate/gate.h"
#include "launcher/gate/series.h"
#include "launcher/gate/suite/suite_words.h"

struct csink_gate_counting;
struct csink_suite_harness;

/* By enum csink_gate_side: "the old side", "the new side"; for messages. suite_cases.c */
extern const char *const csink_suite_sides[];

/* What a run of one side of a case executes. */
struct csink_suite_job {
	struct csink_suite_words argv;
	char *dir;                    /* where; NULL: where the launcher is */
	struct csink_suite_words env; /* NAME=value, beside the launcher's own; mostly none */
	char *prepare;                /* a shell command before each run; NULL: none */
};

/* How a case ended. */
enum csink_suite_state {
	CSINK_SUITE_PENDING,
	CSINK_SUITE_FAILED,      /* error has the reason */
	CSINK_SUITE_QUIET,       /* screened: no sign of a slowdown */
	CSINK_SUITE_UNCONFIRMED, /* screened: a sign, and no time to confirm it */
	CSINK_SUITE_JUDGED,      /* verdicts has the result */
};

/* The pairs that screened a case, once screening is over, and what they show. */
struct csink_suite_screening {
	struct csink_gate_data data;
	struct csink_gate_verdicts verdicts;
	bool is_judged; /* there are verdicts */
};

struct csink_suite_case {
	char *name;
	bool has[CSINK_GATE_NR_SIDES];                     /* that list it */
	struct csink_suite_job given[CSINK_GATE_NR_SIDES]; /* of harnesses whose list has each case's command */
	uint64_t n;                                        /* iterations of a run */
	bool is_by_time;                                   /* n is a time in ns: runs are divided by their iterations */
	void *own;                                         /* what the harness keeps of it, malloc'ed; NULL: nothing */
	char *place[CSINK_GATE_NR_SIDES]; /* what the harness's module knows it by (suite_module.c); NULL: its name */
	char frame[32];                   /* the function in which that module makes its iterations */
	bool is_async;                    /* they go on below other functions, too */
	bool is_shared;                   /* one process runs it and others: suite_shared.c */
	bool failed_beside;               /* there, by an error of its own */
	double made, work;   /* what the latest such process reports: iterations, and their CPU seconds; 0: none */
	double expected;     /* iterations, as both sides made them when they were found */
	double seconds;      /* that a run took when n was found, the longer side's */
	double pair_seconds; /* that the latest pair took; 0: there is none */
	enum csink_suite_state state;
	char *error;
	struct csink_gate_plan plan;
	struct csink_suite_job jobs[CSINK_GATE_NR_SIDES];
	struct csink_gate_scope scope; /* where harness->holds */
	struct csink_gate_data data;   /* of the pairs that screen it, and then of those that confirm */
	struct csink_suite_screening screening;
	struct csink_gate_pin pin;
	struct csink_gate_verdicts verdicts; /* of those that confirm */
	uint32_t pairs[2];                   /* made to screen, and to confirm */
	double screen_p;                     /* NAN: not screened */
	double p;      /* of the confirmation, over all that was asked of the case, at the latest look */
	bool is_asked; /* it was to be confirmed, and takes part in the division of alpha */
	enum csink_gate_decision decision;    /* of the latest look */
	bool new_first;                       /* in the latest pair */
	struct csink_gate_counting *counting; /* what counts its instructions; NULL: it is measured */
	bool is_whole;                        /* of those, the whole process is judged: its iterations cannot be set */
	bool executes;                        /* its work executes programs that are not counted */
	bool wavers;   /* counts of equal runs differ by more than a small part of the threshold */
	double spread; /* by how much its instructions do: a part of 1 */
};

/* --process: what a process runs. */
enum csink_suite_process { CSINK_SUITE_PROCESS_AUTO, CSINK_SUITE_PROCESS_CASE, CSINK_SUITE_PROCESS_SUITE };

/* The process that runs several cases. */
struct csink_suite_shared {
	struct csink_suite_job jobs[CSINK_GATE_NR_SIDES];
	struct csink_gate_plan plan;
	struct csink_gate_pin pin;
	struct csink_gate_scope *scopes; /* of the cases that are pending */
	double start_seconds;            /* of CPU time, beside the cases */
	double seconds, pair_seconds;    /* as of a case */
	bool new_first;                  /* in the latest pair */
};

#define CSINK_SUITE_MAX_UNJUDGED 32

/* A figure that is not judged, for a note. */
struct csink_suite_unjudged {
	const char *why; /* behind "since" */
	char name[96];
};

struct csink_suite {
	const struct csink_suite_harness *harness;
	char **argv[CSINK_GATE_NR_SIDES];
	const char *dirs[CSINK_GATE_NR_SIDES]; /* NULL: where the launcher is */
	const char *list;                      /* --list; NULL: none */
	const char *chosen;                    /* --cases; NULL: all */
	double run_seconds;                    /* that a run is to take, beside what a process costs to start */
	enum csink_suite_process process;
	struct csink_suite_shared shared;
	bool is_counted;          /* --deterministic: suite_count.c judges the cases */
	uint32_t screen, confirm; /* pairs; screen 0: all are confirmed. confirm: before the first look */
	uint64_t max_time_ns;     /* from start_ns on, the lists of cases included; 0: no limit */
	uint64_t start_ns;
	struct csink_gate_series *series;
	struct csink_gate_looks looks; /* at the runs that confirm */
	bool takes_iterations;         /* the harness takes exact numbers of iterations; else see is_by_time */
	bool takes_fractions;          /* of seconds, where it takes a time */
	struct csink_run_directory directory;
	char report[CSINK_RUN_DIRECTORY_PATH + 8];  /* the harness's, in that directory; "" there is none */
	char module[CSINK_RUN_DIRECTORY_PATH + 16]; /* of harnesses of node and Python: what these load; "" none */
	struct csink_suite_case *cases;
	uint32_t nr, cap;
	struct csink_table known;              /* the cases by name: index + 1; empty once all are listed */
	uint32_t nr_only[CSINK_GATE_NR_SIDES]; /* cases that one side alone has; they are in a note */
	bool printed;                          /* --printed */
	struct csink_suite_unjudged unjudged[CSINK_SUITE_MAX_UNJUDGED];
	uint32_t nr_unjudged;
	int watchdog_fd; /* suite_watchdog.c; -1: none */
	int watchdog_pid;
	char error[3072];
};

/* ---- suite_ask.c ---- */

struct csink_suite_answer {
	char *out, *err; /* what it printed, ended by a NUL; of much the beginning */
	size_t out_bytes, err_bytes;
	int status; /* waitpid(2)'s */
	int exec_errno;
	bool timed_out;  /* and was killed */
	bool is_endless; /* timed out, since it printed without end */
	bool is_late;    /* where it timed out: at the end of --max-time */
	double seconds, cpu_seconds;
};

/**
 * Run a job to its end, with its streams kept and no profiler. It is killed where it takes longer than the limit, or
 * than --max-time.
 * Returns 0 (csink_suite_answer_free it), -EINTR (a signal for the gate), or another -errno.
 */
int csink_suite_ask(struct csink_suite *suite, const struct csink_suite_job *job, double limit_seconds,
		    struct csink_suite_answer *answer);
void csink_suite_answer_free(struct csink_suite_answer *answer);

/** Did it run, and end with status 0? */
static inline bool csink_suite_answer_is_ok(const struct csink_suite_answer *answer)
{
	return !answer->exec_errno && !answer->timed_out && !answer->status;
}

/** Why an answer is not ok: "signal 11 (Segmentation fault); its standard error: ...". Returns out; NULL: it is. */
const char *csink_suite_answer_error(const struct csink_suite_answer *answer, char *out, size_t size);

/** Go to a job's directory and environment, and back. Returns a number for leave, or -errno: nothing was changed. */
int csink_suite_enter(const struct csink_suite_job *job);
void csink_suite_leave(const struct csink_suite_job *job, int entered);

/** Kill what a process has started, and that in turn. @except  0, or a child that stays. */
void csink_suite_kill_children(int pid, int except);

void csink_suite_job_free(struct csink_suite_job *job);

/* ---- suite_watchdog.c: a process that ends a run that does not end by itself ---- */

/** Fork the watchdog. Returns 0 or -errno: there is none, and the next two do nothing. */
int csink_suite_watchdog_start(struct csink_suite *suite);
void csink_suite_watchdog_stop(struct csink_suite *suite);

/** Have the next run killed, with all that it started, if it takes longer. @limit_seconds  0: the run has ended. */
void csink_suite_watch(struct csink_suite *suite, double limit_seconds);

/* ---- suite_cases.c ---- */

/** The harness of that name; "auto": found by asking the command. Returns 0, -EINTR or -EINVAL (error). */
int csink_suite_find_kind(struct csink_suite *suite, const char *name);

/** List the cases of both sides. Returns 0, -EINTR, -ENODATA (it lists none: error), -EINVAL (error) or -ENOMEM. */
int csink_suite_list(struct csink_suite *suite);

/** Add a case that a side has. Returns it, also where it was there already; NULL without memory. */
struct csink_suite_case *csink_suite_case_add(struct csink_suite *suite, int side, const char *name, size_t len);

/** The command of a case on a side, for n iterations: in job, which is emptied before. Returns 0 or -ENOMEM. */
int csink_suite_command(struct csink_suite *suite, struct csink_suite_case *c, int side, uint64_t n,
			struct csink_suite_job *job);

/** Give up a case: its error is this message, and its state CSINK_SUITE_FAILED. */
__attribute__((format(printf, 2, 3))) void csink_suite_case_fail(struct csink_suite_case *c, const char *fmt, ...);

/** Make the directory of the harness's report. Without it, harnesses that need one fail with a reason. */
void csink_suite_make_directory(struct csink_suite *suite);

/** Free all that a suite holds, and remove that directory with all that is in it. */
void csink_suite_free(struct csink_suite *suite);

/* ---- suite_work.c ---- */

/** Find out how much work a run of the case does, on the old side, and see that both sides do it. Returns 0, also where
 * the case fails; -EINTR or -ENOMEM. */
int csink_suite_find_work(struct csink_suite *suite, struct csink_suite_case *c);

/** Divide the latest run by the iterations that the harness reports of it, where these differ from run to run. Returns
 * 0 or -EINVAL (error of the case). */
int csink_suite_divide(struct csink_suite *suite, struct csink_suite_case *c);

/** What the harness has written about the latest run, malloc'ed, up to a NUL; NULL: nothing. */
char *csink_suite_take_report(struct csink_suite *suite);

/* How long a run may take that finds iterations, in seconds. */
double csink_suite_trial_limit(const struct csink_suite *suite);

/* Iterations, at most. */
#define CSINK_SUITE_MAX_N 1e9

/** After a trial of n iterations took `work` seconds: as many for the next one, to come nearer to the target; and as
 * many as take the target. */
double csink_suite_next_number(double n, double work, double target);
double csink_suite_last_number(double n, double work, double target);

/* The iterations of a run take at least one such part of the CPU time that starting its process takes. */
#define CSINK_SUITE_PART_OF_START 4

#define CSINK_SUITE_UNEQUAL_WORK                                                                                       \
	"the two sides do not do the same work: %.0f iterations on the old side, %.0f on the new one"

/* ---- suite_shared.c ---- */

/**
 * Where the harness can run several cases in one process, and starting one costs more than a case (or --process=suite):
 * find how many iterations each makes, and have it done so. Cases that work elsewhere than below their function, too,
 * or have too few samples there, keep a process of their own. Returns 0, also where cases fail; -EINTR, -ENOMEM, or
 * -EINVAL (error): --process=suite, and the harness cannot.
 */
int csink_suite_share(struct csink_suite *suite);

/** A pair of runs of the cases that are shared and pending, both or none; a case that fails is left out, and the pair
 * is made again. is_late: as of other pairs. Returns 0, -EINTR or -ENOMEM. */
int csink_suite_share_pair(struct csink_suite *suite, uint32_t number, bool *is_late);

void csink_suite_share_free(struct csink_suite *suite);

/* ---- suite_rounds.c ---- */

/** Begin fresh data of a case. */
void csink_suite_begin_data(struct csink_suite_case *c, const struct csink_suite_job *jobs);

/** Before the first run of these jobs: find the CPUs and the pages of their programs. Returns 0 or -errno. */
int csink_suite_begin_jobs(struct csink_suite *suite, const struct csink_suite_job *jobs, struct csink_gate_plan *plan,
			   struct csink_gate_pin *pin);

/**
 * Make a run with a profile. @seconds  that such a run takes.
 * Returns 0, -EINTR, -ENOMEM, -ETIME (it was killed at the end of --max-time), or another -errno (series->error).
 */
int csink_suite_turn(struct csink_suite *suite, const struct csink_suite_job *job, const struct csink_gate_plan *plan,
		     struct csink_gate_data *data, int side, uint32_t number, double seconds);

/** Find the work of each case, screen, confirm, judge: each case has a state then. No run is begun that would likely
 * end after --max-time. Returns 0, -EINTR or -ENOMEM. */
int csink_suite_run(struct csink_suite *suite);

/** The seconds that are left of --max-time, below 0 behind its end; INFINITY: there is no limit. */
double csink_suite_left(const struct csink_suite *suite);

/** Show progress on a terminal. */
void csink_suite_show(const struct csink_suite *suite, const char *what, uint32_t done, uint32_t of);

/* The error of a case that was not tried. */
#define CSINK_SUITE_NO_TIME_TO_TRY "not run: no time was left to try it (--max-time)"

/* ---- suite_count.c ---- */

/** Where instructions are counted: can those of this harness's cases be? Returns 0, or -EINVAL (error). */
int csink_suite_check_counted(struct csink_suite *suite);

/** Count the instructions of the pending cases, and judge them: each has a state then. Returns 0, -EINTR or -ENOMEM. */
int csink_suite_count(struct csink_suite *suite);

/* ---- suite_judge.c ---- */

/* Of screening, by tests/gate/suite-power. The p-values are Simes', of all that is asked of a case. */
#define CSINK_SUITE_SCREEN_P 0.1    /* 1 of 10 cases that are equal is confirmed */
#define CSINK_SUITE_HALFWAY_P 0.5   /* after half of the pairs: 1 of 2 has the others */
#define CSINK_SUITE_SCREEN_PART 0.8 /* of the time that is left when all cases were tried: what screening may use */

/** Of the pending cases, see whether the pairs that screen them show a sign of a slowdown: a p-value of at most that.
 * Those whose pairs do, or are too few, stay pending. Returns 0 or -ENOMEM. */
int csink_suite_screen_pending(struct csink_suite *suite, double most_p);

/** Before the first pair that confirms: the cases that are pending are the ones that alpha is divided between. */
void csink_suite_ask_pending(struct csink_suite *suite);

/**
 * Judge the pending cases, at one rate of errors over all cases and all looks (looks.h; Holm's method by cases at each
 * look). Those that are settled, that more pairs would most likely not settle, or of which a function was shown to be
 * slower, are CSINK_SUITE_JUDGED then.
 * @fraction  of the time that confirming has, at this look: 0 to 1
 * @more      about as many more pairs of each pending case can be made; below 1: none, and no case stays pending
 * Returns 0 or -ENOMEM.
 */
int csink_suite_look(struct csink_suite *suite, double fraction, double more);

/**
 * The levels at which cases are judged: Holm's method by cases. p: of each one, adjusted for what was asked of it;
 * levels[i] <= alpha is the part that the case may spend. Returns 0 or -ENOMEM. Pure.
 */
int csink_suite_levels(const double *p, uint32_t n, double alpha, double *levels);

#endif
