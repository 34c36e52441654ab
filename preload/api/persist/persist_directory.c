/* Persistent events: the run directory, and messages to and from the keeper that lives there. See persist_wire.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "include/internal/shared_options.h"
#include "preload/api/persist/persist_wire.h"
#include "preload/core/program_file.h"

#define NAME "countersink-persist"
#define PATIENCE_S 10
#define MAX_SENT_FDS 253 /* SCM_MAX_FD of the kernel, for a message */

static int name_directory(const char *base, char path[PATH_MAX])
{
	int n;

	if (!base || !*base)
		base = getenv(CSINK_ENV_PREFIX "PERSIST_DIR");
	if (!base || !*base)
		base = getenv("XDG_RUNTIME_DIR");
	if (base && *base)
		n = snprintf(path, PATH_MAX, "%s/" NAME, base);
	else
		n = snprintf(path, PATH_MAX, "/tmp/" NAME "-%u", (unsigned)geteuid());
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int csink_persist_directory(const char *base, bool create, char path[PATH_MAX])
{
	struct stat st;
	int fd, err = name_directory(base, path);

	if (err)
		return err;
	if (create && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Another's, through which one may only pass: what is in it can still be reached by name. */
	if (fd < 0 && errno == EACCES)
		fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (!fstat(fd, &st) && !(st.st_mode & 022) && (st.st_uid == geteuid() || !create))
		return fd;
	close(fd);
	/* In a directory that all may write, with a name that can be guessed, another user may have made it. */
	return !(st.st_mode & 022) && base && *base ? -EACCES : -EPERM;
}

void csink_persist_address(int directory_fd, struct sockaddr_un *address)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/" CSINK_PERSIST_SOCKET, directory_fd);
}

int csink_persist_connect(int directory_fd)
{
	struct timeval patience = {PATIENCE_S, 0};
	struct sockaddr_un address;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;
	int err, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	csink_persist_address(directory_fd, &address);
	do
		err = connect(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	while (err == -EINTR);
	if (!err && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || fstat(directory_fd, &st)))
		err = -errno;
	if (!err && peer.uid != st.st_uid)
		err = -EPERM;
	if (!err)
		return fd;
	close(fd);
	if (err == -EAGAIN)
		return -ETIMEDOUT;
	return err == -ENOENT ? -ECONNREFUSED : err;
}

int csink_persist_send(int socket_fd, const void *message, size_t bytes, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec data = {(void *)message, bytes};
	struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
	struct cmsghdr *rights;
	ssize_t sent;

	if (fd >= 0) {
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	}
	do
		sent = sendmsg(socket_fd, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	return errno == EAGAIN ? -ETIMEDOUT : errno == ECONNRESET ? -EPIPE : -errno;
}

/*
 * Each descriptor of a message is ours from now on, in however many control messages they came: close all but the
 * first. Returns how many there were.
 */
static uint32_t take_fds(struct msghdr *header, int *first)
{
	uint32_t nr = 0;

	for (struct cmsghdr *rights = CMSG_FIRSTHDR(header); rights; rights = CMSG_NXTHDR(header, rights)) {
		size_t bytes = rights->cmsg_len - CMSG_LEN(0);
		int fd;

		if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(fd) <= bytes; at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(rights) + at, sizeof(fd));
			if (nr++)
				close(fd);
			else
				*first = fd;
		}
	}
	return nr;
}

int csink_persist_receive(int socket_fd, void *message, size_t bytes, int *fd)
{
	/* Space for as many descriptors as a message can have. Without a buffer the kernel closes them itself. */
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_SENT_FDS * sizeof(int))];
	struct iovec data = {message, bytes};
	struct msghdr header = {.msg_iov = &data,
				.msg_iovlen = 1,
				.msg_control = fd ? control : NULL,
				.msg_controllen = fd ? sizeof(control) : 0};
	int first = -1, err = 0;
	uint32_t nr;
	ssize_t got;

	do
		got = recvmsg(socket_fd, &header, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (fd)
		*fd = -1;
	if (got < 0)
		return errno == EAGAIN ? -ETIMEDOUT : errno == ECONNRESET ? -EPIPE : -errno;
	nr = take_fds(&header, &first);
	if (!got)
		err = -EPIPE;
	else if ((size_t)got != bytes || header.msg_flags & MSG_TRUNC || nr > 1)
		err = -EPROTO;
	else if (header.msg_flags & MSG_CTRUNC)
		err = -EMFILE;
	if (first >= 0 && err)
		close(first);
	else if (fd)
		*fd = first;
	return err;
}

int csink_persist_id(int fd, uint64_t *id)
{
	char target[64];

	if (fcntl(fd, F_GETFD) < 0)
		return -EBADF;
	csink_program_fd_path(fd, target, sizeof(target));
	if (strcmp(target, "anon_inode:[perf_event]") || ioctl(fd, PERF_EVENT_IOC_ID, id))
		return -EINVAL;
	return 0;
}
