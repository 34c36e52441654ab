/*
 * Hostile clients of a keeper: descriptors that no request asked for, connections that send nothing, answers that are
 * not read, messages of other sizes. And a hostile keeper.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "tests/unit/faulting_target.h"

#define UNPRIVILEGED_ID 65534
#define MAX_FDS 253 /* of a message; the kernel's limit */
#define MANY 512

static struct csink_persist_value value;
static pid_t keeper;
static uint64_t event_id;

static int connect_to_keeper(void)
{
	char path[PATH_MAX];
	int directory_fd = csink_persist_directory(base, false, path);
	int fd = directory_fd < 0 ? directory_fd : csink_persist_connect(directory_fd);

	if (directory_fd >= 0)
		close(directory_fd);
	return fd;
}

/* Send bytes with so many copies of a descriptor. Returns as sendmsg. */
static ssize_t send_fds(int socket_fd, const void *bytes, size_t nr_bytes, int fd, uint32_t nr_fds, int flags)
{
	static _Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_FDS * sizeof(int))];
	struct iovec data = {(void *)bytes, nr_bytes};
	struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
	struct cmsghdr *rights;

	if (nr_fds) {
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
		for (uint32_t i = 0; i < nr_fds; i++)
			memcpy(CMSG_DATA(rights) + i * sizeof(int), &fd, sizeof(fd));
	}
	return sendmsg(socket_fd, &header, MSG_NOSIGNAL | flags);
}

static struct csink_persist_request request_of(uint32_t op)
{
	return (struct csink_persist_request){
		.bytes = sizeof(struct csink_persist_request), .op = op, .event = {.id = event_id, .cpu = -1}};
}

/* Is the connection answered or closed? Waits for either. */
static bool is_ended(int fd)
{
	struct csink_persist_reply reply;
	ssize_t got = recv(fd, &reply, sizeof(reply), 0);

	return got == 0 || (got < 0 && errno == ECONNRESET);
}

static bool start_keeper(uint32_t mode)
{
	struct perf_event_attr attr = faults();
	struct csink_persist_event event = event_of(&attr, 0);
	int fd = open_event(&attr, 0), err;

	event.mode = mode;
	err = csink_persist_detach(fd, &event, base);
	close(fd);
	event_id = event.id;
	keeper = keeper_pid();
	return !err;
}

/* ---- descriptors ---- */

static void flood_with_fds(uint32_t op, uint32_t nr_fds, size_t nr_bytes, int times)
{
	struct csink_persist_request request = request_of(op);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < times; i++) {
		int fd = connect_to_keeper();

		send_fds(fd, &request, nr_bytes, null, nr_fds, 0);
		recv(fd, &(struct csink_persist_reply){0}, sizeof(struct csink_persist_reply), 0);
		close(fd);
	}
	close(null);
}

static int nr_keepers_fds(void)
{
	int events, all;

	/* It has seen all that came before when it has answered this, and closed those whose other end is. */
	csink_persist_read(event_id, &value, base);
	count_fds(keeper, &events, &all);
	return all;
}

static int fds_wanted;

static bool has_wanted_fds(void)
{
	return nr_keepers_fds() <= fds_wanted;
}

static struct word nobody_floods(uint64_t id)
{
	struct word word = {.err = setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID) ? -errno : 0};

	(void)id;
	flood_with_fds(CSINK_PERSIST_READ, 2, sizeof(struct csink_persist_request), 100);
	flood_with_fds(CSINK_PERSIST_DETACH, MAX_FDS, sizeof(struct csink_persist_request), 20);
	return word;
}

static void test_fds(void)
{
	size_t whole = sizeof(struct csink_persist_request);

	fds_wanted = nr_keepers_fds();
	flood_with_fds(CSINK_PERSIST_READ, 2, whole, 100);
	ok(wait_until(has_wanted_fds), "two descriptors in a message, 100 times: the keeper keeps none");
	flood_with_fds(CSINK_PERSIST_DETACH, MAX_FDS, whole, 20);
	ok(wait_until(has_wanted_fds), "%d descriptors in a message, 20 times: the keeper keeps none", MAX_FDS);
	flood_with_fds(CSINK_PERSIST_LIST, 1, whole, 20);
	ok(wait_until(has_wanted_fds), "a descriptor with a request that takes none: the keeper keeps none");
	flood_with_fds(CSINK_PERSIST_DETACH, 3, 5, 20);
	ok(wait_until(has_wanted_fds), "descriptors with half a message: the keeper keeps none");
	flood_with_fds(CSINK_PERSIST_DETACH, 2, 0, 20);
	ok(wait_until(has_wanted_fds), "descriptors with an empty message: the keeper keeps none");
	if (geteuid()) {
		skip("descriptors of another user", "needs root, to become another user");
	} else {
		is_num(in_process(nobody_floods, 0).err, 0, "another user sends descriptors");
		ok(wait_until(has_wanted_fds), "another user's descriptors: the keeper keeps none");
	}
	is_num(csink_persist_read(event_id, &value, base), 0, "the keeper answers after foreign descriptors");
}

/* ---- a descriptor whose close waits ---- */

#define LINGER_S 60 /* more than any client waits for the keeper */

/* One end of a TCP connection that has more to send than its other end takes, and waits for that when it is closed. */
static int lingering_socket(int *other)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger linger = {1, LINGER_S};
	socklen_t len = sizeof(address);
	static char bytes[1 << 16];
	int listen_fd = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(listen_fd, (struct sockaddr *)&address, sizeof(address)) || listen(listen_fd, 1) ||
	    getsockname(listen_fd, (struct sockaddr *)&address, &len) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return -1;
	*other = accept(listen_fd, NULL, NULL);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	close(listen_fd);
	return fd;
}

static int lingering_ends[2];

static struct word nobody_lingers(uint64_t id)
{
	struct word word = {.err = setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID) ? -errno : 0};
	struct csink_persist_request request = request_of(CSINK_PERSIST_READ);
	int fd = connect_to_keeper();

	(void)id;
	word.value = send_fds(fd, &request, sizeof(request), lingering_ends[0], 1, 0) > 0;
	return word;
}

static void test_linger(void)
{
	struct word word;

	if (geteuid()) {
		skip("a descriptor whose close waits, of another user", "needs root, to become another user");
		return;
	}
	lingering_ends[0] = lingering_socket(&lingering_ends[1]);
	if (lingering_ends[0] < 0) {
		skip("a descriptor whose close waits", "there is no loopback interface");
		return;
	}
	/* So that the message has the last descriptor of it when the keeper gets to it. */
	kill(keeper, SIGSTOP);
	word = in_process(nobody_lingers, 0);
	close(lingering_ends[0]);
	kill(keeper, SIGCONT);
	is_num((long)word.value, 1, "another user sends a descriptor whose close waits");
	is_num(csink_persist_read(event_id, &value, base), 0, "the owner is served all the same");
	is_num(csink_persist_read(event_id, &value, base), 0, "the owner is served after that descriptor was accepted");
	close(lingering_ends[1]);
}

/* ---- messages ---- */

static void test_messages(void)
{
	static char large[4 * sizeof(struct csink_persist_request)];
	struct csink_persist_request request = request_of(99);
	struct csink_persist_reply reply = {0};
	int fd = connect_to_keeper();

	send(fd, &request, sizeof(request) / 2, MSG_NOSIGNAL);
	ok(is_ended(fd), "half a message ends the connection");
	close(fd);
	fd = connect_to_keeper();
	send(fd, large, sizeof(large), MSG_NOSIGNAL);
	ok(is_ended(fd), "a message that is too large ends the connection");
	close(fd);
	fd = connect_to_keeper();
	request.bytes++;
	send(fd, &request, sizeof(request), MSG_NOSIGNAL);
	ok(is_ended(fd), "a message of another version ends the connection");
	close(fd);
	fd = connect_to_keeper();
	request = request_of(99);
	send(fd, &request, sizeof(request), MSG_NOSIGNAL);
	is_num(recv(fd, &reply, sizeof(reply), 0) == sizeof(reply) ? reply.err : 0, -EPROTO,
	       "an unknown request is answered: EPROTO");
	close(fd);
	is_num(csink_persist_read(event_id, &value, base), 0, "the keeper is at work");
}

/* ---- clients that do not read ---- */

#define DEAF 16

static void test_deaf(void)
{
	struct csink_persist_request request = request_of(CSINK_PERSIST_LIST);
	int fds[DEAF];

	fds_wanted = nr_keepers_fds(); /* before: on a slow machine some of them are gone when the last one has come */
	/* Each asks more than its answers have room for: a keeper that waits a second for each would be too late. */
	for (int i = 0; i < DEAF; i++) {
		fds[i] = connect_to_keeper();
		while (send_fds(fds[i], &request, sizeof(request), -1, 0, MSG_DONTWAIT) > 0)
			;
	}
	is_num(csink_persist_read(event_id, &value, base), 0,
	       "16 clients do not read their answers: another is served");
	ok(wait_until(has_wanted_fds), "clients that do not read are disconnected after a time");
	for (int i = 0; i < DEAF; i++)
		close(fds[i]);
}

/* ---- idle clients ---- */

static struct word nobody_idles(uint64_t ready_fd)
{
	struct word word = {.err = setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID) ? -errno : 0};
	int fds[2 * MANY], nr = 0;
	char byte = 0;

	while (nr < 2 * MANY && (fds[nr] = connect_to_keeper()) >= 0)
		nr++;
	word.value = (uint64_t)nr;
	/* The keeper's owner is served meanwhile; then the other end closes. */
	if (write((int)ready_fd, "r", 1) != 1 || read((int)ready_fd, &byte, 1) < 0)
		word.err = -errno;
	return word;
}

static struct word idler;

static void *run_idler(void *arg)
{
	idler = in_process(nobody_idles, *(const int *)arg);
	return NULL;
}

static void test_idle(void)
{
	int pair[2], nr_before, nr_now;
	pthread_t thread;
	char byte;

	if (geteuid()) {
		skip("idle connections of another user", "needs root, to become another user");
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		exit(1);
	nr_before = nr_keepers_fds();
	pthread_create(&thread, NULL, run_idler, &pair[1]);
	if (read(pair[0], &byte, 1) != 1)
		ok(0, "another user connects");
	is_num(csink_persist_read(event_id, &value, base), 0, "1,024 connections of another user: the owner is served");
	nr_now = nr_keepers_fds();
	ok(nr_now - nr_before <= MANY / 16 + 1, "1,024 connections of another user: few are kept (%d)",
	   nr_now - nr_before);
	fds_wanted = nr_before;
	ok(wait_until(has_wanted_fds), "idle connections of another user are closed after a time");
	shutdown(pair[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	ok(idler.value >= MANY, "idle connections had been accepted (%llu)", (unsigned long long)idler.value);
	close(pair[0]);
	close(pair[1]);
}

static void test_own_idle(void)
{
	int nr = nr_keepers_fds(), fds[MANY + 8];

	for (int i = 0; i < MANY + 8; i++)
		fds[i] = connect_to_keeper();
	is_num(csink_persist_read(event_id, &value, base), 0,
	       "520 idle connections of the owner's own: one more is served");
	fds_wanted = nr;
	ok(wait_until(has_wanted_fds), "idle connections of the owner are closed");
	for (int i = 0; i < MANY + 8; i++)
		close(fds[i]);
}

/* ---- a hostile keeper ---- */

static struct {
	int listen_fd;
	struct csink_persist_reply reply;
	uint32_t nr_fds;
	int fd;
	bool endless;
} hostile;

static void *be_hostile(void *arg)
{
	struct csink_persist_request request;
	int fd;

	while ((fd = accept4(hostile.listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		while (recv(fd, &request, sizeof(request), 0) > 0) {
			while (send_fds(fd, &hostile.reply, sizeof(hostile.reply), hostile.fd, hostile.nr_fds, 0) > 0 &&
			       hostile.endless)
				;
		}
		close(fd);
	}
	return arg;
}

static int nr_fds_of_process(void)
{
	int events, all;

	count_fds(getpid(), &events, &all);
	return all;
}

/* Waits until the server has closed its side, too. */
static int fds_target;

static bool has_target_fds(void)
{
	return nr_fds_of_process() <= fds_target;
}

static void opens(int want, const char *what)
{
	struct csink_persist_event event;

	fds_target = nr_fds_of_process();
	is_num(csink_persist_open(1, -1, &event, base), want, what);
	ok(wait_until(has_target_fds), "%s: no descriptor stays open", what);
}

static void answer_with(int err, int fd, uint32_t nr_fds)
{
	memset(&hostile.reply, 0, sizeof(hostile.reply));
	hostile.reply.bytes = sizeof(hostile.reply);
	hostile.reply.err = err;
	hostile.fd = fd;
	hostile.nr_fds = nr_fds;
}

static void test_hostile_keeper(void)
{
	struct perf_event_attr attr = faults();
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), event = open_event(&attr, 0), directory_fd;
	struct sockaddr_un address;
	pthread_t thread;
	char path[PATH_MAX];

	hostile.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	directory_fd = csink_persist_directory(base, true, path);
	csink_persist_address(directory_fd, &address);
	if (bind(hostile.listen_fd, (struct sockaddr *)&address, sizeof(address)) || listen(hostile.listen_fd, 8))
		ok(0, "the hostile keeper listens");
	pthread_create(&thread, NULL, be_hostile, NULL);
	answer_with(0, null, 2);
	opens(-EPROTO, "a keeper that sends two descriptors: EPROTO");
	answer_with(0, null, MAX_FDS);
	opens(-EPROTO, "an answer with 253 descriptors");
	answer_with(0, null, 1);
	opens(-EPROTO, "an answer with a descriptor that is no event");
	answer_with(0, event, 1);
	opens(-EPROTO, "an answer with another event than the requested one");
	answer_with(-EACCES, event, 1);
	opens(-EACCES, "an error and a descriptor");
	answer_with(5, null, 0);
	opens(-EPROTO, "an error that would look like a descriptor");
	answer_with(-5000, null, 0);
	opens(-EPROTO, "an answer with an error that is no errno");
	answer_with(0, null, MAX_FDS);
	is_num(csink_persist_read(1, &value, base), -EPROTO, "descriptors where none is expected");
	ok(wait_until(has_target_fds), "descriptors where none is expected: no descriptor stays open");
	answer_with(0, -1, 0);
	hostile.reply.event.id = 7;
	memset(hostile.reply.event.name, 'x', sizeof(hostile.reply.event.name));
	hostile.endless = true;
	is_num(csink_persist_list(count_one, NULL, base), -EPROTO, "a list that never ends");
	shutdown(hostile.listen_fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(hostile.listen_fd);
	unlinkat(directory_fd, CSINK_PERSIST_SOCKET, 0);
	close(directory_fd);
	close(null);
	close(event);
}

int main(void)
{
	struct rlimit files;

	if (!begin())
		return done();
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	test_hostile_keeper();
	ok(start_keeper(0644), "a keeper of a readable event starts");
	test_fds();
	test_linger();
	test_messages();
	test_deaf();
	if (files.rlim_max < 3 * MANY) {
		skip("idle connections", "ulimit -Hn allows too few");
	} else {
		test_idle();
		test_own_idle();
	}
	finish();
	return done();
}
