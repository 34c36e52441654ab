/* The keeper at work: its clients, their requests, and its end. See keeper.h, and preload/counters/persist_wire.h. */
#include "launcher/persist/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "include/internal/base.h"

#define MAX_CLIENTS 512
/* fds that are no events: clients, sockets, locks, and what requests need for a moment. */
#define OTHER_FDS (MAX_CLIENTS + 32)
#define BACKLOG 1024
#define PATIENCE_MS 5000

struct client {
	uid_t uid;
	gid_t gid;
	pid_t pid;
};

struct keeper {
	struct csink_keeper_events events;
	int lock_fd, start_fd, listen_fd;
	struct pollfd fds[1 + MAX_CLIENTS]; /* [0] listens */
	struct client clients[1 + MAX_CLIENTS];
	nfds_t nr, max; /* of fds; the first one is no client */
	bool is_full;   /* no client can be accepted for the moment */
};

static volatile sig_atomic_t is_told_to_end;

static void on_signal(int signo)
{
	(void)signo;
	is_told_to_end = 1;
}

/* ---- requests ---- */

static int detach(struct keeper *keeper, const struct client *client, struct csink_persist_event *event, int fd)
{
	if (fd < 0)
		return -EBADF;
	/* Root as well: the events are then those of a user who can take them out of his keeper. */
	if (client->uid != keeper->events.uid) {
		close(fd);
		return -EACCES;
	}
	event->opener = client->pid;
	return csink_keeper_take(&keeper->events, fd, event);
}

/* Reading for those who may; everything else for owners (and root). */
static int find(struct keeper *keeper, const struct client *client, uint32_t op, uint64_t id, struct csink_kept **kept)
{
	bool owner = client->uid == keeper->events.uid || client->uid == 0;

	*kept = csink_keeper_find(&keeper->events, id);
	if (!*kept)
		return -ENOENT;
	if (op == CSINK_PERSIST_READ ? !csink_keeper_lets_read(*kept, client->uid, client->gid) : !owner)
		return -EACCES;
	return 0;
}

static int answer(struct keeper *keeper, const struct client *client, struct csink_persist_request *request, int fd,
		  struct csink_persist_reply *reply, int *reply_fd)
{
	struct csink_kept *kept;
	int err;

	if (request->op == CSINK_PERSIST_DETACH) {
		err = detach(keeper, client, &request->event, fd);
		reply->event = request->event;
		return err;
	}
	if (fd >= 0)
		close(fd);
	err = find(keeper, client, request->op, request->event.id, &kept);
	if (err)
		return err;
	reply->event = kept->event;
	switch (request->op) {
	case CSINK_PERSIST_ATTACH:
		csink_keeper_drop(&keeper->events, kept);
		return 0;
	case CSINK_PERSIST_OPEN:
		if (request->event.cpu != kept->event.cpu)
			return -EINVAL;
		*reply_fd = kept->fd;
		return 0;
	case CSINK_PERSIST_READ:
		return csink_keeper_read(kept, &reply->value);
	default:
		return -EPROTO;
	}
}

static int list(struct keeper *keeper, const struct client *client, int socket_fd)
{
	struct csink_persist_reply reply = {.bytes = sizeof(reply)};
	int err = 0;

	for (uint32_t i = 0; i < keeper->events.nr && !err; i++) {
		if (!csink_keeper_lets_read(&keeper->events.kept[i], client->uid, client->gid))
			continue;
		reply.event = keeper->events.kept[i].event;
		err = csink_persist_send(socket_fd, &reply, sizeof(reply), -1);
	}
	memset(&reply.event, 0, sizeof(reply.event));
	return err ? err : csink_persist_send(socket_fd, &reply, sizeof(reply), -1);
}

/* Returns 0, or -errno: nothing more is to be had from this client. */
static int serve(struct keeper *keeper, const struct client *client, int socket_fd)
{
	struct csink_persist_reply reply = {.bytes = sizeof(reply)};
	struct csink_persist_request request;
	int fd = -1, reply_fd = -1, err = csink_persist_receive(socket_fd, &request, sizeof(request), &fd);

	if (err && err != -EMFILE)
		return err;
	if (!err && request.bytes != sizeof(request)) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	if (!err && request.op == CSINK_PERSIST_LIST) {
		if (fd >= 0)
			close(fd);
		return list(keeper, client, socket_fd);
	}
	reply.err = err ? err : answer(keeper, client, &request, fd, &reply, &reply_fd);
	return csink_persist_send(socket_fd, &reply, sizeof(reply), reply_fd);
}

/* ---- clients ---- */

static void forget_client(struct keeper *keeper, nfds_t at)
{
	close(keeper->fds[at].fd);
	keeper->nr--;
	keeper->fds[at] = keeper->fds[keeper->nr];
	keeper->clients[at] = keeper->clients[keeper->nr];
}

static void add_client(struct keeper *keeper, int fd)
{
	struct timeval patience = {1, 0}; /* whoever does not read his answers must not keep the others waiting */
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (keeper->nr >= keeper->max || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	keeper->fds[keeper->nr] = (struct pollfd){.fd = fd, .events = POLLIN};
	keeper->clients[keeper->nr++] = (struct client){peer.uid, peer.gid, peer.pid};
}

/* Those that wait; with all places taken they wait on. */
static void accept_clients(struct keeper *keeper)
{
	keeper->is_full = false;
	while (keeper->nr < keeper->max) {
		int fd = accept4(keeper->listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0) {
			keeper->is_full = errno != EAGAIN && errno != ECONNABORTED && errno != EINTR;
			return;
		}
		add_client(keeper, fd);
	}
}

static void serve_clients(struct keeper *keeper)
{
	for (nfds_t i = 1; i < keeper->nr;) {
		if (keeper->fds[i].revents && serve(keeper, &keeper->clients[i], keeper->fds[i].fd))
			forget_client(keeper, i); /* another one is in its place now */
		else
			i++;
	}
}

/* ---- beginning and end ---- */

static int open_socket(struct keeper *keeper)
{
	int folder_fd = keeper->events.folder_fd;
	struct sockaddr_un address;

	keeper->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (keeper->listen_fd < 0)
		return -errno;
	unlinkat(folder_fd, CSINK_PERSIST_SOCKET, 0);
	csink_persist_address(folder_fd, &address);
	umask(0177);
	if (bind(keeper->listen_fd, (struct sockaddr *)&address, sizeof(address)) || listen(keeper->listen_fd, BACKLOG))
		return -errno;
	umask(077);
	keeper->fds[0] = (struct pollfd){.fd = keeper->listen_fd, .events = POLLIN};
	keeper->nr = 1;
	return 0;
}

/* The lock of the one before us may be there a moment longer than its socket, and whoever asks for it has it shortly.
 */
static int take_lock(int fd)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 5) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		poll(NULL, 0, 5);
	}
	return -EBUSY;
}

static int open_lock(int folder_fd, const char *name)
{
	int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

static int begin(struct keeper *keeper, const char *folder)
{
	struct rlimit limit;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	keeper->events.folder_fd = fd;
	keeper->events.uid = geteuid();
	keeper->lock_fd = open_lock(fd, CSINK_PERSIST_LOCK);
	keeper->start_fd = open_lock(fd, CSINK_PERSIST_START);
	if (keeper->lock_fd < 0 || keeper->start_fd < 0)
		return CSINK_MIN(keeper->lock_fd, keeper->start_fd);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		keeper->events.limit = (uint32_t)CSINK_MIN(limit.rlim_cur, (rlim_t)1 << 20);
	}
	/* Where there are few, half of them are for events, and a quarter for clients. */
	keeper->max = 1 + CSINK_MIN((nfds_t)MAX_CLIENTS, (nfds_t)keeper->events.limit / 4);
	keeper->events.limit =
		keeper->events.limit > 2 * OTHER_FDS ? keeper->events.limit - OTHER_FDS : keeper->events.limit / 2;
	err = take_lock(keeper->lock_fd);
	if (!err)
		err = csink_keeper_listing_init(fd);
	return err ? err : open_socket(keeper);
}

/* They come only while the keeper waits, so that none comes just before. */
static void take_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	sigprocmask(SIG_BLOCK, &ending, NULL);

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGPIPE, &action, NULL);
}

/*
 * With no event and no client: end, unless somebody is about to start a keeper, who will find us, or has connected by
 * now. Who connects after that is told by the closed socket, and starts another.
 */
static bool may_end(struct keeper *keeper)
{
	if (keeper->events.nr || keeper->nr > 1)
		return false;
	if (flock(keeper->start_fd, LOCK_EX | LOCK_NB))
		return false;
	accept_clients(keeper);
	if (keeper->nr == 1)
		return true;
	flock(keeper->start_fd, LOCK_UN);
	return false;
}

static void end(struct keeper *keeper)
{
	unlinkat(keeper->events.folder_fd, CSINK_PERSIST_SOCKET, 0);
	while (keeper->events.nr)
		csink_keeper_drop(&keeper->events, &keeper->events.kept[keeper->events.nr - 1]);
	flock(keeper->lock_fd, LOCK_UN);
}

static void keep(struct keeper *keeper)
{
	const struct timespec soon = {.tv_nsec = 100000000};
	sigset_t none;

	sigemptyset(&none);
	while (!is_told_to_end && !may_end(keeper)) {
		/* Whoever is about to start a keeper may have died; memory may be there again. */
		bool idle = (!keeper->events.nr && keeper->nr == 1) || keeper->is_full;

		keeper->fds[0].events = keeper->nr < keeper->max && !keeper->is_full ? POLLIN : 0;
		if (ppoll(keeper->fds, keeper->nr, idle ? &soon : NULL, &none) < 0)
			continue; /* a signal; nothing else can be wrong */
		serve_clients(keeper);
		accept_clients(keeper);
	}
}

int csink_keeper_run(const char *folder)
{
	static struct keeper keeper;
	struct csink_persist_reply hello = {.bytes = sizeof(hello)};

	take_signals();
	prctl(PR_SET_NAME, "csink-keeper", 0, 0, 0);
	umask(077);
	hello.err = begin(&keeper, folder);
	if (csink_persist_send(0, &hello, sizeof(hello), -1) || hello.err)
		return 1;
	add_client(&keeper, fcntl(0, F_DUPFD_CLOEXEC, 3));
	dup2(1, 0); /* /dev/null: the connection is a client's like the others */
	keep(&keeper);
	end(&keeper);
	return 0;
}
