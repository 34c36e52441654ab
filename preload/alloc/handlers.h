/*
 * What may interrupt a sample of allocations: the handlers that the program has installed so far. Where there are none,
 * a sample needs no system call.
 */
#ifndef CSINK_ALLOC_HANDLERS_H
#define CSINK_ALLOC_HANDLERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "include/internal/base.h"

enum {
	CSINK_HANDLERS_INTERRUPT = 1, /* a handler of a signal that can be blocked, or cancellation at any place */
	CSINK_HANDLERS_ALTERNATE = 2, /* one that runs on an alternate stack */
};

/* Bits are set before the handler is installed, and stay. */
extern _Atomic uint32_t csink_handlers_seen CSINK_HIDDEN;

#endif
