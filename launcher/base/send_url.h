/*
 * Where profiles are sent: what --send and countersink-send's --to take. The launcher checks it before the command
 * starts, and countersink-send (launcher/send/) sends.
 */
#ifndef CSINK_SEND_URL_H
#define CSINK_SEND_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/options.h"

/* Each kind: its name before the '+', and what it is called in messages. */
#define CSINK_SEND_KINDS(X)                                                                                            \
	X(PYROSCOPE, "pyroscope", "Pyroscope")                                                                         \
	X(PARCA, "parca", "Parca")                                                                                     \
	X(OTLP, "otlp", "the OTLP receiver")                                                                           \
	X(PUT, "put", "the server")                                                                                    \
	X(S3, "s3", "the object store")

/* Rows of run, attach and countersink-send: how a profile is sent. */
#define CSINK_SENDING_OPTIONS(X)                                                                                       \
	X(SEND_TIMEOUT, 0, "SECONDS", "10", CSINK_OPT_SECONDS, "how long sending may take, all tries together")        \
	X(SEND_HEADERS, 0, "FILE", "", 0, "also send the headers in FILE, NAME: VALUE in each line; for secrets")      \
	X(SEND_CA, 0, "FILE", "", 0, "the certificate authorities to trust, PEM (default: the system's)")              \
	X(SPOOL, 0, "DIR", "auto", 0,                                                                                  \
	  "keep what could not be sent here, and send it with the next profile for that server; no: keep nothing; "    \
	  "auto: countersink/spool in $XDG_STATE_HOME or ~/.local/state")                                              \
	X(SPOOL_BYTES, 0, "N", "64M", CSINK_OPT_BYTES, "the most that is kept: the oldest are dropped")

/* Rows of commands that send a profile of theirs: these are one behind the other in the command's table. */
#define CSINK_SEND_PROFILE_OPTIONS(X)                                                                                  \
	X(SEND, 0, "URL", "", 0,                                                                                       \
	  "send the profile, once it is written, to pyroscope+https://HOST, parca+, otlp+, put+ or s3+https://... "    \
	  "(countersink-send)")                                                                                        \
	CSINK_SENDING_OPTIONS(X)

#define CSINK_SEND_ONE(...) +1
enum { CSINK_NR_SEND_PROFILE_OPTIONS = CSINK_SEND_PROFILE_OPTIONS(CSINK_SEND_ONE) };

#define CSINK_SEND_KIND_ID(id, name, title) CSINK_SEND_##id,
enum csink_send_kind { CSINK_SEND_KINDS(CSINK_SEND_KIND_ID) CSINK_NR_SEND_KINDS };

struct csink_send_url {
	enum csink_send_kind kind;
	const char *url;  /* "https://host/path?query", in the text or in an environment variable */
	bool is_whole;    /* OTLP: the variable's, behind which no path is put */
	char server[256]; /* for messages: "Pyroscope at https://host:4040" */
};

/**
 * Read KIND+http://HOST[:PORT][/PATH][?QUERY], the same with https, or pyroscope or otlp alone, whose address is in the
 * kind's environment variables. What cannot work is refused: a host or a port that is none, a fragment, s3 without TLS
 * or without the variables of its key. So is a user or password, since other users can read command lines.
 * @why  on failure, one line for people, which does not repeat the text.
 * Returns 0 or -EINVAL. Context: init.
 */
int csink_send_url_read(const char *text, struct csink_send_url *to, char *why, size_t why_bytes);

/** A variable of the environment that is not empty, or NULL. Context: init. */
const char *csink_send_variable(const char *name);

/**
 * OTEL_EXPORTER_OTLP_PROFILES_@name or else OTEL_EXPORTER_OTLP_@name, as above.
 * @full  receives the name of the one that counts. Context: init.
 */
const char *csink_send_otlp_variable(const char *name, char *full, size_t size);

#endif
