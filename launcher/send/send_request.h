/* The request that sends a profile: its address and its body, as each kind of server takes them. */
#ifndef CSINK_SEND_REQUEST_H
#define CSINK_SEND_REQUEST_H

#include <stddef.h>

#include "launcher/send/send_settings.h"

struct csink_send_request {
	char *url;  /* malloc'ed, with its query */
	void *body; /* malloc'ed */
	size_t bytes;
	const char *method;       /* "POST", "PUT" */
	const char *content_type; /* of the body */
	bool is_gzipped;          /* Content-Encoding: gzip */
};

/**
 * Make it of a file: pyroscope, parca and otlp get the wire form, put the file as it is.
 * @part  of the profile, as send_parts.h has it; "": the whole.
 * @why   on failure, one line for people, which begins with the file's name.
 * Returns 0, -ENODATA (there is no such part: what it is a part of cannot be halved) or -errno.
 * csink_send_request_free() in any case. Context: thread.
 */
int csink_send_request_make(struct csink_send_request *r, const struct csink_send_settings *s, const char *path,
			    const char *part, char *why, size_t why_bytes);

/** Whether a file is a profile. @why  as above. Returns 0 or -errno. Context: thread. */
int csink_send_check_file(const char *path, char *why, size_t why_bytes);

void csink_send_request_free(struct csink_send_request *r);

#endif
