/*
 * A program that installs a seccomp filter while it runs. Before the kernel gets the filter, the agent runs it over its
 * own system calls, and no longer makes those for which the filter kills. Sampling continues without them, or stops;
 * the report has the missing part and the reason.
 */
#ifndef CSINK_CONFINE_H
#define CSINK_CONFINE_H

/**
 * prctl(2) or seccomp(2) by number, as the program calls it. Other calls are passed on.
 * Returns as the kernel does, with errno. Context: thread.
 */
long csink_confine_call(long number, long a, long b, long c, long d, long e);

#endif
