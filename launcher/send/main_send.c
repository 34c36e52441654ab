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
#include "launcher/base/standard_streams.h"
#include "launcher/send/send_deliver.h"
#include "launcher/send/send_options.h"

static CSINK_OPTION_TABLE(send_options, CSINK_SEND_OPTIONS);

static void print_help(void)
{
	puts("Usage: countersink-send [OPTION]... --to=URL FILE...\n\nSend profiles to a server that collects them.\n");
	csink_options_print_help(stdout, send_options, CSINK_NR_SEND_OPTS);
	puts("\nMore: man countersink-send");
}

static int send_one(struct csink_send_http *http, const struct csink_send_settings *s, const char *path,
		    uint64_t deadline_ns, bool is_quiet)
{
	struct csink_send_delivery d = {.s = s, .path = path};
	struct csink_send_result result;

	if (csink_send_deliver(http, &d, deadline_ns, &result))
		return csink_fail(CSINK_EXIT_FAILED, "%s; it was not sent", result.why);
	csink_send_say(&d, path, &result, "", is_quiet);
	return csink_send_exit_of(&result);
}

/* The time is for all files, so that it bounds how long a caller waits. */
static int send_all(const struct csink_options *o, int nr, char **paths)
{
	CSINK_AUTO(csink_send_settings_free) struct csink_send_settings s = {0};
	struct csink_send_http *http;
	char why[CSINK_WHY_BYTES];
	uint64_t deadline_ns;
	int status = CSINK_EXIT_OK, one;

	if (csink_send_settings_read(&s, o, why, sizeof(why)))
		return csink_fail(CSINK_EXIT_USAGE, "nothing was sent: %s", why);
	http = csink_send_http_open(&s, why, sizeof(why));
	if (!http)
		return csink_fail(CSINK_EXIT_FAILED, "nothing was sent: %s", why);
	deadline_ns = csink_monotonic_ns() + s.timeout_ns;
	for (int i = 0; i < nr; i++) {
		one = send_one(http, &s, paths[i], deadline_ns, csink_options_bool(o, CSINK_SEND_OPT_QUIET));
		status = CSINK_MAX(status, one);
	}
	csink_send_http_close(http);
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
	else if (!*csink_send_server(&o) || at == argc)
		return csink_fail(CSINK_EXIT_USAGE, "%s (see countersink-send --help)",
				  at == argc ? "no profile given" : "no server given: --to=URL");
	else
		return send_all(&o, argc - at, argv + at);
	if (fflush(stdout)) {
		csink_say_unwritten("standard output", errno, NULL);
		return CSINK_EXIT_FAILED;
	}
	return CSINK_EXIT_OK;
}
