/*
 * What is sent with a profile to a kind of server, besides the profile: from the options and, for pyroscope and otlp,
 * from the environment variables that their own clients read. Secrets come from variables and from a file alone, and
 * are in no message.
 */
#ifndef CSINK_SEND_SETTINGS_H
#define CSINK_SEND_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/options.h"
#include "launcher/base/send_url.h"
#include "launcher/output/wire_form.h"

struct csink_send_settings {
	struct csink_send_url to;
	char *url;      /* malloc'ed: the address with its path, and its query where it has one */
	char *identity; /* malloc'ed: what distinguishes the server from others, without a query, which may be secret */
	char tenant[17];  /* a hash of X-Scope-OrgID and of Pyroscope's user; "": there is neither */
	const char *name; /* the file's, for addresses; NULL: as it is */
	const char *host; /* the machine's, likewise; NULL: this one */
	char **headers;   /* "Name: value", malloc'ed */
	uint32_t nr_headers, cap_headers;
	char **secrets; /* values that no message may have, malloc'ed */
	uint32_t nr_secrets, cap_secrets;
	const char *user, *password;                      /* of basic authentication; NULL: none */
	char *signature;                                  /* s3: curl's CURLOPT_AWS_SIGV4, malloc'ed; NULL: none */
	const char *labels;                               /* of Pyroscope's series: "KEY=VALUE,..."; or "" */
	const char *ca, *client_certificate, *client_key; /* files; NULL: none */
	bool is_gzipped;                                  /* OTLP: the request */
	uint64_t timeout_ns;
	struct csink_wire_options wire;
};

/**
 * Whether a request may be sent again where the server may have it already: a profile of OTLP has an identity, and a
 * file that is put replaces itself. Pyroscope and Parca would add it up twice. Context: any.
 */
static inline bool csink_send_is_repeatable(const struct csink_send_settings *s)
{
	return s->to.kind != CSINK_SEND_PYROSCOPE && s->to.kind != CSINK_SEND_PARCA;
}

/** The server's address: --to, else COUNTERSINK_SEND; "": neither is given. Context: init. */
const char *csink_send_server(const struct csink_options *o);

/**
 * Read them. @why  on failure, one line for people.
 * Returns 0, -EINVAL, -ENOMEM, or -errno of a file. csink_send_settings_free() in any case. Context: init.
 */
int csink_send_settings_read(struct csink_send_settings *s, const struct csink_options *o, char *why, size_t why_bytes);
void csink_send_settings_free(struct csink_send_settings *s);

#endif
