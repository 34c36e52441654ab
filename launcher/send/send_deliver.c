/* See send_deliver.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_deliver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/base/send_options.h"

#define BACKOFF_NS CSINK_NS_PER_S /* of the first pause at most; doubled each time */
#define MAX_BACKOFF_NS (300 * CSINK_NS_PER_S)
#define MAX_PAUSE_NS (86400 * CSINK_NS_PER_S) /* a longer one comes of a clock that was set back */

void csink_send_sleep_ns(uint64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / CSINK_NS_PER_S), .tv_nsec = (long)(ns % CSINK_NS_PER_S)};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void save(struct csink_send_delivery *d)
{
	if (d->save)
		d->save(d);
}

static void note_request(void *arg)
{
	struct csink_send_delivery *d = arg;

	d->state.is_under_way = true;
	save(d);
}

/* ---- pauses ---- */

/* A random part of a time that doubles, so that many senders do not come at once. */
static uint64_t backoff_ns(uint32_t tries)
{
	uint64_t most = tries < 10 ? BACKOFF_NS << (tries - 1) : MAX_BACKOFF_NS, random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = csink_monotonic_ns();
	return random % CSINK_MIN(most, (uint64_t)MAX_BACKOFF_NS);
}

static uint64_t left_of_pause(const struct csink_send_delivery *d)
{
	int64_t left = d->state.next_ns - (int64_t)csink_clock_ns(CLOCK_REALTIME);

	return left <= 0 || left > (int64_t)MAX_PAUSE_NS || (d->is_impatient && !d->state.is_asked && !d->nr_tries)
		       ? 0
		       : (uint64_t)left;
}

/* Returns false where the time is over before. */
static bool wait_until_due(struct csink_send_delivery *d, uint64_t deadline_ns, struct csink_send_result *result)
{
	uint64_t now = csink_monotonic_ns(), pause = left_of_pause(d);
	char at[32] = "";
	time_t due = (time_t)(d->state.next_ns / (int64_t)CSINK_NS_PER_S) + 1;
	struct tm utc;

	if (now < deadline_ns && pause < deadline_ns - now) {
		if (pause)
			csink_send_sleep_ns(pause);
		return csink_monotonic_ns() < deadline_ns;
	}
	if (d->nr_tries || !pause)
		return false;
	if (gmtime_r(&due, &utc))
		strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &utc);
	csink_why(0, result->why, sizeof(result->why), "%s, and the next try is due at %s",
		  d->state.is_asked ? "it asked for a pause" : "it failed before", at);
	return false;
}

static void plan_next(struct csink_send_delivery *d, const struct csink_send_result *result)
{
	d->state.tries += d->state.tries < UINT32_MAX;
	d->state.is_asked = result->asked_ns > 0;
	d->state.next_ns = (int64_t)(csink_clock_ns(CLOCK_REALTIME) +
				     (result->asked_ns ? result->asked_ns : backoff_ns(d->state.tries)));
}

/* ---- parts ---- */

static void refuse(struct csink_send_result *result, const char *why)
{
	char former[sizeof(result->why)];

	result->outcome = CSINK_SEND_REFUSED;
	snprintf(former, sizeof(former), "%s", result->why);
	csink_why(0, result->why, sizeof(result->why), "%.900s (%s)", former, why);
}

/* The server takes no more at once: the next request is the first half. */
static void halve(struct csink_send_delivery *d, struct csink_send_result *result)
{
	if (d->s->to.kind == CSINK_SEND_PUT || d->s->to.kind == CSINK_SEND_S3)
		refuse(result, "a file is put as a whole, or not at all");
	else if (!csink_send_part_halve(d->state.part))
		refuse(result, "its 256th parts are too large, too");
	else
		result->outcome = CSINK_SEND_TOO_LARGE;
}

/* A part that is not there is one of a single sample that was too large. */
static int make(struct csink_send_delivery *d, struct csink_send_request *r, struct csink_send_result *result)
{
	char why[sizeof(result->why)];
	int err = csink_send_request_make(r, d->s, d->path, d->state.part, why, sizeof(why));

	if (err == -ENODATA && *result->why) {
		refuse(result, "that part is one sample");
		return 0;
	}
	if (err)
		csink_why(0, result->why, sizeof(result->why), "%s", why);
	return err;
}

/* ---- all together ---- */

/* Try the part that comes next until it is sent or refused, or the time is over. */
static void deliver_part(struct csink_send_http *http, struct csink_send_delivery *d,
			 const struct csink_send_request *r, uint64_t deadline_ns, struct csink_send_result *result)
{
	result->outcome = CSINK_SEND_LATER;
	while (result->outcome == CSINK_SEND_LATER && wait_until_due(d, deadline_ns, result)) {
		csink_send_http_try(http, r, deadline_ns - csink_monotonic_ns(), result);
		d->nr_tries++;
		d->state.is_under_way = false;
		if (result->outcome == CSINK_SEND_LATER) {
			plan_next(d, result);
			save(d);
		}
	}
}

/* Returns whether another part comes. */
static bool take_result(struct csink_send_delivery *d, const struct csink_send_request *r,
			struct csink_send_result *result)
{
	bool goes_on = false;

	if (result->outcome == CSINK_SEND_SENT) {
		d->bytes += r->bytes;
		d->nr_parts++;
		goes_on = csink_send_part_next(d->state.part);
		d->state.tries = 0;
		d->state.next_ns = 0;
		if (goes_on)
			csink_why(0, result->why, sizeof(result->why), "no time is left for the rest");
	} else if (result->outcome == CSINK_SEND_TOO_LARGE) {
		halve(d, result);
		goes_on = result->outcome == CSINK_SEND_TOO_LARGE;
	}
	/* Of what is done or refused, the file itself is moved or removed next. */
	if (goes_on || result->outcome == CSINK_SEND_BARRED)
		save(d);
	return goes_on;
}

int csink_send_deliver(struct csink_send_http *http, struct csink_send_delivery *d, uint64_t deadline_ns,
		       struct csink_send_result *result)
{
	bool goes_on = true;
	int err = 0;

	csink_why(0, result->why, sizeof(result->why), "%s", "");
	csink_send_http_on_request(http, note_request, d);
	while (goes_on && !err) {
		CSINK_AUTO(csink_send_request_free) struct csink_send_request r = {0};

		err = make(d, &r, result);
		goes_on = false;
		if (!err && r.body) {
			deliver_part(http, d, &r, deadline_ns, result);
			goes_on = take_result(d, &r, result);
		}
	}
	csink_send_http_on_request(http, NULL, NULL);
	if (!err && !*result->why)
		csink_why(0, result->why, sizeof(result->why), "no time is left");
	return err;
}

int csink_send_exit_of(const struct csink_send_result *result)
{
	return result->outcome == CSINK_SEND_SENT    ? CSINK_EXIT_OK
	       : result->outcome == CSINK_SEND_LATER ? CSINK_SEND_EXIT_UNREACHABLE
						     : CSINK_SEND_EXIT_REFUSED;
}

void csink_send_say(const struct csink_send_delivery *d, const char *name, const struct csink_send_result *result,
		    const char *kept, bool is_quiet)
{
	const char *server = d->s->to.server;
	char parts[64] = "", tries[64] = "";

	if (d->nr_parts > 1 || (d->nr_parts && result->outcome != CSINK_SEND_SENT))
		snprintf(parts, sizeof(parts), " %s %u part%s", result->outcome == CSINK_SEND_SENT ? "in" : "but for",
			 d->nr_parts, d->nr_parts == 1 ? "" : "s");
	if (result->outcome == CSINK_SEND_LATER)
		snprintf(tries, sizeof(tries), " (%u %s; --send-timeout)", d->nr_tries,
			 d->nr_tries == 1 ? "try" : "tries");
	if (result->outcome != CSINK_SEND_SENT)
		csink_say("%s was not sent to %s%s: %s%s%s", name, server, parts, result->why, tries, kept);
	else if (!is_quiet)
		csink_say("%s was sent to %s: %zu bytes%s%s", name, server, d->bytes, parts,
			  *parts ? ", since it is too large for one request there" : "");
}
