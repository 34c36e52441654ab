/* Sending a request by libcurl, with the tries that the protocols ask for. */
#ifndef CSINK_SEND_HTTP_H
#define CSINK_SEND_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "launcher/send/send_request.h"

struct csink_send_http; /* a connection, which lasts from one request to the next */

/**
 * @why  on failure, one line for people: memory, or what the libcurl that is installed cannot do.
 * Returns NULL on failure. Context: init.
 */
struct csink_send_http *csink_send_http_open(const struct csink_send_settings *s, char *why, size_t why_bytes);
void csink_send_http_close(struct csink_send_http *http);

/**
 * Send a request until the server has taken or refused it, or the time is over.
 * @deadline_ns  of csink_monotonic_ns().
 * @why          receives what happened, in a line: "422 Unprocessable Entity: the server's words".
 * Returns 0, CSINK_SEND_EXIT_REFUSED or CSINK_SEND_EXIT_UNREACHABLE. Context: thread.
 */
int csink_send_http_send(struct csink_send_http *http, const struct csink_send_request *r, uint64_t deadline_ns,
			 char *why, size_t why_bytes);

#endif
