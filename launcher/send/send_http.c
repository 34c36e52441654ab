/* See send_http.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/send/send_answer.h"

#define CONNECT_MS 3000
#define MAX_ASKED_S 86400 /* of a Retry-After, what is respected at most */

struct csink_send_http {
	const struct csink_send_settings *s;
	CURL *curl;
	char error[CURL_ERROR_SIZE];
	struct csink_send_answer answer;
	const char *option;   /* that libcurl did not take; NULL: it took all */
	CURLcode option_code; /* why not */
	void (*on_request)(void *arg);
	void *arg;
};

static size_t take_answer(char *bytes, size_t size, size_t nr, void *arg)
{
	struct csink_send_http *http = arg;

	return csink_send_answer_take(&http->answer, bytes, size * nr) ? size * nr : 0;
}

static size_t take_header(char *bytes, size_t size, size_t nr, void *arg)
{
	struct csink_send_http *http = arg;

	csink_send_answer_take_header(&http->answer, bytes, size * nr);
	return size * nr;
}

static int note_request(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct csink_send_http *http = arg;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	if (http->on_request)
		http->on_request(http->arg);
	return CURL_PREREQFUNC_OK;
}

/* ---- what a try comes to ---- */

static bool is_for_later(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Whether the request has not gone out: then what failed is no profile's fault, and may be mended. */
static bool is_before_request(struct csink_send_http *http)
{
	curl_off_t connected = 0;

	curl_easy_getinfo(http->curl, CURLINFO_PRETRANSFER_TIME_T, &connected);
	return !connected;
}

/*
 * Whether the server cannot have got the request: the connection, with a proxy's tunnel and TLS, was not ready for it.
 * Else a second one may be counted twice, where it has no id.
 */
static bool is_undelivered(struct csink_send_http *http, CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
		return true;
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PROXY:
		return is_before_request(http);
	default:
		return false;
	}
}

/* A proxy that refuses to connect, and will do so again (403, 407). */
static bool is_refused_by_proxy(struct csink_send_http *http)
{
	long status = 0;

	curl_easy_getinfo(http->curl, CURLINFO_HTTP_CONNECTCODE, &status);
	return status >= 400 && status < 500 && !is_for_later(status);
}

/* What libcurl says in more words, unless the whole URL of a proxy, with its password, may be in it. */
static char *words_of(struct csink_send_http *http, CURLcode code)
{
	const char *words = http->error;

	if (strstr(words, "nsupported proxy"))
		words = "the URL of the proxy (http_proxy, https_proxy, all_proxy) is not one that libcurl takes";
	else if (!*words || code == CURLE_COULDNT_RESOLVE_PROXY)
		words = curl_easy_strerror(code);
	return csink_send_hide(http->s, words, strlen(words));
}

static void judge_failure(struct csink_send_http *http, CURLcode code, struct csink_send_result *result)
{
	CSINK_AUTO_FREE char *words = words_of(http, code);
	const char *reason = words ?: curl_easy_strerror(CURLE_OUT_OF_MEMORY);

	csink_why(0, result->why, sizeof(result->why), "%s", reason);
	if (is_undelivered(http, code)) {
		result->outcome = is_refused_by_proxy(http) ? CSINK_SEND_BARRED : CSINK_SEND_LATER;
		return;
	}
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
		result->outcome = csink_send_is_repeatable(http->s) ? CSINK_SEND_LATER : CSINK_SEND_REFUSED;
		if (result->outcome == CSINK_SEND_REFUSED)
			csink_why(0, result->why, sizeof(result->why),
				  "%s (the server may have the profile all the same)", reason);
		return;
	default:
		result->outcome =
			code == CURLE_OUT_OF_MEMORY || is_before_request(http) ? CSINK_SEND_BARRED : CSINK_SEND_REFUSED;
	}
}

static enum csink_send_outcome outcome_of(long status)
{
	return status < 400 || status == 401 || status == 403 || status == 407 ? CSINK_SEND_BARRED
	       : status == 413                                                 ? CSINK_SEND_TOO_LARGE
	       : is_for_later(status)                                          ? CSINK_SEND_LATER
									       : CSINK_SEND_REFUSED;
}

static void judge(struct csink_send_http *http, CURLcode code, struct csink_send_result *result)
{
	char words[CSINK_SEND_WORDS];
	long status = 0;

	/* Where libcurl fails before it begins, what it has is the status of the request before. */
	if (http->answer.has_begun)
		curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
	/* With the status of an answer all is known, also where its rest is cut off, or too long. */
	if (status < 200) {
		judge_failure(http, code, result);
	} else if (status < 300) {
		csink_why(0, result->why, sizeof(result->why), "%ld", status);
		result->outcome =
			http->s->to.kind == CSINK_SEND_OTLP &&
					csink_send_answer_rejects(&http->answer, result->why, sizeof(result->why))
				? CSINK_SEND_REFUSED
				: CSINK_SEND_SENT;
	} else {
		csink_send_answer_words(&http->answer, words);
		csink_why(0, result->why, sizeof(result->why), "%ld %s%s%s%s", status, http->answer.phrase,
			  *words ? ": " : "", words, status < 400 ? " (redirections are not followed)" : "");
		result->outcome = outcome_of(status);
	}
}

/* Seconds, or a date: libcurl reads both. */
static uint64_t asked_pause(struct csink_send_http *http)
{
	curl_off_t seconds = 0;

	if (http->answer.has_begun)
		curl_easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &seconds);
	return seconds > 0 ? (uint64_t)CSINK_MIN(seconds, (curl_off_t)MAX_ASKED_S) * CSINK_NS_PER_S : 0;
}

/* ---- one request ---- */

/* libcurl may be built without what an option is for: the first one that it does not take is remembered. */
#define SET(http, option, value) check_option(http, #option, curl_easy_setopt((http)->curl, option, value))

static void check_option(struct csink_send_http *http, const char *option, CURLcode code)
{
	if (!code || http->option_code)
		return;
	http->option = option;
	http->option_code = code;
}

static struct curl_slist *headers_of(const struct csink_send_http *http, const struct csink_send_request *r)
{
	struct curl_slist *list = NULL, *next;
	char type[80];

	snprintf(type, sizeof(type), "Content-Type: %s", r->content_type);
	/*
	 * curl would wait for a confirmation before it sends a body. It would also sign this header, which it does not
	 * send: then the wait is short instead (csink_send_http_open()).
	 */
	list = curl_slist_append(NULL, http->s->signature ? "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD" : "Expect:");
	next = list ? curl_slist_append(list, type) : NULL;
	if (next && r->is_gzipped)
		next = curl_slist_append(list, "Content-Encoding: gzip");
	for (uint32_t i = 0; next && i < http->s->nr_headers; i++)
		next = curl_slist_append(list, http->s->headers[i]);
	if (next)
		return list;
	curl_slist_free_all(list);
	return NULL;
}

static CURLcode perform(struct csink_send_http *http, const struct csink_send_request *r, uint64_t left_ns)
{
	struct curl_slist *headers = headers_of(http, r);
	CURLcode code;

	if (!headers)
		return CURLE_OUT_OF_MEMORY;
	*http->error = 0;
	csink_send_answer_clear(&http->answer);
	http->option_code = CURLE_OK;
	SET(http, CURLOPT_URL, r->url);
	SET(http, CURLOPT_CUSTOMREQUEST, r->method);
	SET(http, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->bytes);
	SET(http, CURLOPT_POSTFIELDS, r->body);
	SET(http, CURLOPT_HTTPHEADER, headers);
	SET(http, CURLOPT_TIMEOUT_MS, (long)CSINK_MAX(left_ns / 1000000, 1ULL));
	code = http->option_code ?: curl_easy_perform(http->curl);
	SET(http, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
	return code;
}

void csink_send_http_on_request(struct csink_send_http *http, void (*on_request)(void *arg), void *arg)
{
	http->on_request = on_request;
	http->arg = arg;
}

void csink_send_http_try(struct csink_send_http *http, const struct csink_send_request *r, uint64_t left_ns,
			 struct csink_send_result *result)
{
	CURLcode code = perform(http, r, left_ns);

	judge(http, code, result);
	result->asked_ns = result->outcome == CSINK_SEND_LATER ? asked_pause(http) : 0;
}

/* ---- the connection ---- */

static void set_options(struct csink_send_http *http)
{
	const struct csink_send_settings *s = http->s;

	SET(http, CURLOPT_NOSIGNAL, 1L);
	SET(http, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(http, CURLOPT_FOLLOWLOCATION, 0L);
	SET(http, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	/* libcurl itself sends a request again where the server has closed a connection that was used before. */
	if (!csink_send_is_repeatable(s))
		SET(http, CURLOPT_FORBID_REUSE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Do not wait for a look-up of a name that has not ended with the time; an older libcurl waits. */
	curl_easy_setopt(http->curl, CURLOPT_QUICK_EXIT, 1L);
#endif
	SET(http, CURLOPT_USERAGENT, "countersink/" CSINK_VERSION);
	SET(http, CURLOPT_ERRORBUFFER, http->error);
	SET(http, CURLOPT_WRITEFUNCTION, take_answer);
	SET(http, CURLOPT_WRITEDATA, http);
	SET(http, CURLOPT_HEADERFUNCTION, take_header);
	SET(http, CURLOPT_HEADERDATA, http);
	SET(http, CURLOPT_PREREQFUNCTION, note_request);
	SET(http, CURLOPT_PREREQDATA, http);
	if (s->user) {
		if (!s->signature)
			SET(http, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		SET(http, CURLOPT_USERNAME, s->user);
		SET(http, CURLOPT_PASSWORD, s->password);
	}
	if (s->signature) {
		SET(http, CURLOPT_AWS_SIGV4, s->signature);
		SET(http, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
	}
	if (s->ca)
		SET(http, CURLOPT_CAINFO, s->ca);
	if (s->client_certificate)
		SET(http, CURLOPT_SSLCERT, s->client_certificate);
	if (s->client_key)
		SET(http, CURLOPT_SSLKEY, s->client_key);
}

struct csink_send_http *csink_send_http_open(const struct csink_send_settings *s, char *why, size_t why_bytes)
{
	struct csink_send_http *http = calloc(1, sizeof(*http));

	csink_why(0, why, why_bytes, "libcurl cannot be initialised");
	if (!http || curl_global_init(CURL_GLOBAL_DEFAULT) || !(http->curl = curl_easy_init())) {
		free(http);
		return NULL;
	}
	http->s = http->answer.s = s;
	set_options(http);
	if (!http->option)
		return http;
	csink_why(0, why, why_bytes, "libcurl %s does not take %s%s: %s", curl_version_info(CURLVERSION_NOW)->version,
		  http->option, s->signature && strstr(http->option, "AWS") ? ", which signs requests to s3" : "",
		  curl_easy_strerror(http->option_code));
	csink_send_http_close(http);
	return NULL;
}

void csink_send_http_close(struct csink_send_http *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->curl);
	curl_global_cleanup();
	csink_send_answer_free(&http->answer);
	free(http);
}
