/* See send_url.h. */
#include "launcher/base/send_url.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/* HOST[:PORT] or [ADDRESS][:PORT] of len bytes, as far as it can be judged without a look-up. */
static bool is_host(const char *host, size_t len)
{
	bool is_address = len && *host == '[';
	size_t at = is_address ? 1 : 0, digits = 0, first;
	uint32_t port = 0;

	first = at;
	while (at < len && (isalnum((unsigned char)host[at]) || strchr(is_address ? ":.%_-" : "._-", host[at])))
		at++;
	if (at == first || (is_address && (at == len || host[at++] != ']')))
		return false;
	if (at == len)
		return true;
	if (host[at++] != ':')
		return false;
	for (; at < len && isdigit((unsigned char)host[at]) && digits < 5; at++, digits++)
		port = port * 10 + (uint32_t)(host[at] - '0');
	return at == len && port && port <= 65535;
}

/* Give it an address. */
static int set_url(struct csink_send_url *to, const char *url, char *why, size_t why_bytes)
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
	if (!is_host(host, len))
		return csink_why(-EINVAL, why, why_bytes, "no host, or no port of 1 to 65535: it must be " FORMS);
	if (strchr(url, '#'))
		return csink_why(-EINVAL, why, why_bytes, "the URL has a fragment (#...), which is never sent");
	if (to->kind == CSINK_SEND_S3 && strncmp(url, "https:", strlen("https:")))
		return csink_why(-EINVAL, why, why_bytes,
				 "the body of a request to s3 is not signed: give s3+https://");
	to->url = url;
	snprintf(to->server, sizeof(to->server), "%s at %.*s", kinds[to->kind].title,
		 (int)(host - url + (len < 200 ? len : 200)), url);
	return 0;
}

/* ---- the environment ---- */

const char *csink_send_variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

const char *csink_send_otlp_variable(const char *name, char *full, size_t size)
{
	const char *value;

	snprintf(full, size, "OTEL_EXPORTER_OTLP_PROFILES_%s", name);
	value = csink_send_variable(full);
	if (value)
		return value;
	snprintf(full, size, "OTEL_EXPORTER_OTLP_%s", name);
	return csink_send_variable(full);
}

static int read_address(struct csink_send_url *to, char *why, size_t why_bytes)
{
	char name[64] = "PYROSCOPE_SERVER_ADDRESS", reason[CSINK_WHY_BYTES];
	const char *address = to->kind == CSINK_SEND_OTLP ? csink_send_otlp_variable("ENDPOINT", name, sizeof(name))
							  : csink_send_variable(name);

	if (!address)
		return csink_why(-EINVAL, why, why_bytes, "no address: give one, or %s",
				 to->kind == CSINK_SEND_OTLP ? "OTEL_EXPORTER_OTLP_ENDPOINT or "
							       "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"
							     : name);
	if (set_url(to, address, reason, sizeof(reason)))
		return csink_why(-EINVAL, why, why_bytes, "%s: %.1500s", name, reason);
	to->is_whole = strstr(name, "PROFILES") != NULL;
	return 0;
}

static int check_key(char *why, size_t why_bytes)
{
	if (csink_send_variable("AWS_ACCESS_KEY_ID") && csink_send_variable("AWS_SECRET_ACCESS_KEY"))
		return 0;
	return csink_why(-EINVAL, why, why_bytes, "no key: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
}

/* ---- all together ---- */

int csink_send_url_read(const char *text, struct csink_send_url *to, char *why, size_t why_bytes)
{
	size_t len = strcspn(text, "+:/");
	enum csink_send_kind kind = 0;

	while (kind < CSINK_NR_SEND_KINDS && (strlen(kinds[kind].name) != len || strncmp(text, kinds[kind].name, len)))
		kind++;
	if (kind == CSINK_NR_SEND_KINDS)
		return csink_why(-EINVAL, why, why_bytes, "no kind of server that is known: it must be " FORMS);
	to->kind = kind;
	to->is_whole = false;
	if (!text[len] && takes_variables(kind))
		return read_address(to, why, why_bytes);
	if (text[len] != '+')
		return csink_why(-EINVAL, why, why_bytes, "no address behind the kind: it must be " FORMS);
	return set_url(to, text + len + 1, why, why_bytes) ?: kind == CSINK_SEND_S3 ? check_key(why, why_bytes) : 0;
}
