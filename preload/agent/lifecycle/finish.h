/* What happens to a recording when its process is done: nothing where a launcher collects, else the profile is made. */
#ifndef CSINK_FINISH_H
#define CSINK_FINISH_H

struct csink_writer;

/** Find the countersink beside this library and fix the output's place, before the program changes directories.
 * Context: init. */
void csink_finish_init(void);

/** Without a launcher, and in the run's first process: leave the output's place in its recording. Context: init. */
void csink_finish_name(struct csink_writer *writer);

/**
 * At the end of an image. Without a launcher, the first process of the run has the profile made of every recording in
 * the run directory, and waits for it; a process whose recording was collected while it still ran has one made of its
 * own. The helper is no child that the program's wait() or SIGCHLD could see. Once. Context: thread.
 */
void csink_finish_image(void);

/**
 * Start the helper that makes profiles of killed runs whose recordings are in @place, unseen by the program; its end is
 * waited for only where the program would otherwise become its parent. Context: init.
 */
void csink_finish_salvage(const char *place);

enum csink_finish_keeping { CSINK_FINISH_KEEP, CSINK_FINISH_LEAVE };

/**
 * Of a run without a launcher that is to have slices: start the process that writes them, and wait until it has begun,
 * or has gone on with those that there are; or have it leave. Context: init, and thread.
 */
void csink_finish_keep(enum csink_finish_keeping what);

/**
 * The program closes its stderr for good, as coreutils do before they exit: a copy is kept for the report, if one is to
 * be printed there at the end. Context: thread.
 */
void csink_finish_keep_stderr(void);

/** Say one line on stderr, unless COUNTERSINK_QUIET. Context: init. */
void csink_finish_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
