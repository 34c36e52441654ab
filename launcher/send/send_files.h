/* What countersink-send does with the files that it is given, and with those that a spool has for the same server. */
#ifndef CSINK_SEND_FILES_H
#define CSINK_SEND_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/send/send_http.h"
#include "launcher/send/send_spool.h"

struct csink_send_job {
	const struct csink_send_settings *s;
	struct csink_send_http *http;
	struct csink_spool *spool; /* NULL: nothing is kept */
	const char *why_not;       /* then, why, for messages; NULL: it was not asked for */
	uint64_t deadline_ns;
	bool is_quiet;
};

/**
 * Send files: each is added to the spool, and what that has for the server is sent, the oldest first. Without files,
 * what is there already. What becomes of each is reported. Returns the exit status. Context: thread.
 */
int csink_send_files(const struct csink_send_job *job, char **paths, uint32_t nr);

#endif
