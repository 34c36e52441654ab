/* See send_url.h. */
#include "launcher/base/send_url.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/message.h"

#define X(id, name, title) {name, title},
static const struct {
	const char *name, *title;
} kinds[] = {CSINK_SEND_KINDS(X)};
#undef X

#define FORMS "KIND+https://HOST[:PORT][/PATH], where KIND is pyroscope, parca, otlp, put or s3"

static bool takes_variables(enum csink_send_kind kind)
{
	return kind == CSINK_SEND_PYROSCOPE || kind == CSINK_SEND_OTLP;
}

/* Where the host begins; NULL: it is no URL of http or https. */
static const char *host_of(const char *url)
{
	if (!strncmp(url, "https://", 8))
		return url + 8;
	return strncmp(url, "http://", 7) ? NULL : url + 7;
}

int csink_send_url_set(struct csink_send_url *to, const char *url, char *why, size_t why_bytes)
{
	const char *host = host_of(url);
	size_t len = host ? strcspn(host, "/?#") : 0;

	for (const char *c = url; *c; c++) {
		if (!isgraph((unsigned char)*c) || !isascii((unsigned char)*c))
			return csink_why(-EINVAL, why, why_bytes,
					 "the URL has a blank, a control character or a letter "
					 "that must be written as %%NN");
	}
	if (host && memchr(host, '@', len))
		return csink_why(-EINVAL, why, why_bytes,
				 "the URL has a user or password, which other users could read: give them by the "
				 "variables of the server's kind, or in a file (--send-headers)");
	if (!len || *host == ':')
		return csink_why(-EINVAL, why, why_bytes, "no http:// or https:// with a host: it must be " FORMS);
	to->url = url;
	snprintf(to->server, sizeof(to->server), "%s at %.*s", kinds[to->kind].title,
		 (int)(host - url + (len < 200 ? len : 200)), url);
	return 0;
}

int csink_send_url_read(const char *text, struct csink_send_url *to, char *why, size_t why_bytes)
{
	size_t len = strcspn(text, "+:/");
	enum csink_send_kind kind = 0;

	while (kind < CSINK_NR_SEND_KINDS && (strlen(kinds[kind].name) != len || strncmp(text, kinds[kind].name, len)))
		kind++;
	if (kind == CSINK_NR_SEND_KINDS)
		return csink_why(-EINVAL, why, why_bytes, "no kind of server that is known: it must be " FORMS);
	to->kind = kind;
	to->url = "";
	snprintf(to->server, sizeof(to->server), "%s", kinds[kind].title);
	if (!text[len] && takes_variables(kind))
		return 0;
	if (text[len] != '+')
		return csink_why(-EINVAL, why, why_bytes, "no address behind the kind: it must be " FORMS);
	return csink_send_url_set(to, text + len + 1, why, why_bytes);
}
