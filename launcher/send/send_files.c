/* See send_files.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/send_options.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"
#include "launcher/send/send_deliver.h"

#define POLL_NS 20000000ULL
#define MAX_AGE_S 3600 /* Pyroscope refuses what is older */

/* A file that was given. */
struct given {
	const char *path;
	char name[CSINK_SPOOL_NAME]; /* in the spool; "": it is not there */
	bool is_settled;             /* what became of it was reported */
};

struct work {
	const struct csink_send_job *job;
	struct given *given;
	uint32_t nr_given;
	int status;      /* of the files that were given; without any, of all */
	bool is_blocked; /* nothing more is sent to the server now */
	char blocked_why[1024];
	int blocked_status;
	uint32_t nr_sent, nr_old, nr_others; /* of those that were there: sent; too old; for other servers */
	struct csink_spool_names names;      /* of the spool, to be looked at once */
	uint32_t next;                       /* of them */
	char last[CSINK_SPOOL_NAME];         /* that was looked at */
};

static void raise_status(struct work *w, int status)
{
	w->status = CSINK_MAX(w->status, status);
}

/* ---- without a spool ---- */

static int send_at_once(const struct csink_send_job *job, const char *path, const char *why_not)
{
	struct csink_send_delivery d = {.s = job->s, .path = path};
	struct csink_send_result result;
	char kept[CSINK_WHY_BYTES / 2] = "";

	if (csink_send_deliver(job->http, &d, job->deadline_ns, &result))
		return csink_fail(CSINK_EXIT_FAILED, "%s; it was not sent", result.why);
	if (why_not)
		snprintf(kept, sizeof(kept), "; it is not kept: %.900s", why_not);
	csink_send_say(&d, path, &result, kept, job->is_quiet);
	return csink_send_exit_of(&result);
}

/* ---- a profile of the spool ---- */

struct entry {
	struct csink_send_delivery d;
	struct csink_send_settings s;
	struct csink_send_todo todo;
	int fd; /* of its todo */
	char path[PATH_MAX];
	const char *name;
	struct given *given; /* NULL: it was there before */
};

static void save_entry(struct csink_send_delivery *d)
{
	struct entry *e = (struct entry *)((char *)d - offsetof(struct entry, d));

	e->todo.state = d->state;
	csink_send_todo_update(e->fd, &e->todo);
}

static struct given *find_given(struct work *w, const char *name)
{
	for (uint32_t i = 0; i < w->nr_given; i++) {
		if (!strcmp(w->given[i].name, name))
			return &w->given[i];
	}
	return NULL;
}

/* Report it, and move it to refused/. @words  what its .why has. */
static void refuse(struct work *w, struct entry *e, struct csink_send_result *result)
{
	const struct csink_spool *spool = w->job->spool;
	const char *name = e->given ? e->given->path : e->path;
	char kept[PATH_MAX + 32];
	int err = csink_spool_refuse(spool, e->name, result->why);

	snprintf(kept, sizeof(kept), "; it is in %s/refused", spool->path);
	if (err)
		snprintf(kept, sizeof(kept), "; it stays in the spool, since it cannot be moved: %s", strerror(-err));
	csink_send_say(&e->d, name, result, kept, false);
	if (e->given)
		e->given->is_settled = true;
	if (e->given || !w->nr_given)
		raise_status(w, CSINK_SEND_EXIT_REFUSED);
}

static void refuse_for(struct work *w, struct entry *e, const char *why)
{
	struct csink_send_result result = {.outcome = CSINK_SEND_REFUSED};

	snprintf(result.why, sizeof(result.why), "%s", why);
	refuse(w, e, &result);
}

/* Too old for the server by the profile's own time. What cannot be read is judged when it is sent. */
static bool is_too_old(const struct work *w, const struct entry *e)
{
	CSINK_AUTO(csink_profile_done) struct csink_profile *p = NULL;

	if (w->job->s->to.kind != CSINK_SEND_PYROSCOPE || e->given || csink_pprof_read(e->path, &p, NULL, 0) ||
	    !p->time_ns)
		return false;
	return time(NULL) - p->time_ns / (int64_t)CSINK_NS_PER_S > MAX_AGE_S;
}

static void take_sent(struct work *w, struct entry *e, const struct csink_send_result *result)
{
	int err = csink_spool_remove(w->job->spool, e->name);

	if (e->given) {
		e->given->is_settled = true;
		csink_send_say(&e->d, e->given->path, result, "", w->job->is_quiet);
	} else {
		w->nr_sent++;
	}
	if (!err)
		return;
	csink_say("%s was sent, and cannot be removed: %s; remove it, or it may be sent again", e->path,
		  strerror(-err));
	if (!w->nr_given)
		raise_status(w, CSINK_EXIT_FAILED);
}

/* The server takes no profile now: those behind it wait, too. */
static void block(struct work *w, const struct entry *e, const struct csink_send_result *result)
{
	w->is_blocked = true;
	w->blocked_status = csink_send_exit_of(result);
	snprintf(w->blocked_why, sizeof(w->blocked_why), "%s", result->why);
	if (result->outcome == CSINK_SEND_LATER && e->d.nr_tries)
		snprintf(w->blocked_why, sizeof(w->blocked_why), "%.900s (%u %s; --send-timeout)", result->why,
			 e->d.nr_tries, e->d.nr_tries == 1 ? "try" : "tries");
}

/* What fails here, as for want of memory, is not the profile's fault. */
static void stay(struct work *w, struct entry *e, const char *why)
{
	csink_say("%s; it was not sent, and is kept", why);
	if (e->given)
		e->given->is_settled = true;
	if (e->given || !w->nr_given)
		raise_status(w, CSINK_EXIT_FAILED);
}

static void send_entry(struct work *w, struct entry *e)
{
	struct csink_send_result result;
	int err;

	e->s = csink_send_todo_settings(&e->todo, w->job->s);
	e->d = (struct csink_send_delivery){
		.s = &e->s, .path = e->path, .state = e->todo.state, .save = save_entry, .is_impatient = !w->nr_given};
	if (e->d.state.is_under_way && !csink_send_is_repeatable(&e->s)) {
		refuse_for(w, e, "a process ended while it sent it, and the server may have it");
		return;
	}
	if (is_too_old(w, e)) {
		w->nr_old += !csink_spool_refuse(w->job->spool, e->name, "it is older than an hour");
		return;
	}
	err = csink_send_deliver(w->job->http, &e->d, w->job->deadline_ns, &result);
	if (err == -EBADMSG || err == -E2BIG || err == -ENODATA || err == -ENOEXEC)
		refuse_for(w, e, result.why);
	else if (err)
		stay(w, e, result.why);
	else if (result.outcome == CSINK_SEND_SENT)
		take_sent(w, e, &result);
	else if (result.outcome == CSINK_SEND_REFUSED)
		refuse(w, e, &result);
	else
		block(w, e, &result);
}

static bool is_for(const struct csink_send_todo *todo, const struct csink_send_settings *s)
{
	return !strcmp(todo->texts[CSINK_SEND_TODO_SERVER], s->identity) &&
	       !strcmp(todo->texts[CSINK_SEND_TODO_TENANT], s->tenant);
}

/* For which server it is, is not known. */
static void refuse_damaged(struct work *w, const struct entry *e)
{
	static const char why[] = "its .todo is damaged or missing";
	const struct csink_spool *spool = w->job->spool;
	int err = csink_spool_refuse(spool, e->name, why);

	csink_say("%s is not sent: %s; %s %s/refused%s%s", e->path, why, err ? "it cannot be moved to" : "it is in",
		  spool->path, err ? ": " : "", err ? strerror(-err) : "");
	if (!w->nr_given)
		raise_status(w, CSINK_EXIT_FAILED);
}

static void handle_entry(struct work *w, const char *name)
{
	struct entry e = {.name = name, .given = find_given(w, name), .d = {.s = w->job->s}};
	int err;

	e.fd = csink_spool_open_todo(w->job->spool, name);
	err = e.fd < 0 ? e.fd : csink_send_todo_read(e.fd, &e.todo);
	if (!csink_spool_has(w->job->spool, name)) {
		/* removed meanwhile, to make room */
	} else if (!csink_spool_file(w->job->spool, name, e.path) ||
		   (err && err != -EBADMSG && err != -ENOENT && err != -ELOOP)) {
		csink_say("%s/%s.todo: %s", w->job->spool->path, name, strerror(err ? -err : ENAMETOOLONG));
	} else if (err) {
		refuse_damaged(w, &e);
	} else if (!is_for(&e.todo, w->job->s)) {
		w->nr_others++;
	} else {
		send_entry(w, &e);
	}
	csink_send_todo_free(&e.todo);
	if (e.fd >= 0)
		close(e.fd);
}

/*
 * The oldest that was not looked at yet. False: there is none. The spool is listed again only when all that it had have
 * been looked at: it may have thousands for another server.
 */
static bool find_next(struct work *w, char name[CSINK_SPOOL_NAME])
{
	if (w->next == w->names.nr) {
		free(w->names.at);
		if (csink_spool_list(w->job->spool, &w->names))
			w->names.nr = 0;
		for (w->next = 0; w->next < w->names.nr && strcmp(w->names.at[w->next], w->last) <= 0; w->next++)
			;
	}
	if (w->next == w->names.nr)
		return false;
	strcpy(w->last, w->names.at[w->next++]);
	strcpy(name, w->last);
	return true;
}

/* Whether this process has something to wait for, while another one sends. */
static bool has_more(const struct work *w)
{
	bool has_any = !w->nr_given;

	for (uint32_t i = 0; i < w->nr_given && !has_any; i++)
		has_any = !w->given[i].is_settled && csink_spool_has(w->job->spool, w->given[i].name);
	return has_any;
}

/* Become the one that sends. Returns false where another one does, until there is nothing more to send here. */
static bool begin(struct work *w)
{
	int err;

	while ((err = csink_spool_begin(w->job->spool, w->job->s, 0)) == -ETIMEDOUT && has_more(w) &&
	       csink_monotonic_ns() < w->job->deadline_ns)
		csink_send_sleep_ns(POLL_NS);
	if (!err || !has_more(w))
		return !err;
	w->is_blocked = true;
	w->blocked_status = CSINK_SEND_EXIT_UNREACHABLE;
	snprintf(w->blocked_why, sizeof(w->blocked_why), "%s",
		 err == -ETIMEDOUT ? "another countersink-send is sending from the spool" : strerror(-err));
	return false;
}

/* Also what other processes add meanwhile. */
static void drain(struct work *w)
{
	char name[CSINK_SPOOL_NAME];

	if (!begin(w))
		return;
	while (!w->is_blocked && find_next(w, name))
		handle_entry(w, name);
}

/* ---- the files that were given ---- */

/* Its copy is added to the spool, or it is sent at once, where that does not work. */
static void take_given(struct work *w, struct given *given)
{
	CSINK_AUTO(csink_send_todo_free) struct csink_send_todo todo = {.first_ns = 0};
	const struct csink_send_job *job = w->job;
	char why[CSINK_WHY_BYTES];
	int err;

	if (!job->spool) {
		raise_status(w, send_at_once(job, given->path, job->why_not));
		given->is_settled = true;
		return;
	}
	if (csink_send_check_file(given->path, why, sizeof(why))) {
		raise_status(w, csink_fail(CSINK_EXIT_FAILED, "%s; it was not sent", why));
		given->is_settled = true;
		return;
	}
	err = csink_send_todo_make(&todo, job->s, given->path)
		      ?: csink_spool_add(job->spool, given->path, &todo, job->deadline_ns, given->name);
	if (!err) {
		given->is_settled = find_given(w, given->name) != given; /* it was given twice */
		return;
	}
	*given->name = 0;
	snprintf(why, sizeof(why), "%.1500s: %s", job->spool->path,
		 err == -E2BIG       ? "it is larger than --spool-bytes"
		 : err == -ETIMEDOUT ? "another process adds to the spool"
				     : strerror(-err));
	raise_status(w, send_at_once(job, given->path, why));
	given->is_settled = true;
}

/* What is still there is kept; what is not, another process has done with. */
static void settle(struct work *w, const struct given *given)
{
	const struct csink_spool *spool = w->job->spool;
	const char *server = w->job->s->to.server;

	if (given->is_settled)
		return;
	if (csink_spool_has(spool, given->name)) {
		csink_say("%s was not sent to %s: %s; it is kept in %s", given->path, server,
			  *w->blocked_why ? w->blocked_why : "the spool cannot be read", spool->path);
		raise_status(w, w->blocked_status ?: CSINK_SEND_EXIT_UNREACHABLE);
	} else if (csink_spool_has_refused(spool, given->name)) {
		csink_say("%s was not sent to %s by another countersink-send: it is in %s/refused, with the reason",
			  given->path, server, spool->path);
		raise_status(w, CSINK_SEND_EXIT_REFUSED);
	} else if (csink_spool_has_dropped(spool, given->name)) {
		raise_status(w, CSINK_SEND_EXIT_UNREACHABLE);
	} else if (!w->job->is_quiet) {
		csink_say("%s was sent to %s by another countersink-send", given->path, server);
	}
}

static void say_rest(const struct work *w)
{
	const struct csink_spool *spool = w->job->spool;

	if (spool->nr_dropped)
		csink_say(
			"%u of the oldest profiles that were not sent %s removed from %s, which has --spool-bytes=%llu",
			spool->nr_dropped, spool->nr_dropped == 1 ? "was" : "were", spool->path,
			(unsigned long long)spool->max_bytes);
	if (w->nr_old)
		csink_say("%u profile%s older than an hour, which Pyroscope refuses: %s in %s/refused", w->nr_old,
			  w->nr_old == 1 ? " is" : "s are", w->nr_old == 1 ? "it is" : "they are", spool->path);
	if (w->nr_sent && !w->job->is_quiet)
		csink_say("%u profile%s that %s kept %s sent to %s", w->nr_sent, w->nr_sent == 1 ? "" : "s",
			  w->nr_sent == 1 ? "was" : "were", w->nr_sent == 1 ? "was" : "were", w->job->s->to.server);
	if (w->nr_given)
		return;
	if (w->is_blocked)
		csink_say("what is kept in %s was not sent to %s: %s", spool->path, w->job->s->to.server,
			  w->blocked_why);
	if (w->nr_others && !w->job->is_quiet)
		csink_say("%u profile%s in %s %s for other servers", w->nr_others, w->nr_others == 1 ? "" : "s",
			  spool->path, w->nr_others == 1 ? "is" : "are");
}

int csink_send_files(const struct csink_send_job *job, char **paths, uint32_t nr)
{
	CSINK_AUTO_FREE struct given *given = calloc((size_t)nr + 1, sizeof(*given));
	struct work w = {.job = job, .given = given, .nr_given = nr};

	if (!given)
		return csink_fail(CSINK_EXIT_FAILED, "nothing was sent: no memory");
	for (uint32_t i = 0; i < nr; i++) {
		given[i].path = paths[i];
		take_given(&w, &given[i]);
	}
	if (!job->spool)
		return w.status;
	drain(&w);
	for (uint32_t i = 0; i < nr; i++)
		settle(&w, &given[i]);
	if (!nr && w.is_blocked)
		raise_status(&w, w.blocked_status);
	say_rest(&w);
	free(w.names.at);
	return w.status;
}
