/* What a server answers: its words for people, without secrets, and what a receiver of OTLP rejects. */
#ifndef CSINK_SEND_ANSWER_H
#define CSINK_SEND_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/protobuf.h"
#include "launcher/send/send_settings.h"

#define CSINK_SEND_WORDS 300 /* of an answer, what is shown at most */

struct csink_send_answer {
	const struct csink_send_settings *s;
	struct csink_protobuf body; /* its bytes, of whatever form */
	bool has_begun;             /* a status line came */
	char phrase[128];           /* of its status line, without secrets: "Unprocessable Entity" */
};

/** Forget an answer, before the next request. Context of all: thread. */
void csink_send_answer_clear(struct csink_send_answer *a);
void csink_send_answer_free(struct csink_send_answer *a);

/** Take a part of the body. Returns false where no more is read: beyond 4 MiB, or without memory. */
bool csink_send_answer_take(struct csink_send_answer *a, const char *bytes, size_t len);

/** Take a header: of a status line, the phrase, and that an answer begins. Others are left out. */
void csink_send_answer_take_header(struct csink_send_answer *a, const char *bytes, size_t len);

/** The beginning of the body, in a line; the message escapes what else is in it. */
void csink_send_answer_words(const struct csink_send_answer *a, char out[CSINK_SEND_WORDS]);

/**
 * OTLP: whether profiles were rejected, though the status is a good one. An answer that is not one of OTLP rejects
 * none.
 * @why  then, how many, and the receiver's words.
 */
bool csink_send_answer_rejects(const struct csink_send_answer *a, char *why, size_t why_bytes);

/**
 * A text of nr bytes, or up to its NUL, in which secrets are asterisks: a server may repeat what it was sent. It must
 * be as it came, not cut. Returns it, malloc'ed, or NULL without memory.
 */
char *csink_send_hide(const struct csink_send_settings *s, const char *bytes, size_t nr);

#endif
