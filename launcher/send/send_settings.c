/* See send_settings.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_settings.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/json_read.h"
#include "launcher/base/message.h"
#include "launcher/base/send_options.h"
#include "launcher/base/text.h"
#include "launcher/send/send_base64.h"

#define MAX_HEADERS_BYTES 65536 /* of a file */
#define TENANT_HEADER "X-Scope-OrgID"

/* ---- headers ---- */

static bool is_token(const char *name, size_t len)
{
	size_t i = 0;

	while (i < len && (isalnum((unsigned char)name[i]) || (name[i] && strchr("!#$%&'*+-.^_`|~", name[i]))))
		i++;
	return len && i == len;
}

#define SHORT_PART 4 /* a shorter part of a secret says little, and is a word of many messages */

/* Takes what is malloc'ed; NULL: there was no memory. */
static int take_secret(struct csink_send_settings *s, char *text)
{
	if (text && CSINK_APPEND(s->secrets, s->nr_secrets, s->cap_secrets, text))
		return 0;
	free(text);
	return -ENOMEM;
}

/* As a server repeats it that has it in a URL. */
static int add_escaped(struct csink_send_settings *s, const char *text, bool is_upper)
{
	char *escaped = NULL;
	size_t bytes;
	FILE *out = open_memstream(&escaped, &bytes);

	if (!out)
		return -ENOMEM;
	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			putc(*text, out);
		else
			fprintf(out, is_upper ? "%%%02X" : "%%%02x", (unsigned char)*text);
	}
	if (!fclose(out))
		return take_secret(s, escaped);
	free(escaped);
	return -ENOMEM;
}

/*
 * A secret as it is, and as a message may have it in other words: keys of object stores and tokens in base64 have '/'
 * and '+' in them, at which a server may cut them, or which it may escape.
 */
static int add_secret(struct csink_send_settings *s, const char *text)
{
	static const char cuts[] = "/+";
	int err = take_secret(s, strdup(text));

	if (err || !strpbrk(text, cuts))
		return err;
	err = add_escaped(s, text, true) ?: add_escaped(s, text, false);
	while (*text && !err) {
		size_t len = strcspn(text, cuts);

		if (len >= SHORT_PART)
			err = take_secret(s, strndup(text, len));
		text += len;
		text += strspn(text, cuts);
	}
	return err;
}

/* What is secret elsewhere may be in it, so that a spool has a hash of it. */
static void add_tenant(struct csink_send_settings *s, const char *value, size_t len)
{
	uint64_t hash = csink_hash_fnv(CSINK_HASH_FNV_BEGIN, s->tenant, strlen(s->tenant));

	hash = csink_hash_fnv(hash, value, len);
	snprintf(s->tenant, sizeof(s->tenant), "%016" PRIx64, hash);
}

static bool is_named(const char *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && !strncasecmp(name, wanted, len);
}

/* A value could end its line and begin another header. */
static int add_header(struct csink_send_settings *s, const char *name, size_t name_len, const char *value, size_t len)
{
	char *line = NULL;

	if (!is_token(name, name_len))
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (iscntrl((unsigned char)value[i]) && value[i] != '\t')
			return -EINVAL;
	}
	if (asprintf(&line, "%.*s%s%.*s", (int)name_len, name, len ? ": " : ";", (int)len, value) < 0)
		return -ENOMEM;
	if (is_named(name, name_len, TENANT_HEADER))
		add_tenant(s, value, len);
	if (CSINK_APPEND(s->headers, s->nr_headers, s->cap_headers, line))
		return 0;
	free(line);
	return -ENOMEM;
}

/* A secret as it is given, and each word of it: "session=0123; id=4567". A server may repeat either. */
static int add_secret_words(struct csink_send_settings *s, char *text)
{
	int err = add_secret(s, text);
	char *rest = text, *word;

	while (!err && (word = strsep(&rest, " \t,;=\""))) {
		if (*word)
			err = add_secret(s, word);
	}
	return err;
}

/* These two begin with the name of a scheme, "Basic" or "Bearer", which is no secret. */
static bool has_scheme(const char *name, size_t len)
{
	return is_named(name, len, "Authorization") || is_named(name, len, "Proxy-Authorization");
}

/* The same for a header that the user gives: its value is secret. */
static int add_given(struct csink_send_settings *s, const char *name, size_t name_len, const char *value, size_t len)
{
	CSINK_AUTO_FREE char *secret = strndup(value, len);
	size_t scheme = 0;

	if (!secret)
		return -ENOMEM;
	if (has_scheme(name, name_len)) {
		scheme = strcspn(secret, " \t");
		scheme += strspn(secret + scheme, " \t");
	}
	return add_header(s, name, name_len, value, len) ?: add_secret_words(s, secret + (secret[scheme] ? scheme : 0));
}

/* A password, as it is and as it is sent. */
static int add_password(struct csink_send_settings *s, const char *user, const char *password)
{
	CSINK_AUTO_FREE char *both = NULL, *encoded = NULL;
	size_t bytes;
	FILE *out = open_memstream(&encoded, &bytes);
	int len = out ? asprintf(&both, "%s:%s", user, password) : -1;

	if (len >= 0)
		csink_send_base64(out, both, (size_t)len);
	if (!out || fclose(out) || len < 0)
		return -ENOMEM;
	return add_secret(s, encoded) ?: add_secret(s, password);
}

/*
 * Of a proxy, USER:PASSWORD@ before its host: a proxy may repeat it, too. A user without a password is a token, and as
 * secret as one.
 */
static int add_proxy(struct csink_send_settings *s, const char *url)
{
	const char *scheme = strstr(url, "://"), *user = scheme ? scheme + 3 : url, *at = strrchr(user, '@');
	CSINK_AUTO_FREE char *copy = at ? strndup(user, (size_t)(at - user)) : NULL;
	char *colon = copy ? strchr(copy, ':') : NULL;
	char none[] = "", *password = colon ? colon + 1 : none, *secret;
	int err;

	if (!at || !copy)
		return at ? -ENOMEM : 0;
	if (colon)
		*colon = 0;
	secret = *password ? password : copy;
	err = add_secret(s, secret);
	csink_text_undo_percent(copy);
	if (*password)
		csink_text_undo_percent(password);
	return err ?: add_secret(s, secret) ?: add_password(s, copy, password);
}

static int add_proxies(struct csink_send_settings *s)
{
	static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
	int err = 0;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names) && !err; i++)
		err = add_proxy(s, csink_send_variable(names[i]) ?: "");
	return err;
}

/* Of an address that other users cannot read: the values of its query, as they are and decoded. */
static int add_query(struct csink_send_settings *s)
{
	CSINK_AUTO_FREE char *copy = strdup(strchr(s->url, '?') ?: "");
	char *rest = copy, *pair, *value;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (pair = strsep(&rest, "?&"))) {
		value = strchr(pair, '=');
		if (!value || strlen(++value) < SHORT_PART)
			continue;
		err = add_secret(s, value);
		if (!err && strchr(value, '%')) {
			csink_text_undo_percent(value);
			err = add_secret(s, value);
		}
	}
	return err;
}

static size_t trim(const char **text, size_t len)
{
	while (len && isblank((unsigned char)**text))
		++*text, len--;
	while (len && (isspace((unsigned char)(*text)[len - 1])))
		len--;
	return len;
}

/* A file of lines NAME: VALUE; empty lines and those that begin with '#' are none. */
static int read_headers(struct csink_send_settings *s, const char *path, char *why, size_t why_bytes)
{
	CSINK_AUTO_FREE char *line = NULL;
	CSINK_AUTO_FCLOSE FILE *f = fopen(path, "re");
	size_t size = 0, nr = 0, total = 0;
	ssize_t len;
	int err = 0;

	if (!f)
		return csink_why(-errno, why, why_bytes, "%s: %s", path, strerror(errno));
	while (!err && (len = getline(&line, &size, f)) > 0) {
		const char *colon = memchr(line, ':', len), *value = colon ? colon + 1 : NULL;
		size_t value_len;

		nr++;
		total += (size_t)len;
		if (*line == '#' || !line[strspn(line, " \t\r\n")])
			continue;
		if (total > MAX_HEADERS_BYTES)
			return csink_why(-EFBIG, why, why_bytes, "%s: it is larger than %d bytes", path,
					 MAX_HEADERS_BYTES);
		if (!colon)
			return csink_why(-EINVAL, why, why_bytes, "%s, line %zu: no header (NAME: VALUE)", path, nr);
		value_len = trim(&value, (size_t)(line + len - value));
		err = add_given(s, line, (size_t)(colon - line), value, value_len);
	}
	if (!err && ferror(f))
		return csink_why(-errno, why, why_bytes, "%s: %s", path, strerror(errno));
	return err ? csink_why(err, why, why_bytes, "%s, line %zu: no header (NAME: VALUE)", path, nr) : 0;
}

/* OTEL_EXPORTER_OTLP_HEADERS: "NAME=VALUE,...", and %NN for a byte. */
static int add_listed(struct csink_send_settings *s, const char *name, const char *list, char *why, size_t why_bytes)
{
	CSINK_AUTO_FREE char *copy = strdup(list);
	char *rest = copy, *pair, *equals;
	int err = copy ? 0 : -ENOMEM;

	while (!err && rest && (pair = strsep(&rest, ","))) {
		const char *key = pair, *value;
		size_t key_len, len;

		if (!pair[strspn(pair, " \t")])
			continue;
		equals = strchr(pair, '=');
		if (!equals) {
			err = -EINVAL;
			break;
		}
		key_len = trim(&key, (size_t)(equals - pair));
		len = csink_text_undo_percent(equals + 1);
		value = equals + 1;
		len = trim(&value, len);
		err = add_given(s, key, key_len, value, len);
	}
	return err ? csink_why(err, why, why_bytes, "%s: no list of headers (NAME=VALUE,...)", name) : 0;
}

/* PYROSCOPE_HTTP_HEADERS: an object of JSON, as their clients read it; or a list. */
static int add_json(struct csink_send_settings *s, const char *name, const char *text, char *why, size_t why_bytes)
{
	struct csink_json_value *json;
	const struct csink_json_value *member;
	int err = 0;

	if (*text != '{')
		return add_listed(s, name, text, why, why_bytes);
	json = csink_json_read(text, strlen(text));
	if (!json)
		err = -EINVAL;
	for (member = csink_json_first(json); member && !err; member = member->next)
		err = member->text ? add_given(s, member->key, strlen(member->key), member->text, strlen(member->text))
				   : -EINVAL;
	csink_json_free(json);
	return err ? csink_why(err, why, why_bytes, "%s: no object of headers ({\"NAME\": \"VALUE\"})", name) : 0;
}

/* ---- the kinds ---- */

static int read_pyroscope(struct csink_send_settings *s, char *why, size_t why_bytes)
{
	const char *tenant = csink_send_variable("PYROSCOPE_TENANT_ID");
	const char *headers = csink_send_variable("PYROSCOPE_HTTP_HEADERS");
	int err = 0;

	s->wire.service = *s->wire.service ? s->wire.service : csink_send_variable("PYROSCOPE_APPLICATION_NAME");
	s->labels = csink_send_variable("PYROSCOPE_LABELS") ?: "";
	s->user = csink_send_variable("PYROSCOPE_BASIC_AUTH_USER");
	s->password = s->user ? csink_send_variable("PYROSCOPE_BASIC_AUTH_PASSWORD") ?: "" : NULL;
	/* Where a server is shared, the user is the tenant. */
	if (s->user)
		add_tenant(s, s->user, strlen(s->user));
	if (!err && s->user)
		err = add_password(s, s->user, s->password);
	if (!err && tenant && add_header(s, TENANT_HEADER, strlen(TENANT_HEADER), tenant, strlen(tenant)))
		err = csink_why(-EINVAL, why, why_bytes, "PYROSCOPE_TENANT_ID: it cannot be a header's value");
	if (!err && headers)
		err = add_json(s, "PYROSCOPE_HTTP_HEADERS", headers, why, why_bytes);
	return err;
}

/* Requests are signed with the key, which is not sent itself. */
static int read_s3(struct csink_send_settings *s, char *why, size_t why_bytes)
{
	static const char token_name[] = "X-Amz-Security-Token";
	const char *region = csink_send_variable("AWS_REGION") ?: csink_send_variable("AWS_DEFAULT_REGION") ?: "us-east-1";
	const char *token = csink_send_variable("AWS_SESSION_TOKEN");

	s->user = csink_send_variable("AWS_ACCESS_KEY_ID");
	s->password = csink_send_variable("AWS_SECRET_ACCESS_KEY");
	if (strpbrk(region, ": /"))
		return csink_why(-EINVAL, why, why_bytes, "AWS_REGION: no name of a region");
	if (asprintf(&s->signature, "aws:amz:%s:s3", region) < 0) {
		s->signature = NULL;
		return csink_why(-ENOMEM, why, why_bytes, "no memory");
	}
	if (add_secret(s, s->password))
		return csink_why(-ENOMEM, why, why_bytes, "no memory");
	if (token && add_given(s, token_name, strlen(token_name), token, strlen(token)))
		return csink_why(-EINVAL, why, why_bytes, "AWS_SESSION_TOKEN: it cannot be a header's value");
	return 0;
}

static int read_otlp(struct csink_send_settings *s, const struct csink_options *o, char *why, size_t why_bytes)
{
	char name[64];
	const char *text;
	uint64_t timeout_ms;
	int err = 0;

	s->wire.service = *s->wire.service ? s->wire.service : csink_send_variable("OTEL_SERVICE_NAME");
	s->wire.resource = csink_send_variable("OTEL_RESOURCE_ATTRIBUTES");
	text = csink_send_otlp_variable("COMPRESSION", name, sizeof(name));
	s->is_gzipped = text && !strcmp(text, "gzip");
	s->client_certificate = csink_send_otlp_variable("CLIENT_CERTIFICATE", name, sizeof(name));
	s->client_key = csink_send_otlp_variable("CLIENT_KEY", name, sizeof(name));
	if (!s->ca)
		s->ca = csink_send_otlp_variable("CERTIFICATE", name, sizeof(name));
	text = csink_send_otlp_variable("TIMEOUT", name, sizeof(name));
	if (text && o->values[CSINK_SEND_OPT_SEND_TIMEOUT].source == CSINK_FROM_DEFAULT) {
		if (csink_number_parse(text, &timeout_ms) || timeout_ms > 86400000)
			err = err ?: csink_why(-EINVAL, why, why_bytes, "%s: no number of milliseconds", name);
		else
			s->timeout_ns = timeout_ms * 1000000;
	}
	text = csink_send_otlp_variable("HEADERS", name, sizeof(name));
	return err ?: text ? add_listed(s, name, text, why, why_bytes) : 0;
}

/* The kind's path behind the address, unless the address has it already; then the query. */
static char *with_path(const char *url, const char *path)
{
	size_t len = strcspn(url, "?"), tail = strlen(path);
	const char *query = url + len;
	char *out = NULL;

	while (len && url[len - 1] == '/')
		len--;
	if (len >= tail && !strncmp(url + len - tail, path, tail))
		path = "";
	return asprintf(&out, "%.*s%s%s", (int)len, url, path, query) < 0 ? NULL : out;
}

static const char *const paths[CSINK_NR_SEND_KINDS] = {
	[CSINK_SEND_PYROSCOPE] = "/ingest",
	[CSINK_SEND_PARCA] = "/api/profiles/writeraw",
	[CSINK_SEND_OTLP] = "/v1development/profiles",
};

const char *csink_send_server(const struct csink_options *o)
{
	const char *given = csink_options_text(o, CSINK_SEND_OPT_TO), *variable = getenv(CSINK_ENV_PREFIX "SEND");

	return *given ? given : variable ? variable : "";
}

/* Of a query, which may be a signature, there is a hash. */
static char *identity_of(const struct csink_send_settings *s)
{
	static const char *const kinds[] = {
#define X(id, name, title) name,
		CSINK_SEND_KINDS(X)
#undef X
	};
	size_t len = strcspn(s->url, "?");
	char query[24] = "", *out = NULL;

	if (s->url[len])
		snprintf(query, sizeof(query), "?%016" PRIx64,
			 csink_hash_fnv(CSINK_HASH_FNV_BEGIN, s->url + len, strlen(s->url + len)));
	return asprintf(&out, "%s+%.*s%s", kinds[s->to.kind], (int)len, s->url, query) < 0 ? NULL : out;
}

int csink_send_settings_read(struct csink_send_settings *s, const struct csink_options *o, char *why, size_t why_bytes)
{
	const char *headers = csink_options_text(o, CSINK_SEND_OPT_SEND_HEADERS);
	const char *ca = csink_options_text(o, CSINK_SEND_OPT_SEND_CA);
	const char *service = csink_options_text(o, CSINK_SEND_OPT_SERVICE);
	int err = csink_send_url_read(csink_send_server(o), &s->to, why, why_bytes);

	s->timeout_ns = csink_options_seconds(o, CSINK_SEND_OPT_SEND_TIMEOUT);
	s->ca = *ca ? ca : NULL;
	s->labels = "";
	s->wire.labels = csink_options_text(o, CSINK_SEND_OPT_LABELS);
	s->wire.service = service;
	if (!strcmp(csink_options_text(o, CSINK_SEND_OPT_OTLP), "1.9"))
		s->wire.otlp = CSINK_WIRE_OTLP_1_9;
	if (!err && add_proxies(s))
		err = csink_why(-ENOMEM, why, why_bytes, "no memory");
	if (!err && s->to.kind == CSINK_SEND_PYROSCOPE)
		err = read_pyroscope(s, why, why_bytes);
	else if (!err && s->to.kind == CSINK_SEND_OTLP)
		err = read_otlp(s, o, why, why_bytes);
	else if (!err && s->to.kind == CSINK_SEND_S3)
		err = read_s3(s, why, why_bytes);
	if (!err && s->wire.service &&
	    csink_text_utf8(NULL, s->wire.service, strlen(s->wire.service)) != strlen(s->wire.service))
		err = csink_why(-EINVAL, why, why_bytes, "%s: the name is not UTF-8",
				s->wire.service == service      ? "--service"
				: s->to.kind == CSINK_SEND_OTLP ? "OTEL_SERVICE_NAME"
								: "PYROSCOPE_APPLICATION_NAME");
	if (!err && *headers)
		err = read_headers(s, headers, why, why_bytes);
	if (err)
		return err;
	s->url = paths[s->to.kind] && !s->to.is_whole ? with_path(s->to.url, paths[s->to.kind]) : strdup(s->to.url);
	s->identity = s->url ? identity_of(s) : NULL;
	if (s->identity && !*csink_options_text(o, CSINK_SEND_OPT_TO) && add_query(s))
		return csink_why(-ENOMEM, why, why_bytes, "no memory");
	return s->identity ? 0 : csink_why(-ENOMEM, why, why_bytes, "no memory");
}

void csink_send_settings_free(struct csink_send_settings *s)
{
	free(s->url);
	free(s->identity);
	free(s->signature);
	for (uint32_t i = 0; i < s->nr_headers; i++)
		free(s->headers[i]);
	for (uint32_t i = 0; i < s->nr_secrets; i++)
		free(s->secrets[i]);
	free(s->headers);
	free(s->secrets);
}
