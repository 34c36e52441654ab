/* Calling the sampling handler on a stack of ours. */
#ifndef CSINK_CALL_ON_STACK_H
#define CSINK_CALL_ON_STACK_H

#include <signal.h>

/**
 * handler(signo, info, context) with the stack pointer at @top (aligned to 16), then back. Context: signal. Uses some
 * 32 bytes of the stack that it is called on.
 */
void csink_call_on_stack(void (*handler)(int signo, siginfo_t *info, void *context), int signo, siginfo_t *info,
			 void *context, void *top);

#endif
