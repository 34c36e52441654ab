/*
 * NAME.todo, beside a profile in a spool: where it is to be sent, with which description, and how far that is. Text,
 * one field in a line, "key value"; those that change have a fixed width and stand first, so that they are written in
 * place: that needs no room on a full disk, and a process that is killed leaves the old or the new state.
 */
#ifndef CSINK_SEND_TODO_H
#define CSINK_SEND_TODO_H

#include <stddef.h>
#include <stdint.h>

#include "launcher/send/send_deliver.h"
#include "launcher/send/send_settings.h"

/* The texts, in their order: the field's name. */
#define CSINK_SEND_TODO_TEXTS(X)                                                                                       \
	X(SERVER, "server")     /* csink_send_identity(): without a secret */                                          \
	X(TENANT, "tenant")     /* a hash of it */                                                                     \
	X(NAME, "name")         /* the file's, as it was */                                                            \
	X(HOST, "host")         /* the machine's */                                                                    \
	X(SERVICE, "service")   /* the application's name, as far as it was given */                                   \
	X(SERIES, "series")     /* labels of Pyroscope's series */                                                     \
	X(RESOURCE, "resource") /* attributes of OTLP's resource */                                                    \
	X(LABELS, "labels")     /* of samples, that are kept */

#define CSINK_SEND_TODO_ID(id, key) CSINK_SEND_TODO_##id,
enum csink_send_todo_text { CSINK_SEND_TODO_TEXTS(CSINK_SEND_TODO_ID) CSINK_NR_SEND_TODO_TEXTS };

struct csink_send_todo {
	struct csink_send_state state;
	int64_t first_ns;                      /* CLOCK_REALTIME of the first attempt to send it */
	char *texts[CSINK_NR_SEND_TODO_TEXTS]; /* malloc'ed */
};

/** What a profile is sent with. Returns 0 or -ENOMEM; csink_send_todo_free() in any case. Context: thread. */
int csink_send_todo_make(struct csink_send_todo *todo, const struct csink_send_settings *s, const char *path);
void csink_send_todo_free(struct csink_send_todo *todo);

/** Those settings with which the profile of a todo is sent; they point into both. Context: thread. */
struct csink_send_settings csink_send_todo_settings(const struct csink_send_todo *todo,
						    const struct csink_send_settings *s);

/** Write a new one. Returns 0 or -errno. Context: thread. */
int csink_send_todo_write(int fd, const struct csink_send_todo *todo);

/** Read one that may be damaged. Returns 0, -EBADMSG, -ENOMEM or -errno. csink_send_todo_free() in any case. */
int csink_send_todo_read(int fd, struct csink_send_todo *todo);

/** Write the state, in place, and to the disk if a request is under way. Returns 0 or -errno. Context: thread. */
int csink_send_todo_update(int fd, const struct csink_send_todo *todo);

#endif
