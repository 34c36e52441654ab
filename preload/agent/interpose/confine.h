/*
 * A program that puts itself under seccomp in the middle of its life. Before the kernel has the filter, it is asked
 * its verdict on the calls of the agent. The agent no longer makes those for which it would kill: sampling goes on with
 * what is there, or stops; the report says which, and why.
 */
#ifndef CSINK_CONFINE_H
#define CSINK_CONFINE_H

/**
 * prctl(2) or seccomp(2) by number, as the program calls it. What is none of this module's business is passed on.
 * Returns as the kernel does, with errno. Context: thread.
 */
long csink_confine_call(long number, long a, long b, long c, long d, long e);

#endif
