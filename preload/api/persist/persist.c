/* Persistent events, the client's side: each call is a dialogue with the keeper. See countersink/persist.h.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "preload/api/persist/persist_wire.h"
#include "preload/core/attr_size.h"
#include "preload/core/opendir_at.h"

/* A keeper may end between two words; the next one is asked again. More often than this it does not happen by chance.
 */
#define TRIES 20
#define MAX_ERRNO 4095
#define MAX_LISTED (1 << 20)              /* a keeper has no more fds */
#define PATIENCE_NS (10 * CSINK_NS_PER_S) /* with all of a list */

/* The keeper of another user's directory may be any program of that user. */
static int check_reply(struct csink_persist_reply *reply)
{
	if (reply->bytes != sizeof(*reply) || reply->err > 0 || reply->err < -MAX_ERRNO)
		return -EPROTO;
	reply->event.name[sizeof(reply->event.name) - 1] = '\0';
	return 0;
}

/* Send a request, with an fd or -1, and receive its reply. Returns 0 or -errno. */
static int exchange(int fd, const struct csink_persist_request *request, int sent_fd, struct csink_persist_reply *reply,
		    int *got_fd)
{
	int err = csink_persist_send(fd, request, sizeof(*request), sent_fd);

	if (!err)
		err = csink_persist_receive(fd, reply, sizeof(*reply), got_fd);
	return err ? err : check_reply(reply);
}

/* Send a request and receive its (first) reply, which may bring an fd. Returns the
 * socket, or -errno: -ECONNREFUSED if there is no keeper. */
static int request_reply(int directory_fd, const struct csink_persist_request *request,
			 struct csink_persist_reply *reply, int *got_fd)
{
	int fd = -ECONNREFUSED, err = -EPIPE;

	for (int i = 0; i < TRIES && err == -EPIPE; i++) {
		fd = csink_persist_connect(directory_fd);
		if (fd < 0)
			return fd;
		err = exchange(fd, request, -1, reply, got_fd);
		if (err == -EMFILE && !got_fd)
			err = -EPROTO; /* one came that was not asked for */
		if (err)
			close(fd);
		if (err && got_fd && *got_fd >= 0) {
			close(*got_fd);
			*got_fd = -1;
		}
	}
	return err ? err : fd;
}

/* One question, one answer. Returns reply.err, or why there was none. */
static int ask(const char *base, struct csink_persist_request *request, struct csink_persist_reply *reply, int *got_fd)
{
	CSINK_KEEP_ERRNO;
	char path[PATH_MAX];
	CSINK_AUTO_CLOSE int directory_fd = csink_persist_directory(base, false, path);
	CSINK_AUTO_CLOSE int fd = -1;

	if (directory_fd < 0)
		return directory_fd;
	request->bytes = sizeof(*request);
	fd = request_reply(directory_fd, request, reply, got_fd);
	if (fd == -ECONNREFUSED)
		return -ENOENT;
	return fd < 0 ? fd : reply->err;
}

/* ---- events of callers whose perf_event_attr has another size: its head is the same everywhere ---- */

#define HEAD offsetof(struct csink_persist_event, attr)

static int import_event(struct csink_persist_event *to, const struct csink_persist_event *from, size_t bytes)
{
	if (bytes < HEAD)
		return -EINVAL;
	memcpy(to, from, HEAD);
	return csink_attr_import(&to->attr, (const char *)from + HEAD, bytes - HEAD);
}

static int export_event(void *to, size_t bytes, const struct csink_persist_event *from)
{
	if (bytes < HEAD + PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	memcpy(to, from, HEAD);
	return csink_attr_export((char *)to + HEAD, bytes - HEAD, &from->attr);
}

/* On one connection: all but the first, then the first with what they all are. Returns 0, -EPIPE (the keeper went
 * away: another one may do it) or -errno. */
static int send_set(int directory_fd, const struct csink_persist_member *members, uint32_t nr,
		    struct csink_persist_request *request, struct csink_persist_reply *reply)
{
	struct csink_persist_request add = {.bytes = sizeof(add), .op = CSINK_PERSIST_ADD};
	CSINK_AUTO_CLOSE int fd = csink_persist_connect(directory_fd);
	int err = 0;

	if (fd == -ECONNREFUSED)
		fd = csink_persist_start(directory_fd);
	if (fd < 0)
		return fd;
	for (uint32_t i = nr; i-- > 0 && !err;) {
		if (i) {
			add.event.cpu = members[i].cpu;
			add.event.pages = members[i].pages;
		}
		err = exchange(fd, i ? &add : request, members[i].fd, reply, NULL);
		if (!err)
			err = reply->err;
	}
	return err;
}

static int detach_set(const struct csink_persist_member *members, uint32_t nr, struct csink_persist_request *request,
		      struct csink_persist_reply *reply, const char *base)
{
	char path[PATH_MAX];
	CSINK_AUTO_CLOSE int directory_fd = csink_persist_directory(base, true, path);
	int err = directory_fd < 0 ? directory_fd : -EPIPE;

	for (int i = 0; i < TRIES && directory_fd >= 0 && err == -EPIPE; i++)
		err = send_set(directory_fd, members, nr, request, reply);
	return err;
}

CSINK_EXPORT int csink_persist_detach_set_sized(const struct csink_persist_member *members, uint32_t nr,
						struct csink_persist_event *event, size_t event_bytes, const char *base)
{
	CSINK_KEEP_ERRNO;
	struct csink_persist_request request = {.bytes = sizeof(request), .op = CSINK_PERSIST_DETACH};
	struct csink_persist_reply reply;
	int err = nr ? import_event(&request.event, event, event_bytes) : -EINVAL;
	uint64_t id;

	for (uint32_t i = nr; i-- > 0 && !err;)
		err = csink_persist_id(members[i].fd, i ? &id : &request.event.id);
	if (!err) {
		request.event.pages = members[0].pages;
		err = detach_set(members, nr, &request, &reply, base);
	}
	if (!err) /* attr stays as it is */
		memcpy(event, &reply.event, HEAD);
	return err;
}

CSINK_EXPORT int csink_persist_detach_sized(int fd, struct csink_persist_event *event, size_t event_bytes,
					    const char *base)
{
	const struct csink_persist_member only = {fd, event->cpu, event->pages};

	return csink_persist_detach_set_sized(&only, 1, event, event_bytes, base);
}

CSINK_EXPORT int csink_persist_open_member(uint64_t id, uint32_t nth, struct csink_persist_member *member,
					   const char *base)
{
	CSINK_KEEP_ERRNO;
	struct csink_persist_request request = {.op = CSINK_PERSIST_OPEN, .member = nth, .event = {.id = id}};
	struct csink_persist_reply reply;
	int fd = -1, err;
	uint64_t got;

	/* The reply has its CPU: the request need not name it. */
	request.event.cpu = CSINK_PERSIST_ANY_CPU;
	err = ask(base, &request, &reply, &fd);
	if (!err && (fd < 0 || csink_persist_id(fd, &got) || (!nth && got != id)))
		err = -EPROTO;
	if (err && fd >= 0)
		close(fd);
	if (err)
		return err;
	*member = reply.member;
	member->fd = fd;
	return 0;
}

CSINK_EXPORT int csink_persist_open_sized(uint64_t id, int cpu, struct csink_persist_event *event, size_t event_bytes,
					  const char *base)
{
	CSINK_KEEP_ERRNO;
	struct csink_persist_request request = {.op = CSINK_PERSIST_OPEN, .event = {.id = id, .cpu = cpu}};
	struct csink_persist_reply reply;
	int fd = -1, err = ask(base, &request, &reply, &fd);
	uint64_t got;

	if (!err && (fd < 0 || csink_persist_id(fd, &got) || got != id))
		err = -EPROTO;
	if (!err && event)
		err = export_event(event, event_bytes, &reply.event);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

CSINK_EXPORT int csink_persist_read(uint64_t id, struct csink_persist_value *value, const char *base)
{
	struct csink_persist_request request = {.op = CSINK_PERSIST_READ, .event = {.id = id}};
	struct csink_persist_reply reply;
	int err = ask(base, &request, &reply, NULL);

	if (!err)
		*value = reply.value;
	return err;
}

CSINK_EXPORT int csink_persist_attach(int fd, const char *base)
{
	CSINK_KEEP_ERRNO;
	struct csink_persist_request request = {.op = CSINK_PERSIST_ATTACH};
	struct csink_persist_reply reply;
	int err = csink_persist_id(fd, &request.event.id);

	if (!err)
		err = ask(base, &request, &reply, NULL);
	return err;
}

/* The next event of a list, by ascending ids. @waited_ns: for all of it. */
static int receive_next(int fd, struct csink_persist_reply *reply, uint64_t *waited_ns)
{
	uint64_t last = reply->event.id, start_ns = csink_monotonic_ns();
	int err = csink_persist_receive(fd, reply, sizeof(*reply), NULL);

	*waited_ns += csink_monotonic_ns() - start_ns;
	if (!err)
		err = check_reply(reply);
	if (!err && reply->event.id && reply->event.id <= last)
		err = -EPROTO;
	return !err && *waited_ns > PATIENCE_NS ? -ETIMEDOUT : err;
}

/* A caller's attr may be larger than ours: all of it is there to be read. */
union callers_event {
	struct csink_persist_event event;
	char bytes[HEAD + 4096]; /* the kernel takes no larger attr */
};

CSINK_EXPORT int csink_persist_list_sized(int (*each)(const struct csink_persist_event *event, void *data), void *data,
					  size_t event_bytes, const char *base)
{
	CSINK_KEEP_ERRNO;
	struct csink_persist_request request = {.bytes = sizeof(request), .op = CSINK_PERSIST_LIST};
	struct csink_persist_reply reply;
	union callers_event view;
	uint64_t waited_ns = 0;
	CSINK_AUTO_CLOSE int directory_fd = -1, fd = -1;
	int nr = 0, err = 0;
	char path[PATH_MAX];

	if (event_bytes > sizeof(view) || event_bytes < HEAD + PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	directory_fd = csink_persist_directory(base, false, path);
	fd = directory_fd < 0 ? directory_fd : request_reply(directory_fd, &request, &reply, NULL);
	if (fd < 0)
		return fd == -ENOENT || fd == -ECONNREFUSED ? 0 : fd;
	while (!err && !reply.err && reply.event.id) {
		export_event(&view, event_bytes, &reply.event); /* attr.size shows what does not fit */
		err = nr++ < MAX_LISTED ? each(&view.event, data) : -EPROTO;
		if (!err)
			err = receive_next(fd, &reply, &waited_ns);
	}
	err = err ? err : reply.err;
	return err ? err : nr;
}

/* Does a keeper run there? It holds the lock, also before it listens. */
static bool is_kept(int directory_fd)
{
	CSINK_AUTO_CLOSE int fd = openat(directory_fd, CSINK_PERSIST_LOCK, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno != ENOENT; /* another user's is for him to look at */
	return flock(fd, LOCK_SH | LOCK_NB) != 0;
}

static int count_files(int directory_fd)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = csink_opendir_at(directory_fd, CSINK_PERSIST_EVENTS);
	struct dirent *entry;
	int nr = 0;

	while (dir && (entry = readdir(dir)))
		nr += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
	return nr;
}

CSINK_EXPORT int csink_persist_lost(const char *base)
{
	CSINK_KEEP_ERRNO;
	char path[PATH_MAX];
	CSINK_AUTO_CLOSE int directory_fd = csink_persist_directory(base, false, path);

	if (directory_fd < 0)
		return directory_fd == -ENOENT ? 0 : directory_fd;
	return is_kept(directory_fd) ? 0 : count_files(directory_fd);
}
