/* What all commands share: exit statuses, and lines on standard error. */
#ifndef CSINK_MESSAGE_H
#define CSINK_MESSAGE_H

#include <stddef.h>

/* Of the buffer in which a function that fails gives the reason, in one line; a message has no more room. */
enum { CSINK_WHY_BYTES = 2048 };

/* Exit statuses of our own, as env(1) and timeout(1) have them; the command's own otherwise. */
enum csink_exit {
	CSINK_EXIT_OK = 0,
	CSINK_EXIT_FAILED = 1,       /* of report and its like, where 1 is nothing that it says of its own */
	CSINK_EXIT_USAGE = 2,        /* of report and its like */
	CSINK_EXIT_REGRESSED = 3,    /* of gate */
	CSINK_EXIT_NO_CASES = 4,     /* of gate --suite: there is nothing to compare */
	CSINK_EXIT_REFUSED = 3,      /* of doctor: perf_event_open is refused here */
	CSINK_EXIT_USER_ONLY = 4,    /* of doctor: rights are missing, so that the kernel is not seen */
	CSINK_EXIT_RUN_FAILED = 125, /* of run: the command was not started, by our own fault or yours; and of doctor */
	CSINK_EXIT_NOT_EXECUTABLE = 126,
	CSINK_EXIT_NOT_FOUND = 127,
	CSINK_EXIT_SIGNAL = 128, /* + the signal that ended the command */
};

/** Say one line on stderr, "countersink: ..." with its newline, in one write. errno is kept. */
__attribute__((format(printf, 1, 2))) void csink_say(const char *fmt, ...);

/** Say why something failed, as csink_say() does. Returns @result, an error or an exit status. */
__attribute__((format(printf, 2, 3))) int csink_fail(int result, const char *fmt, ...);

/** Give the reason of a failure to a caller that left a buffer for it, which may be of 0 bytes. Returns @result. */
__attribute__((format(printf, 4, 5))) int csink_why(int result, char *why, size_t why_bytes, const char *fmt, ...);

/**
 * Say what could not be written, why, and what to do, in one line.
 * @what  the file, "standard output" or an option's name and its value.
 * @kept  what became of the contents ("the profile is in x.pb.gz"); NULL: they are lost.
 */
void csink_say_unwritten(const char *what, int err, const char *kept);

#endif
