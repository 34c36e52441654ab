/*
 * What clients and keeper say to each other, on a SOCK_SEQPACKET socket: a request, then its reply; an fd goes along
 * with DETACH's and ADD's requests and with OPEN's reply. ADDs before a DETACH, on the same connection, bring the
 * further events of a set; without a DETACH they go with the connection. LIST has a reply for each event, and one with
 * id 0 at the end. The keeper begins by itself only on the connection of the client that started it: a reply that says
 * whether it is at work.
 */
#ifndef CSINK_PERSIST_WIRE_H
#define CSINK_PERSIST_WIRE_H

#include <limits.h>
#include <stdbool.h>

#include "include/countersink/persist.h"

#define CSINK_PERSIST_SOCKET "socket"
#define CSINK_PERSIST_EVENTS "events"
/* The keeper has this one locked while it lives. */
#define CSINK_PERSIST_LOCK "lock"
/* A client that starts a keeper locks this file, and so does a keeper that ends: never both at a time. */
#define CSINK_PERSIST_START "start"

enum csink_persist_op {
	CSINK_PERSIST_DETACH = 1,
	CSINK_PERSIST_ATTACH,
	CSINK_PERSIST_OPEN,
	CSINK_PERSIST_READ,
	CSINK_PERSIST_LIST,
	CSINK_PERSIST_ADD,
};

#define CSINK_PERSIST_ANY_CPU INT32_MIN /* OPEN: whatever CPU it is on */

struct csink_persist_request {
	uint32_t bytes; /* sizeof: another version's is refused */
	uint32_t op;
	uint32_t member;                  /* OPEN: which event of a set */
	struct csink_persist_event event; /* DETACH: all; ADD: cpu, pages; OPEN: id, cpu; ATTACH, READ: id */
};

struct csink_persist_reply {
	uint32_t bytes;
	int32_t err;                        /* 0 or -errno */
	struct csink_persist_member member; /* OPEN: its cpu and pages */
	struct csink_persist_event event;
	struct csink_persist_value value;
};

/**
 * Open the run directory.
 * @create  make it where it is not there.
 * @path    set to where it is, or would be.
 * Returns its fd, or -errno as in persist.h; -ENOENT: not there. Context: thread.
 */
int csink_persist_directory(const char *base, bool create, char path[PATH_MAX]);

/**
 * Connect to the keeper of a run directory.
 * Returns the socket; -ECONNREFUSED: there is none; -EPERM: the listener is not of the directory's owner. Context:
 * thread.
 */
int csink_persist_connect(int directory_fd);

/**
 * Start a keeper, unless there is one by now, and connect to it.
 * Returns the socket, or -errno. Context: thread.
 */
int csink_persist_start(int directory_fd);

/** Send a message and at most one fd (-1: none). Returns 0 or -errno. Context: thread. */
int csink_persist_send(int socket_fd, const void *message, size_t bytes, int fd);

/**
 * Receive a message and at most one fd.
 * @fd  set, -1: none came; NULL: none is taken.
 * Returns 0 or -errno, and then no fd: -EPIPE if the other side has closed; -EPROTO if the message has another size, or
 * more than one fd; -EMFILE if there was no room for its fd: then the message is valid. Every other fd that comes is
 * closed. Context: thread.
 */
int csink_persist_receive(int socket_fd, void *message, size_t bytes, int *fd);

/** The kernel's id of an event. Returns 0, -EBADF, or -EINVAL: it is none. Context: any. */
int csink_persist_id(int fd, uint64_t *id);

/** "address" of the socket in the directory, however long its path. Context: thread. */
struct sockaddr_un;
void csink_persist_address(int directory_fd, struct sockaddr_un *address);

#endif
