/* The keeper at work: its clients, their requests, and its end. See keeper.h, and preload/api/persist/persist_wire.h.
 */
#include "launcher/commands/persist/keeper.h"

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
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"

#define MAX_CLIENTS 512
/* fds that are no events: clients, sockets, locks, and what requests need for a moment. */
#define OTHER_FDS (MAX_CLIENTS + 32)
#define BACKLOG 1024
#define PATIENCE_MS 5000
/* A client that sends nothing, or does not read its replies, for so long is disconnected. */
#define IDLE_NS (5 * CSINK_NS_PER_S)
/* Connections for all other users (not root) together, and for one of them. */
#define OTHERS_SHARE 4
#define USERS_SHARE 16
/* For one client in one round, so that the others are served as well. */
#define ACCEPTS 64
#define LISTED 64
#define WAIT_US 20000
#define SOON_NS (CSINK_NS_PER_S / 10)

struct client {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	bool is_owner; /* or root: may do everything, comes first, and is not limited with the others */
	bool lists;    /* is being sent a list, from next_id on */
	uint64_t next_id;
	uint64_t since_ns;               /* when it was last heard, or was sent something */
	struct csink_kept_members added; /* to the set that it is making */
};

struct keeper {
	struct csink_keeper_events events;
	int lock_fd, start_fd, listen_fd;
	struct pollfd fds[1 + MAX_CLIENTS]; /* [0] listens */
	struct client clients[1 + MAX_CLIENTS];
	nfds_t nr, max; /* of fds; the first one is no client */
	bool is_full;   /* no client can be accepted for the moment */
	uint64_t now_ns;
};

static volatile sig_atomic_t is_told_to_end;

static void on_signal(int signo)
{
	(void)signo;
	is_told_to_end = 1;
}

static void on_alarm(int signo)
{
	(void)signo;
}

/*
 * When messages of other users are received or dropped, the kernel closes the files that were sent with them. Closing
 * may block: a socket with SO_LINGER does, as long as its sender likes. A signal interrupts that.
 */
static void limit_waits(bool on)
{
	const struct itimerval limit = {{0, on ? WAIT_US : 0}, {0, on ? WAIT_US : 0}};

	setitimer(ITIMER_REAL, &limit, NULL);
}

/* ---- requests ---- */

/* ADD, or DETACH with what was added before; the first event of a set comes with that one. */
static int detach(struct keeper *keeper, struct client *client, uint32_t op, struct csink_persist_event *event, int fd)
{
	struct csink_kept_members *added = &client->added;
	struct csink_kept_member first;
	int err;

	if (fd < 0)
		return -EBADF;
	/* Root as well: the events are then those of a user who can take them out of his keeper. */
	if (client->uid != keeper->events.uid) {
		close(fd);
		return -EACCES;
	}
	err = csink_keeper_add(&keeper->events, added, fd, event);
	if (err || op == CSINK_PERSIST_ADD)
		return err;
	first = added->at[added->nr - 1];
	memmove(&added->at[1], &added->at[0], (added->nr - 1) * sizeof(first));
	added->at[0] = first;
	event->opener = client->pid;
	return csink_keeper_take(&keeper->events, added, event);
}

/* The mode decides which users may read; all else is for the owner (and root). */
static int find(struct keeper *keeper, const struct client *client, uint32_t op, uint64_t id, struct csink_kept **kept)
{
	*kept = op == CSINK_PERSIST_ATTACH ? csink_keeper_find_member(&keeper->events, id)
					   : csink_keeper_find(&keeper->events, id);
	if (!*kept)
		return -ENOENT;
	if (op == CSINK_PERSIST_READ ? !csink_keeper_may_read(*kept, client->uid, client->gid) : !client->is_owner)
		return -EACCES;
	return 0;
}

static int open_member(const struct csink_kept *kept, const struct csink_persist_request *request,
		       struct csink_persist_reply *reply, int *reply_fd)
{
	const struct csink_kept_member *member;

	if (request->member >= kept->members.nr)
		return -ENOENT;
	member = &kept->members.at[request->member];
	if (request->event.cpu != CSINK_PERSIST_ANY_CPU && request->event.cpu != kept->event.cpu)
		return -EINVAL;
	reply->member = (struct csink_persist_member){-1, member->cpu, member->pages};
	*reply_fd = member->fd;
	return 0;
}

static int answer(struct keeper *keeper, struct client *client, struct csink_persist_request *request, int fd,
		  struct csink_persist_reply *reply, int *reply_fd)
{
	struct csink_kept *kept;
	int err;

	if (request->op == CSINK_PERSIST_DETACH || request->op == CSINK_PERSIST_ADD) {
		err = detach(keeper, client, request->op, &request->event, fd);
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
		return open_member(kept, request, reply, reply_fd);
	case CSINK_PERSIST_READ:
		return csink_keeper_read(kept, &reply->value);
	default:
		return -EPROTO;
	}
}

/* Continue to send a list until the client's socket is full. Returns 0, or -errno: the client is to be forgotten. */
static int list(struct keeper *keeper, struct client *client, int socket_fd)
{
	struct csink_persist_reply reply = {.bytes = sizeof(reply)};
	uint32_t sent = 0;
	int err = 0;

	for (uint32_t i = csink_keeper_place(&keeper->events, client->next_id); i <= keeper->events.nr; i++) {
		const struct csink_kept *kept = i < keeper->events.nr ? &keeper->events.kept[i] : NULL;

		if (kept && !csink_keeper_may_read(kept, client->uid, client->gid))
			continue;
		if (sent == LISTED)
			return 0;
		if (kept)
			reply.event = kept->event;
		else
			memset(&reply.event, 0, sizeof(reply.event));
		err = csink_persist_send(socket_fd, &reply, sizeof(reply), -1);
		if (err)
			return err == -ETIMEDOUT ? 0 : err;
		client->since_ns = keeper->now_ns;
		client->next_id = reply.event.id + 1;
		client->lists = kept;
		sent++;
	}
	return 0;
}

/* Can its socket take a reply? Requests of a client that does not read its replies are not received. */
static bool is_writable(int socket_fd)
{
	struct pollfd out = {.fd = socket_fd, .events = POLLOUT};

	return poll(&out, 1, 0) == 1 && out.revents & (POLLOUT | POLLHUP | POLLERR);
}

/* Returns 0, or -errno: nothing more is to be had from this client. */
static int serve(struct keeper *keeper, struct client *client, struct pollfd *at)
{
	struct csink_persist_reply reply = {.bytes = sizeof(reply)};
	struct csink_persist_request request;
	int fd = -1, reply_fd = -1, err;

	if (client->lists)
		return at->revents & (POLLHUP | POLLERR) ? -EPIPE : list(keeper, client, at->fd);
	if (!is_writable(at->fd)) {
		at->events = POLLOUT;
		return 0;
	}
	at->events = POLLIN;
	/* Descriptors of other users are not received: closing a file of theirs could block. */
	err = csink_persist_receive(at->fd, &request, sizeof(request), client->is_owner ? &fd : NULL);
	if (err == -ETIMEDOUT)
		return 0;
	if (err && err != -EMFILE)
		return err;
	client->since_ns = keeper->now_ns;
	if (request.bytes != sizeof(request) || (request.op == CSINK_PERSIST_LIST && fd >= 0)) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	if (request.op == CSINK_PERSIST_LIST) {
		client->lists = true;
		client->next_id = 0;
		return list(keeper, client, at->fd);
	}
	if (err)
		reply.err = client->is_owner ? err : -EACCES;
	else
		reply.err = answer(keeper, client, &request, fd, &reply, &reply_fd);
	err = csink_persist_send(at->fd, &reply, sizeof(reply), reply_fd);
	return reply.err == -EACCES && !client->is_owner ? -EACCES : err; /* nothing more is wanted of it */
}

/* ---- clients ---- */

static void drop_client(struct keeper *keeper, nfds_t at)
{
	close(keeper->fds[at].fd);
	csink_kept_members_free(&keeper->events, &keeper->clients[at].added);
	keeper->nr--;
	keeper->fds[at] = keeper->fds[keeper->nr];
	keeper->clients[at] = keeper->clients[keeper->nr];
}

/* Disconnect the client of another user that was silent longest, if all places of other users are taken; one of this
 * user's clients, if this user's places are. */
static void make_place(struct keeper *keeper, uid_t uid)
{
	nfds_t nr_others = 0, nr_users = 0, oldest = 0, oldest_of_user = 0;

	for (nfds_t i = 1; i < keeper->nr; i++) {
		const struct client *client = &keeper->clients[i];

		if (client->is_owner)
			continue;
		nr_others++;
		if (!oldest || client->since_ns < keeper->clients[oldest].since_ns)
			oldest = i;
		if (client->uid != uid)
			continue;
		nr_users++;
		if (!oldest_of_user || client->since_ns < keeper->clients[oldest_of_user].since_ns)
			oldest_of_user = i;
	}
	if (nr_users >= CSINK_MAX(keeper->max / USERS_SHARE, (nfds_t)1))
		drop_client(keeper, oldest_of_user);
	else if (nr_others >= CSINK_MAX(keeper->max / OTHERS_SHARE, (nfds_t)1))
		drop_client(keeper, oldest);
}

static void add_client(struct keeper *keeper, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	bool is_owner;

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK)) {
		close(fd);
		return;
	}
	is_owner = peer.uid == keeper->events.uid || peer.uid == 0;
	if (!is_owner)
		make_place(keeper, peer.uid);
	keeper->fds[keeper->nr] = (struct pollfd){.fd = fd, .events = POLLIN};
	keeper->clients[keeper->nr++] = (struct client){
		.uid = peer.uid, .gid = peer.gid, .pid = peer.pid, .is_owner = is_owner, .since_ns = keeper->now_ns};
}

/* Accept waiting connections. If all places are taken, which only the owner's clients can do, they wait longer. */
static void accept_clients(struct keeper *keeper)
{
	keeper->is_full = false;
	for (int i = 0; i < ACCEPTS && keeper->nr < keeper->max; i++) {
		int fd = accept4(keeper->listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0) {
			keeper->is_full = errno != EAGAIN && errno != ECONNABORTED && errno != EINTR;
			return;
		}
		add_client(keeper, fd);
	}
}

/* Each has one turn. */
static void serve_clients(struct keeper *keeper, bool owners)
{
	for (nfds_t i = 1; i < keeper->nr;) {
		struct pollfd *at = &keeper->fds[i];

		if (keeper->clients[i].is_owner == owners && at->revents) {
			if (serve(keeper, &keeper->clients[i], at)) {
				drop_client(keeper, i); /* another one is in its place now */
				continue;
			}
			at->revents = 0;
			at->events = keeper->clients[i].lists ? POLLOUT : at->events;
		}
		i++;
	}
}

static void drop_idle(struct keeper *keeper)
{
	keeper->now_ns = csink_monotonic_ns();
	for (nfds_t i = 1; i < keeper->nr;) {
		if (keeper->now_ns >= keeper->clients[i].since_ns + IDLE_NS)
			drop_client(keeper, i);
		else
			i++;
	}
}

/* How long until the next one is idle for too long; UINT64_MAX: there is none. */
static uint64_t next_idle_ns(const struct keeper *keeper)
{
	uint64_t next_ns = UINT64_MAX, now_ns = csink_monotonic_ns();

	for (nfds_t i = 1; i < keeper->nr; i++) {
		uint64_t end_ns = keeper->clients[i].since_ns + IDLE_NS;

		next_ns = CSINK_MIN(next_ns, end_ns > now_ns ? end_ns - now_ns : 0);
	}
	return next_ns;
}

/* ---- beginning and end ---- */

static int open_socket(struct keeper *keeper)
{
	int directory_fd = keeper->events.directory_fd;
	struct sockaddr_un address;

	keeper->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (keeper->listen_fd < 0)
		return -errno;
	unlinkat(directory_fd, CSINK_PERSIST_SOCKET, 0);
	csink_persist_address(directory_fd, &address);
	umask(0177);
	if (bind(keeper->listen_fd, (struct sockaddr *)&address, sizeof(address)) || listen(keeper->listen_fd, BACKLOG))
		return -errno;
	umask(077);
	keeper->fds[0] = (struct pollfd){.fd = keeper->listen_fd, .events = POLLIN};
	keeper->nr = 1;
	return 0;
}

/* The lock of the previous keeper may exist a moment longer than its socket, and a client that tests it holds it
 * briefly.
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

static int open_lock(int directory_fd, const char *name)
{
	int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

static int begin(struct keeper *keeper, const char *directory)
{
	struct rlimit limit;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	keeper->events.directory_fd = fd;
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
	action.sa_handler = on_alarm;
	sigaction(SIGALRM, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGPIPE, &action, NULL);
}

/*
 * With no event and no client: end, unless a process is about to start a keeper and will find this one, or has
 * connected by now. A client that connects later finds the socket closed, and starts another keeper.
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
	unlinkat(keeper->events.directory_fd, CSINK_PERSIST_SOCKET, 0);
	while (keeper->events.nr)
		csink_keeper_drop(&keeper->events, &keeper->events.kept[keeper->events.nr - 1]);
	flock(keeper->lock_fd, LOCK_UN);
}

static void keep(struct keeper *keeper)
{
	sigset_t none;

	sigemptyset(&none);
	while (!is_told_to_end && !may_end(keeper)) {
		uint64_t wait_ns = next_idle_ns(keeper);
		struct timespec wait;

		/* The process that is to start a keeper may have died; memory may be available again. */
		if ((!keeper->events.nr && keeper->nr == 1) || keeper->is_full)
			wait_ns = CSINK_MIN(wait_ns, SOON_NS);
		wait.tv_sec = (time_t)(wait_ns / CSINK_NS_PER_S);
		wait.tv_nsec = (long)(wait_ns % CSINK_NS_PER_S);
		keeper->fds[0].events = keeper->nr < keeper->max && !keeper->is_full ? POLLIN : 0;
		if (ppoll(keeper->fds, keeper->nr, wait_ns == UINT64_MAX ? NULL : &wait, &none) < 0)
			continue; /* a signal; nothing else can be wrong */
		keeper->now_ns = csink_monotonic_ns();
		serve_clients(keeper, true);
		limit_waits(true);
		serve_clients(keeper, false);
		accept_clients(keeper);
		drop_idle(keeper);
		limit_waits(false);
	}
}

int csink_keeper_run(const char *directory)
{
	static struct keeper keeper;
	struct csink_persist_reply hello = {.bytes = sizeof(hello)};

	take_signals();
	prctl(PR_SET_NAME, "csink-keeper", 0, 0, 0);
	umask(077);
	hello.err = begin(&keeper, directory);
	if (csink_persist_send(0, &hello, sizeof(hello), -1) || hello.err)
		return 1;
	keeper.now_ns = csink_monotonic_ns();
	add_client(&keeper, fcntl(0, F_DUPFD_CLOEXEC, 3));
	dup2(1, 0); /* /dev/null: the connection is a client's like the others */
	keep(&keeper);
	end(&keeper);
	return 0;
}
