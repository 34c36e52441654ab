/* Delivering one profile: tries with pauses, part by part where the server takes no more at once. */
#ifndef CSINK_SEND_DELIVER_H
#define CSINK_SEND_DELIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/send/send_http.h"
#include "launcher/send/send_parts.h"

/* How far it is: what is remembered from one sender to the next. Times are of CLOCK_REALTIME. */
struct csink_send_state {
	uint32_t tries;                     /* that failed, since the last that did not */
	int64_t next_ns;                    /* no try before; 0: at once */
	bool is_asked;                      /* the server asked for that pause */
	bool is_under_way;                  /* a request went out, and what came of it is not known yet */
	char part[CSINK_SEND_HALVINGS + 1]; /* the next one; "": the whole */
};

struct csink_send_delivery {
	const struct csink_send_settings *s; /* those of this profile */
	const char *path;                    /* a regular file */
	struct csink_send_state state;
	void (*save)(struct csink_send_delivery *d); /* the state has changed; NULL: it is not remembered */
	bool is_impatient;                           /* only pauses that the server asked for count */
	uint32_t nr_tries, nr_parts;                 /* by this call */
	size_t bytes;                                /* likewise, of requests that the server took */
};

/**
 * Deliver it: until it is sent or refused, or the time is over.
 * @deadline_ns  of csink_monotonic_ns().
 * @result       receives what came of it: SENT, REFUSED, LATER or BARRED.
 * Returns 0, or -errno of the file, with the reason in @result. Context: thread.
 */
int csink_send_deliver(struct csink_send_http *http, struct csink_send_delivery *d, uint64_t deadline_ns,
		       struct csink_send_result *result);

/**
 * Report what came of it, in a line. @name  the profile's. @kept  what becomes of it, as a clause; or "".
 * Context: thread.
 */
void csink_send_say(const struct csink_send_delivery *d, const char *name, const struct csink_send_result *result,
		    const char *kept, bool is_quiet);

/** The exit status for it. Context: any. */
int csink_send_exit_of(const struct csink_send_result *result);

/** Sleep. Context: thread. */
void csink_send_sleep_ns(uint64_t ns);

#endif
