/* What a seccomp filter says of a system call: the kernel's classic BPF, run by us before the kernel gets it. */
#ifndef CSINK_SECCOMP_FILTER_H
#define CSINK_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

/**
 * Run a filter.
 * @data  the call: number, architecture, arguments.
 * Returns what the filter does (SECCOMP_RET_...); SECCOMP_RET_ALLOW for a filter that the kernel will not take.
 * Context: any. Reads @prog's memory, which must be readable.
 */
uint32_t csink_seccomp_run(const struct sock_fprog *prog, const struct seccomp_data *data);

#endif
