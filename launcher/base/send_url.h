/*
 * Where profiles are sent: what --send and countersink-send's --to take. The launcher checks it before the command
 * starts, and countersink-send (launcher/send/) sends.
 */
#ifndef CSINK_SEND_URL_H
#define CSINK_SEND_URL_H

#include <stddef.h>

#include "launcher/base/options.h"

/* Each kind: its name before the '+', and what it is called in messages. */
#define CSINK_SEND_KINDS(X)                                                                                            \
	X(PYROSCOPE, "pyroscope", "Pyroscope")                                                                         \
	X(PARCA, "parca", "Parca")                                                                                     \
	X(OTLP, "otlp", "the OTLP receiver")                                                                           \
	X(PUT, "put", "the server")                                                                                    \
	X(S3, "s3", "the object store")

/* Rows of run and of countersink-send: how a profile is sent. */
#define CSINK_SENDING_OPTIONS(X)                                                                                       \
	X(SEND_TIMEOUT, 0, "SECONDS", "10", CSINK_OPT_SECONDS, "how long sending may take, all tries together")        \
	X(SEND_HEADERS, 0, "FILE", "", 0, "also send the headers in FILE, NAME: VALUE in each line; for secrets")      \
	X(SEND_CA, 0, "FILE", "", 0, "the certificate authorities to trust, PEM (default: the system's)")

#define CSINK_SEND_KIND_ID(id, name, title) CSINK_SEND_##id,
enum csink_send_kind { CSINK_SEND_KINDS(CSINK_SEND_KIND_ID) CSINK_NR_SEND_KINDS };

struct csink_send_url {
	enum csink_send_kind kind;
	const char *url;  /* "https://host/path", in the text; "": the kind's environment variables have it */
	char server[256]; /* for messages: "Pyroscope at https://host:4040"; without an address: "Pyroscope" */
};

/**
 * Read KIND+http://HOST[:PORT][/PATH], the same with https, or pyroscope or otlp alone. A user or password in it is
 * refused, since other users can read command lines.
 * @why  on failure, one line for people, which does not repeat the text.
 * Returns 0 or -EINVAL. Context: any.
 */
int csink_send_url_read(const char *text, struct csink_send_url *to, char *why, size_t why_bytes);

/** Give it the address that the variables had, if that is an http URL. Returns as above. */
int csink_send_url_set(struct csink_send_url *to, const char *url, char *why, size_t why_bytes);

#endif
