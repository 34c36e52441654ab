/*
 * Explanations of what a call itself has wrong: sizes, values, flags, events, pointers, rings. Each errno is provoked
 * for real, and the field to blame must be found.
 */
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/explain_try.h"

static void test_size(void)
{
	static union {
		struct perf_event_attr attr;
		char bytes[8192];
	} big;

	attr.size = 56;
	blames("attr.size below the first version", E2BIG, "size", CSINK_CAUSE_BAD_VALUE);
	big.attr = attr;
	big.attr.size = 4104;
	call.attr = &big.attr;
	attr.size = 4104; /* blames() opens attr */
	blames("attr.size over a page", E2BIG, "size", CSINK_CAUSE_BAD_VALUE);
}

static void test_tail(void)
{
	static union {
		struct perf_event_attr attr;
		char bytes[512];
	} big;
	int fd;

	big.attr = attr;
	big.attr.size = 400;
	big.bytes[390] = 1;
	call.attr = &big.attr;
	fd = csink_perf_open(&big.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	is_num(fd, -E2BIG, "a tail that no kernel knows gives E2BIG");
	ok(big.attr.size != 400, "an unknown tail gives the kernel's own size");
	blames_given("a tail that no kernel knows is explained after the call", E2BIG, "size", CSINK_CAUSE_NEW_FIELD);
	big.attr.size = 400;
	blames_given("a tail that this kernel does not know", E2BIG, "size", CSINK_CAUSE_NEW_FIELD);
	plain();
}

/* No PMU here keeps others out, so that the kernel's own EBUSY cannot be had: it is given, for a call that works. */
static void test_busy(void)
{
	blames_given("a call that was refused, and works now", EBUSY, "", CSINK_CAUSE_RESOURCE);
	is_str(found[0].remedy, "call again", "a resource that is free again has the remedy to call again");
}

static void test_values(void)
{
	attr.sample_type = 1ULL << 40;
	blames("an unknown kind of sample", EINVAL, "sample_type: bit 40", CSINK_CAUSE_NEW_FIELD);
	attr.sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT;
	blames("two kinds of weight", EINVAL, "sample_type: WEIGHT_STRUCT", CSINK_CAUSE_BAD_VALUE);
	attr.read_format = 1ULL << 30;
	blames("an unknown read format", EINVAL, "read_format: bit 30", CSINK_CAUSE_NEW_FIELD);
	attr.sample_type = PERF_SAMPLE_REGS_USER;
	blames("no registers to sample", EINVAL, "sample_regs_user", CSINK_CAUSE_BAD_VALUE);
	attr.sample_type = PERF_SAMPLE_REGS_INTR;
	blames("no registers of the interrupt", EINVAL, "sample_regs_intr", CSINK_CAUSE_BAD_VALUE);
#ifdef __x86_64__
	attr.sample_type = PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = 1ULL << 63;
	blames("vector registers", EOPNOTSUPP, "sample_regs_intr", CSINK_CAUSE_UNSUPPORTED);
#endif
	attr.sample_type = PERF_SAMPLE_STACK_USER;
	attr.sample_stack_user = 1001;
	blames("an odd piece of stack", EINVAL, "sample_stack_user", CSINK_CAUSE_BAD_VALUE);
	attr.sample_type = PERF_SAMPLE_STACK_USER;
	attr.sample_stack_user = 65536;
	blames("too large a piece of stack", EINVAL, "sample_stack_user", CSINK_CAUSE_BAD_VALUE);
	attr.__reserved_2 = 1;
	blames("a reserved field", EINVAL, "reserved", CSINK_CAUSE_BAD_VALUE);
	attr.sample_period = 1ULL << 63;
	blames("a period of 64 bits", EINVAL, "sample_period", CSINK_CAUSE_BAD_VALUE);
	attr.freq = 1;
	attr.sample_freq = 1ULL << 40;
	blames("a frequency over the limit", EINVAL, "sample_freq", CSINK_CAUSE_LIMIT);
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	attr.sample_max_stack = 60000;
	blames("a call chain over the limit", EOVERFLOW, "sample_max_stack", CSINK_CAUSE_LIMIT);
	attr.use_clockid = 1;
	attr.clockid = CLOCK_PROCESS_CPUTIME_ID;
	blames("a clock that cannot stamp", EINVAL, "clockid", CSINK_CAUSE_BAD_VALUE);
}

/* Before, the kernel's version is the cause. */
static void opens_since_5_13(const char *what, const char *field)
{
	int fd = csink_perf_open(&attr, call.pid, call.cpu, call.group_fd, call.flags);

	if (fd < 0) {
		blames(what, EINVAL, field, CSINK_CAUSE_NEW_FIELD);
		return;
	}
	ok(fd >= 0, "%s opens", what);
	close(fd);
	plain();
}

static void test_flags(void)
{
	attr.inherit = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP;
	blames("inherit with group reads in samples", EINVAL, "inherit", CSINK_CAUSE_BAD_VALUE);
	attr.inherit_thread = 1;
	blames("inherit_thread alone", EINVAL, "inherit_thread", CSINK_CAUSE_BAD_VALUE);
	attr.inherit = attr.inherit_thread = 1;
	opens_since_5_13("inherit_thread with inherit", "inherit_thread");
	attr.remove_on_exec = 1;
	opens_since_5_13("remove_on_exec", "remove_on_exec");
	attr.enable_on_exec = attr.remove_on_exec = 1;
	blames("enable_on_exec and remove_on_exec", EINVAL, "remove_on_exec", CSINK_CAUSE_BAD_VALUE);
	attr.sigtrap = 1;
	blames("sigtrap without remove_on_exec", EINVAL, "sigtrap", CSINK_CAUSE_BAD_VALUE);
	attr.sigtrap = attr.remove_on_exec = 1;
	opens_since_5_13("sigtrap with remove_on_exec", "remove_on_exec");
	*(uint64_t *)((char *)&attr + offsetof(struct perf_event_attr, read_format) + 8) |= 1ULL << 63;
	blames("a reserved flag", EINVAL, "flags of the attr: bit 63", CSINK_CAUSE_NEW_FIELD);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	blames("a branch stack on a software event", EOPNOTSUPP, "branch_sample_type", CSINK_CAUSE_UNSUPPORTED);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER;
	blames("a branch stack of no branches", EINVAL, "branch_sample_type", CSINK_CAUSE_BAD_VALUE);
	attr.aux_output = 1;
	blames("AUX output of a software event", EOPNOTSUPP, "aux_output", CSINK_CAUSE_UNSUPPORTED);
	attr.sample_type = PERF_SAMPLE_AUX;
	attr.aux_sample_size = 4096;
	blames("AUX samples with no AUX leader", EINVAL, "aux_sample_size", CSINK_CAUSE_GROUP);
}

static void test_events(void)
{
	attr.config = 999;
	blames("an unknown software event", ENOENT, "config", CSINK_CAUSE_NO_EVENT);
	attr.type = 4000000;
	blames("an unknown PMU", ENOENT, "type", CSINK_CAUSE_NO_EVENT);
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = 0;
	if (access("/sys/bus/event_source/devices/cpu", F_OK))
		blames("cycles without a PMU", ENOENT, "type", CSINK_CAUSE_NO_PMU);
	else
		skip("cycles without a PMU", "this machine has one");
	plain();
	attr.type = PERF_TYPE_HARDWARE;
	attr.config = 999;
	blames("a generic event that is none", access("/sys/bus/event_source/devices/cpu", F_OK) ? ENOENT : EINVAL,
	       access("/sys/bus/event_source/devices/cpu", F_OK) ? "type" : "config",
	       access("/sys/bus/event_source/devices/cpu", F_OK) ? CSINK_CAUSE_NO_PMU : CSINK_CAUSE_NO_EVENT);
}

static void test_breakpoints(void)
{
	static uint64_t watched[8];
	int fds[32], nr = 0;

	breakpoint_at((uintptr_t)watched, 3, HW_BREAKPOINT_RW);
	blames("a breakpoint of three bytes", EINVAL, "bp_len", CSINK_CAUSE_BAD_VALUE);
	breakpoint_at((uintptr_t)watched, 8, 0);
	blames("a breakpoint on nothing", EINVAL, "bp_type", CSINK_CAUSE_BAD_VALUE);
	breakpoint_at((uintptr_t)watched + 1, 4, HW_BREAKPOINT_RW);
#ifdef __x86_64__
	blames("an unaligned breakpoint", EINVAL, "bp_addr", CSINK_CAUSE_BAD_VALUE);
	breakpoint_at(UINT64_MAX - 4095, 8, HW_BREAKPOINT_RW);
	attr.exclude_kernel = 1;
	blames("a breakpoint in the kernel that leaves the kernel out", EINVAL, "exclude_kernel",
	       CSINK_CAUSE_BAD_VALUE);
#endif
	for (; nr < 32; nr++) {
		breakpoint_at((uintptr_t)&watched[nr % 8], 8, HW_BREAKPOINT_RW);
		fds[nr] = csink_perf_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (fds[nr] < 0)
			break;
	}
	if (nr && fds[nr] == -ENOSPC)
		blames("one breakpoint too many", ENOSPC, "", CSINK_CAUSE_RESOURCE);
	else
		skip("one breakpoint too many", "this machine has no breakpoints, or more than 32");
	while (nr)
		close(fds[--nr]);
	plain();
}

/* A PMU of the CPU's own that every x86 has, in virtual machines, too: it has no interrupt, and leaves nothing out. */
static void test_msr(void)
{
	int fd = open("/sys/bus/event_source/devices/msr/type", O_RDONLY | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		skip("a PMU without interrupts", "there is no msr PMU");
		return;
	}
	close(fd);
	if (!may_kernel) {
		attr.type = (uint32_t)atoi(text);
		attr.config = 0;
		attr.sample_period = 0;
		blames("a PMU that cannot leave the kernel out, to a user who must", EINVAL, "exclude_kernel",
		       CSINK_CAUSE_UNSUPPORTED);
		return;
	}
	attr.type = (uint32_t)atoi(text);
	attr.config = 0;
	blames("sampling on a PMU without interrupts", EINVAL, "sample_period", CSINK_CAUSE_UNSUPPORTED);
	attr.type = (uint32_t)atoi(text);
	attr.config = 0;
	attr.sample_period = 0;
	attr.exclude_kernel = 1;
	blames("a PMU that cannot leave the kernel out", EINVAL, "exclude_kernel", CSINK_CAUSE_UNSUPPORTED);
	attr.type = (uint32_t)atoi(text);
	attr.config = 999;
	attr.sample_period = 0;
	blames("a config that its PMU does not know", EINVAL, "config", CSINK_CAUSE_NO_EVENT);
}

/* ---- probes in functions, tracepoints ---------------------------------------------------------------------------- */

static void test_uprobe(void)
{
	static char path[8192];
	int64_t type;
	char text[16] = "";
	int fd = open("/sys/bus/event_source/devices/uprobe/type", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		skip("a uprobe's path", "this kernel has no uprobe PMU");
		return;
	}
	close(fd);
	type = atoi(text);
	memset(path, 'x', sizeof(path) - 1);
	attr.type = (uint32_t)type;
	attr.config = 0;
	attr.config1 = (uintptr_t)path;
	if (!may_kernel) {
		blames("a uprobe without privilege", EACCES, "config", CSINK_CAUSE_PARANOID);
		return;
	}
	blames("a uprobe's path too long", E2BIG, "config1", CSINK_CAUSE_CALLER);
	attr.type = (uint32_t)type;
	attr.config = 0;
	attr.config1 = 8;
	blames("a uprobe's path that cannot be read", EFAULT, "config1", CSINK_CAUSE_CALLER);
}

static void test_pointer(void)
{
	call.attr = NULL;
	blames_given("a NULL attr", EFAULT, "attr", CSINK_CAUSE_CALLER);
	call.attr = (void *)8;
	blames_given("an attr that cannot be read", EFAULT, "attr", CSINK_CAUSE_CALLER);
	plain();
	blames_given("a call that works", EINVAL, "", CSINK_CAUSE_NONE);
	blames_given("a signal while the target was inside exec()", EINTR, "", CSINK_CAUSE_RETRY);
}

static void test_stacked(void)
{
	attr.sample_type = 1ULL << 40;
	attr.sample_max_stack = 60000;
	attr.read_format = 1ULL << 30;
	blames_two("two values of one errno", EINVAL, "sample_type: bit 40", CSINK_CAUSE_NEW_FIELD,
		   "read_format: bit 30");
	attr.sigtrap = 1;
	attr.freq = 1;
	attr.sample_freq = 1ULL << 40;
	blames_two("a flag and a frequency", EINVAL, "sigtrap", CSINK_CAUSE_BAD_VALUE, "sample_freq");
	attr.type = 4000000;
	call.pid = 0x3ffffffe;
	blames_two("no such process, and no such PMU", ESRCH, "pid", CSINK_CAUSE_TARGET, "type");
	call.cpu = 1 << 20;
	attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	attr.sample_max_stack = 60000;
	blames_two("a bad CPU and a deep call chain", EINVAL, "cpu", CSINK_CAUSE_TARGET, "sample_max_stack");
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

static void test_rings(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	ring_blames("a ring of 1 + 3 pages", 4 * page, MAP_SHARED, EINVAL, "length", CSINK_CAUSE_BAD_VALUE);
	ring_blames("a private ring", 2 * page, MAP_PRIVATE, EINVAL, "flags", CSINK_CAUSE_BAD_VALUE);
	attr.inherit = 1;
	ring_blames("the ring of an inherited event", 2 * page, MAP_SHARED, EINVAL, "inherit", CSINK_CAUSE_BAD_VALUE);
}

static void test_all(void)
{
	test_size();
	test_tail();
	test_busy();
	test_values();
	test_flags();
	test_events();
	test_breakpoints();
	test_msr();
	test_uprobe();
	test_pointer();
	test_stacked();
	test_rings();
}

int main(void)
{
	return explain_as_both(test_all);
}
