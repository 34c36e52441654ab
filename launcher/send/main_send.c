/*
 * countersink-send: sends profiles to a server. A program of its own, since libcurl takes more time and memory to load
 * than the launcher to run; `countersink run --send` starts it once the profile is written. One thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/base/send_options.h"
#include "launcher/base/standard_streams.h"
#include "launcher/send/send_files.h"

static CSINK_OPTION_TABLE(send_options, CSINK_SEND_OPTIONS);

static void print_help(void)
{
	puts("Usage: countersink-send [OPTION]... --to=URL [FILE]...\n\nSend profiles to a server that collects them, "
	     "and those that are kept for it.\n");
	csink_options_print_help(stdout, send_options, CSINK_NR_SEND_OPTS);
	puts("\nMore: man countersink-send");
}

/* Where it cannot be used, that is reported at once only where the user has named it. */
static int open_spool(struct csink_spool *spool, struct csink_send_job *job, const struct csink_options *o, int nr,
		      char *why, size_t why_bytes)
{
	const char *path = csink_options_text(o, CSINK_SEND_OPT_SPOOL);
	int err;

	*spool = (struct csink_spool){.fd = -1, .sending_fd = -1};
	if (!strcmp(path, "no"))
		return -ENOENT;
	err = csink_spool_open(spool, path, csink_options_bytes(o, CSINK_SEND_OPT_SPOOL_BYTES), why, why_bytes);
	if (!err) {
		job->spool = spool;
		return 0;
	}
	job->why_not = why;
	if (!nr)
		csink_say("nothing was sent: %s", why);
	else if (o->values[CSINK_SEND_OPT_SPOOL].source != CSINK_FROM_DEFAULT)
		csink_say("%s; what cannot be sent is not kept", why);
	return err;
}

/* The time is for all files, so that it bounds how long a caller waits. */
static int send_all(const struct csink_options *o, int nr, char **paths)
{
	CSINK_AUTO(csink_send_settings_free) struct csink_send_settings s = {0};
	struct csink_send_job job = {.s = &s, .is_quiet = csink_options_bool(o, CSINK_SEND_OPT_QUIET)};
	char why[CSINK_WHY_BYTES], why_not[CSINK_WHY_BYTES];
	struct csink_spool spool;
	int status;

	if (csink_send_settings_read(&s, o, why, sizeof(why)))
		return csink_fail(CSINK_EXIT_USAGE, "nothing was sent: %s", why);
	job.http = csink_send_http_open(&s, why, sizeof(why));
	if (!job.http)
		return csink_fail(CSINK_EXIT_FAILED, "nothing was sent: %s", why);
	job.deadline_ns = csink_monotonic_ns() + s.timeout_ns;
	status = open_spool(&spool, &job, o, nr, why_not, sizeof(why_not)) && !nr
			 ? CSINK_EXIT_FAILED
			 : csink_send_files(&job, paths, (uint32_t)nr);
	csink_spool_close(&spool);
	csink_send_http_close(job.http);
	return status;
}

/*
 * A limit on files counts for the memory, too, in which the profile's form for the server is made, and which is no file
 * of the user's. What exceeds it is an error then, and does not end us; nor does a server that closes its connection.
 */
static void begin(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit size;

	csink_standard_streams_fill();
	sigaction(SIGXFSZ, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	if (getrlimit(RLIMIT_FSIZE, &size))
		return;
	size.rlim_cur = size.rlim_max;
	setrlimit(RLIMIT_FSIZE, &size);
}

int main(int argc, char **argv)
{
	struct csink_options o;
	int at;

	begin();
	at = csink_options_parse_mixed(&o, send_options, CSINK_NR_SEND_OPTS, argc, argv);

	if (at < 0)
		return csink_fail(CSINK_EXIT_USAGE, "%s (see countersink-send --help)", o.error);
	if (o.request == CSINK_REQUEST_HELP)
		print_help();
	else if (o.request == CSINK_REQUEST_VERSION)
		puts("countersink-send " CSINK_VERSION);
	else if (o.request == CSINK_REQUEST_CONFIG)
		csink_options_print_config(stdout, &o);
	else if (!*csink_send_server(&o))
		return csink_fail(CSINK_EXIT_USAGE, "no server given: --to=URL (see countersink-send --help)");
	else if (at == argc && !strcmp(csink_options_text(&o, CSINK_SEND_OPT_SPOOL), "no"))
		return csink_fail(CSINK_EXIT_USAGE, "no profile given, and no spool (see countersink-send --help)");
	else
		return send_all(&o, argc - at, argv + at);
	if (fflush(stdout)) {
		csink_say_unwritten("standard output", errno, NULL);
		return CSINK_EXIT_FAILED;
	}
	return CSINK_EXIT_OK;
}
