/* See send_answer.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_answer.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/message.h"
#include "launcher/base/pprof_wire.h"

#define MAX_BODY_BYTES (4U << 20) /* what receivers of OTLP answer at most */

/* ---- secrets ---- */

#define SHORT_SECRET 8 /* a shorter one may be a part of a word by chance: then it is hidden as a word alone */
#define SHORT_PART 4   /* a shorter part of a secret says little */

static bool is_word(const char *text, const char *at, size_t len)
{
	return (at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[len]);
}

/* Where a connection was lost within a secret, its beginning is the end of the text. */
static void hide_end(const char *text, size_t text_len, const char *secret, size_t len, char *hidden)
{
	for (size_t part = CSINK_MIN(len, text_len); part >= SHORT_PART; part--) {
		if (!memcmp(text + text_len - part, secret, part))
			memset(hidden + text_len - part, '*', part);
	}
}

/* Secrets are looked for in the text as it came, since one may be a part of another. */
char *csink_send_hide(const struct csink_send_settings *s, const char *bytes, size_t nr)
{
	CSINK_AUTO_FREE char *text = strndup(bytes, nr);
	char *hidden = text ? strdup(text) : NULL;

	for (uint32_t i = 0; hidden && i < s->nr_secrets; i++) {
		const char *secret = s->secrets[i];
		size_t len = strlen(secret);

		for (const char *at = text; len && (at = strstr(at, secret)); at++) {
			if (len >= SHORT_SECRET || is_word(text, at, len))
				memset(hidden + (at - text), '*', len);
		}
		hide_end(text, strlen(text), secret, len, hidden);
	}
	return hidden;
}

/* ---- the parts ---- */

void csink_send_answer_clear(struct csink_send_answer *a)
{
	a->body.used = 0;
	a->body.err = 0;
	a->has_begun = false;
	*a->phrase = 0;
}

void csink_send_answer_free(struct csink_send_answer *a)
{
	free(a->body.bytes);
}

bool csink_send_answer_take(struct csink_send_answer *a, const char *bytes, size_t len)
{
	if (len > MAX_BODY_BYTES - a->body.used)
		return false;
	csink_protobuf_append(&a->body, bytes, len);
	return !a->body.err;
}

/* "HTTP/1.1 422 Unprocessable Entity": one for each answer, also a proxy's. */
void csink_send_answer_take_header(struct csink_send_answer *a, const char *bytes, size_t len)
{
	CSINK_AUTO_FREE char *phrase = NULL;
	const char *blank;

	if (len < 5 || memcmp(bytes, "HTTP/", 5))
		return;
	csink_send_answer_clear(a);
	a->has_begun = true;
	while (len && (bytes[len - 1] == '\r' || bytes[len - 1] == '\n'))
		len--;
	blank = memchr(bytes, ' ', len);
	if (!blank || bytes + len - blank <= 5)
		return;
	phrase = csink_send_hide(a->s, blank + 5, (size_t)(bytes + len - blank - 5));
	snprintf(a->phrase, sizeof(a->phrase), "%s", phrase ?: "");
}

void csink_send_answer_words(const struct csink_send_answer *a, char out[CSINK_SEND_WORDS])
{
	CSINK_AUTO_FREE char *text = csink_send_hide(a->s, (const char *)a->body.bytes ?: "", a->body.used);
	size_t used = 0;
	bool is_blank = true;

	for (const char *c = text ?: ""; *c && used < CSINK_SEND_WORDS - 4; c++) {
		bool is_space = strchr(" \t\r\n", *c) != NULL;

		if (!is_space || !is_blank)
			out[used++] = is_space ? ' ' : *c;
		is_blank = is_space;
		if (used == CSINK_SEND_WORDS - 4 && c[1])
			strcpy(out + used, "..."), used += 3;
	}
	out[used] = 0;
	while (used && out[used - 1] == ' ')
		out[--used] = 0;
}

/* ---- OTLP ---- */

/* partial_success {rejected_profiles 1, error_message 2}. Returns how many profiles were rejected. */
static uint64_t read_partial(const struct csink_send_settings *s, const struct csink_field *part, char *words,
			     size_t size)
{
	CSINK_AUTO_FREE char *text = NULL;
	struct csink_field field, message = {.bytes = (const unsigned char *)""};
	uint64_t rejected = 0;
	int err;

	EACH_FIELD(field, part, err)
	{
		if (field.number == 1)
			rejected = field.value;
		else if (field.number == 2)
			message = field;
	}
	text = csink_send_hide(s, (const char *)message.bytes, message.len);
	snprintf(words, size, "%s", text ?: "");
	return rejected;
}

/* ExportProfilesServiceResponse {partial_success 1}. */
bool csink_send_answer_rejects(const struct csink_send_answer *a, char *why, size_t why_bytes)
{
	struct csink_field answer = {.bytes = a->body.bytes, .len = a->body.used}, field;
	uint64_t rejected = 0;
	char words[CSINK_SEND_WORDS] = "";
	int err;

	EACH_FIELD(field, &answer, err)
	{
		if (field.number == 1)
			rejected = read_partial(a->s, &field, words, sizeof(words));
	}
	if (!rejected)
		return false;
	csink_why(0, why, why_bytes, "%llu profiles were rejected: %s", (unsigned long long)rejected, words);
	return true;
}
