/*
 * Where PCP keeps its things. Its own rule is followed: the environment, then pcp.conf, then what it is built with;
 * libpcp is not asked, for it would write three dozen variables into this process's environment.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/api/reserve/reserve_impl.h"
#include "preload/core/sysfs.h"

#define PMCD_DEFAULT_PORT "44321"
#define CONNECT_MS 50 /* on this host it is connected or refused at once */

int csink_reserve_poll_ms(uint64_t deadline_ns)
{
	uint64_t now = csink_monotonic_ns(), left;

	if (deadline_ns == CSINK_NEVER_NS)
		return -1;
	left = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

int csink_reserve_sleep(uint64_t until_ns, int cancel_fd)
{
	struct pollfd fd = {.fd = cancel_fd, .events = POLLIN};

	/* A negative fd is skipped: then this is no more than a sleep. A signal's handler does not cut it short. */
	while (csink_monotonic_ns() < until_ns) {
		if (poll(&fd, 1, csink_reserve_poll_ms(until_ns)) > 0)
			return -ECANCELED;
	}
	return 0;
}

/* The value of a line NAME=value of pcp.conf, copied to out; false if there is none. */
static bool find_line(char *text, const char *name, char *out, size_t size)
{
	size_t len = strlen(name);
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		if (strncmp(line, name, len) || line[len] != '=' || !line[len + 1])
			continue;
		snprintf(out, size, "%s", line + len + 1);
		return true;
	}
	return false;
}

/*
 * A path that PCP is configured with: NAME in the environment, else in pcp.conf ($PCP_CONF, $PCP_DIR/etc/pcp.conf,
 * /etc/pcp.conf), else fallback. Returns out.
 */
static char *configured_path(const char *name, const char *fallback, char *out, size_t size)
{
	const char *value = getenv(name), *conf = getenv("PCP_CONF"), *root = getenv("PCP_DIR");
	char text[16384]; /* PCP's own is half as long */

	if (value && *value) {
		snprintf(out, size, "%s", value);
		return out;
	}
	if (conf && *conf)
		csink_sysfs_read(text, sizeof(text), "%s", conf);
	else
		csink_sysfs_read(text, sizeof(text), "%s/etc/pcp.conf", root ? root : "");
	if (!find_line(text, name, out, size))
		snprintf(out, size, "%s", fallback);
	return out;
}

int csink_pcp_lock_file(char *out, size_t size)
{
	static const char name[] = "/perfevent/perflock";

	configured_path("PCP_PMDAS_DIR", "/var/lib/pcp/pmdas", out, size);
	if (strlen(out) + sizeof(name) > size)
		return -ENAMETOOLONG;
	strcat(out, name);
	return 0;
}

static bool connects(int family, const void *address, socklen_t len)
{
	struct pollfd fd = {.fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .events = POLLOUT};
	socklen_t err_len = sizeof(int);
	int err = 0;

	if (fd.fd < 0)
		return false;
	if (connect(fd.fd, address, len)) {
		err = errno;
		/* A full queue of a UNIX socket also means that a process listens. */
		if (err == EAGAIN)
			err = 0;
		else if (err == EINPROGRESS &&
			 (poll(&fd, 1, CONNECT_MS) != 1 || getsockopt(fd.fd, SOL_SOCKET, SO_ERROR, &err, &err_len)))
			err = ETIMEDOUT;
	}
	close(fd.fd);
	return !err;
}

static bool listens_at_path(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("PMCD_SOCKET");
	char directory[sizeof(address.sun_path) - sizeof("/pmcd.socket")];

	if (path && *path)
		snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	else
		snprintf(address.sun_path, sizeof(address.sun_path), "%s/pmcd.socket",
			 configured_path("PCP_RUN_DIR", "/run/pcp", directory, sizeof(directory)));
	return connects(AF_UNIX, &address, sizeof(address));
}

static bool listens_at_port(uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback};

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connects(AF_INET, &v4, sizeof(v4)) || connects(AF_INET6, &v6, sizeof(v6));
}

bool csink_pcp_is_reachable(void)
{
	CSINK_KEEP_ERRNO;
	const char *ports = getenv("PMCD_PORT");
	bool is = listens_at_path();

	if (!ports || !*ports)
		ports = PMCD_DEFAULT_PORT;
	while (!is && *ports) {
		char *end;
		unsigned long port = strtoul(ports, &end, 10);

		if (end == ports)
			break;
		is = port && port <= UINT16_MAX && listens_at_port((uint16_t)port);
		ports = *end ? end + 1 : end;
	}
	return is;
}
