/* Sending a request by libcurl: one try, and what its result means for a later one. */
#ifndef CSINK_SEND_HTTP_H
#define CSINK_SEND_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "launcher/send/send_request.h"

struct csink_send_http; /* a connection, which lasts from one request to the next */

enum csink_send_outcome {
	CSINK_SEND_SENT,
	CSINK_SEND_REFUSED,   /* no other try is made; the server may have it, where the reason says so */
	CSINK_SEND_LATER,     /* the same request may be taken at another time */
	CSINK_SEND_BARRED,    /* not for the profile's sake: 401, 403, 407, a redirection, a certificate, a proxy, no
				 memory */
	CSINK_SEND_TOO_LARGE, /* 413 */
};

struct csink_send_result {
	enum csink_send_outcome outcome;
	uint64_t asked_ns; /* LATER: the pause that the server asks for (Retry-After); 0: none */
	char why[1024];    /* what happened, in a line: "422 Unprocessable Entity: the server's words" */
};

/**
 * @why  on failure, one line for people: memory, or what the libcurl that is installed cannot do.
 * Returns NULL on failure. Context: init.
 */
struct csink_send_http *csink_send_http_open(const struct csink_send_settings *s, char *why, size_t why_bytes);
void csink_send_http_close(struct csink_send_http *http);

/**
 * Have a function called in each try once the connection is ready, immediately before the request goes out: from then
 * on the server may have it. Context: init.
 */
void csink_send_http_on_request(struct csink_send_http *http, void (*on_request)(void *arg), void *arg);

/** Try once, for so long at most. Context: thread. */
void csink_send_http_try(struct csink_send_http *http, const struct csink_send_request *r, uint64_t left_ns,
			 struct csink_send_result *result);

#endif
