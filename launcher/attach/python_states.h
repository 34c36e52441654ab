/*
 * The states of a CPython's threads, found from outside: the interpreter's list of them, by a search of its variables
 * that is checked against the threads that the process has. No offset in these variables is known, since patch releases
 * change them.
 */
#ifndef CSINK_PYTHON_STATES_H
#define CSINK_PYTHON_STATES_H

#include "preload/core/python_layout.h"

#define CSINK_PYTHON_ROOTS 4

/* Where a word is that refers to a list's first state: the same in all processes that run one build. */
struct csink_python_root {
	uint32_t variable; /* offset of a variable of the interpreter's, in _PyRuntime */
	int32_t within;    /* >= 0: the word is at this offset in what the variable refers to; -1: it is the variable */
};

/* A process's CPython; of a file, with the object's own addresses, what all processes that run it have in common. */
struct csink_attach_python {
	struct csink_attach_python *file; /* the attach command's thread alone reads it */
	struct csink_python object;
	uint64_t bias; /* of the object: its addresses in the process less its own */
	/* The object's variables that the file has values of; code objects among them are the same in all processes. */
	uint64_t data, data_bytes;
	struct csink_python_root roots[CSINK_PYTHON_ROOTS];
	uint32_t nr_roots;
};

/**
 * Find python->roots. It takes some ten milliseconds, 200 at most; the process may run.
 * Returns 0, -ENOENT (it has no thread state yet, or it is not found), -EPERM (its memory must not be read), -ESRCH...
 * Context: thread; one at a time.
 */
int csink_python_find_roots(struct csink_attach_python *python, int32_t pid);

/**
 * The state of a thread: an address, or 0.
 * @tid  as the process's own PID namespace numbers it.
 * Context: any thread.
 */
uint64_t csink_python_state_of(const struct csink_attach_python *python, int32_t pid, int32_t tid);

/** Where libc has a thread's number, for a thread whose pthread_self() is that; 0: not known. Context: any thread. */
uint64_t csink_python_tid_at(uint64_t self);

/** The first state of a list; 0: it cannot be read. Context: any thread. */
uint64_t csink_python_first_state(const struct csink_attach_python *python, int32_t pid, uint32_t root);

/** The number of a thread in its own PID namespace; it itself where that cannot be found out. */
int32_t csink_tid_inside(int32_t tid);

#endif
