/* Explaining a failed perf_event_open: the attributes and what their refusal means, as tables. See explain_rows.h. */
#include "preload/api/explain/explain_rows.h"

#include <errno.h>

#define ATTR(field) offsetof(struct perf_event_attr, field)
#define FLAGS CSINK_ATTR_FLAGS
#define BIT(nr) (1ULL << (nr))

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "one-bit fields are numbered from the least significant bit");

/* Bits of the flags word; the header gives them no numbers. */
enum {
	FLAG_inherit = 1,
	FLAG_pinned = 2,
	FLAG_exclusive = 3,
	FLAG_exclude_user = 4,
	FLAG_exclude_kernel = 5,
	FLAG_exclude_hv = 6,
	FLAG_exclude_idle = 7,
	FLAG_freq = 10,
	FLAG_enable_on_exec = 12,
	FLAG_precise_ip = 15,
	FLAG_exclude_host = 19,
	FLAG_exclude_guest = 20,
	FLAG_use_clockid = 25,
	FLAG_namespaces = 28,
	FLAG_aux_output = 31,
	FLAG_inherit_thread = 35,
	FLAG_remove_on_exec = 36,
	FLAG_sigtrap = 37,
};

const char *const csink_flag_names[64] = {
	"disabled",
	"inherit",
	"pinned",
	"exclusive",
	"exclude_user",
	"exclude_kernel",
	"exclude_hv",
	"exclude_idle",
	"mmap",
	"comm",
	"freq",
	"inherit_stat",
	"enable_on_exec",
	"task",
	"watermark",
	"precise_ip",
	"precise_ip",
	"mmap_data",
	"sample_id_all",
	"exclude_host",
	"exclude_guest",
	"exclude_callchain_kernel",
	"exclude_callchain_user",
	"mmap2",
	"comm_exec",
	"use_clockid",
	"context_switch",
	"write_backward",
	"namespaces",
	"ksymbol",
	"bpf_event",
	"aux_output",
	"cgroup",
	"text_poke",
	"build_id",
	"inherit_thread",
	"remove_on_exec",
	"sigtrap",
	"defer_callchain",
	"defer_output",
};

static const char *const sample_names[64] = {
	"IP",
	"TID",
	"TIME",
	"ADDR",
	"READ",
	"CALLCHAIN",
	"ID",
	"CPU",
	"PERIOD",
	"STREAM_ID",
	"RAW",
	"BRANCH_STACK",
	"REGS_USER",
	"STACK_USER",
	"WEIGHT",
	"DATA_SRC",
	"IDENTIFIER",
	"TRANSACTION",
	"REGS_INTR",
	"PHYS_ADDR",
	"AUX",
	"CGROUP",
	"DATA_PAGE_SIZE",
	"CODE_PAGE_SIZE",
	"WEIGHT_STRUCT",
};

static const char *const read_names[64] = {"TOTAL_TIME_ENABLED", "TOTAL_TIME_RUNNING", "ID", "GROUP", "LOST"};

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

static void detail_kernel(const struct csink_probe *probe, struct csink_explanation *out)
{
	csink_explain_permission(&probe->system, 1, "observing the kernel", "set exclude_kernel (:u), or ", out);
}

static void detail_branch_kernel(const struct csink_probe *probe, struct csink_explanation *out)
{
	csink_explain_permission(&probe->system, 1, "recording branches in the kernel",
				 "set PERF_SAMPLE_BRANCH_USER alone, or ", out);
}

static void detail_namespaces(const struct csink_probe *probe, struct csink_explanation *out)
{
	csink_explain_permission(&probe->system, -2, "recording namespaces", "leave namespaces out, or ", out);
}

static void detail_phys_addr(const struct csink_probe *probe, struct csink_explanation *out)
{
	csink_explain_permission(&probe->system, 1, "sampling physical addresses", "leave PHYS_ADDR out, or ", out);
}

static void detail_freq(const struct csink_probe *probe, struct csink_explanation *out)
{
	if (probe->system.max_sample_rate >= 0 && probe->want.sample_freq <= (uint64_t)probe->system.max_sample_rate) {
		out->cause = CSINK_CAUSE_BAD_VALUE;
		csink_explain_text(out, "a frequency of %llu is not taken",
				   (unsigned long long)probe->want.sample_freq);
		return;
	}
	csink_explain_text(out, "%llu samples a second are over kernel.perf_event_max_sample_rate, which is %lld",
			   (unsigned long long)probe->want.sample_freq, (long long)probe->system.max_sample_rate);
	csink_explain_remedy(out, "ask for at most %lld, or sysctl kernel.perf_event_max_sample_rate=%llu",
			     (long long)probe->system.max_sample_rate, (unsigned long long)probe->want.sample_freq);
}

static void detail_period(const struct csink_probe *probe, struct csink_explanation *out)
{
	if (probe->want.sample_period >> 63) {
		csink_explain_text(out, "a period has 63 bits; 0x%llx is longer",
				   (unsigned long long)probe->want.sample_period);
		csink_explain_remedy(out, "ask for a period below 2^63");
		return;
	}
	csink_explain_text(out, "the PMU does not take a period of %llu",
			   (unsigned long long)probe->want.sample_period);
	csink_explain_remedy(out, "ask for a longer one");
}

static void detail_stack_depth(const struct csink_probe *probe, struct csink_explanation *out)
{
	csink_explain_text(out, "a call chain of %u frames is over kernel.perf_event_max_stack, which is %lld",
			   probe->want.sample_max_stack, (long long)probe->system.max_stack);
	csink_explain_remedy(out, "set sample_max_stack to at most %lld, or sysctl kernel.perf_event_max_stack=%u",
			     (long long)probe->system.max_stack, probe->want.sample_max_stack);
}

static void detail_inherit(const struct csink_probe *probe, struct csink_explanation *out)
{
	bool samples = probe->want.sample_type & PERF_SAMPLE_READ, groups = probe->want.read_format & PERF_FORMAT_GROUP;

	if (!samples && !groups) {
		csink_explain_text(out, "an inherited event is not taken with the other values");
		return;
	}
	csink_explain_text(out, "an inherited event cannot be read %s",
			   samples ? "in its samples (PERF_SAMPLE_READ)" : "as a group (PERF_FORMAT_GROUP)");
	csink_explain_remedy(out, "leave inherit out and open an event in each thread%s",
			     samples ? ", or add PERF_SAMPLE_TID (Linux 6.12)" : "");
}

static void detail_stack_user(const struct csink_probe *probe, struct csink_explanation *out)
{
	csink_explain_text(out, "sample_stack_user is %u; it has to be a multiple of 8 below 65528",
			   probe->want.sample_stack_user);
	csink_explain_remedy(out, "8192 is usual");
}

static const struct csink_verdict of_sample_type[] = {
	{EACCES, CSINK_CAUSE_PARANOID, NULL, NULL, detail_phys_addr},
	{EPERM, CSINK_CAUSE_LSM, "the kernel is locked down, which forbids this kind of sample", "leave it out", NULL},
	{EINVAL, CSINK_CAUSE_NEW_FIELD, "this kernel does not know that kind of sample (or not with the others)",
	 "leave it out", NULL},
	{0, CSINK_CAUSE_UNSUPPORTED, "this kind of sample is not supported here", "leave it out", NULL},
	{0},
};
static const struct csink_verdict of_weights[] = {
	{EINVAL, CSINK_CAUSE_BAD_VALUE, "WEIGHT and WEIGHT_STRUCT exclude each other", "keep WEIGHT_STRUCT alone",
	 NULL},
	{0},
};
static const struct csink_verdict of_read_format[] = {
	{0, CSINK_CAUSE_NEW_FIELD, "this kernel does not know that read format", "leave it out", NULL},
	{0},
};
static const struct csink_verdict of_regs[] = {
	{ENOSYS, CSINK_CAUSE_UNSUPPORTED, "this kernel cannot sample registers on this CPU", "leave them out", NULL},
	{EPERM, CSINK_CAUSE_LSM, "the kernel is locked down, which forbids samples of registers", "leave them out",
	 NULL},
	{EACCES, CSINK_CAUSE_LSM, "a security module forbids samples of registers", "leave them out", NULL},
	{EOPNOTSUPP, CSINK_CAUSE_UNSUPPORTED, "the event's PMU cannot sample the vector registers asked for",
	 "ask for the general registers only", NULL},
	{0, CSINK_CAUSE_BAD_VALUE, "the set of registers is empty, or has bits that are no registers of this CPU",
	 "take the bits from asm/perf_regs.h", NULL},
	{0},
};
static const struct csink_verdict of_stack_user[] = {
	{ENOSYS, CSINK_CAUSE_UNSUPPORTED, "this kernel cannot copy user stacks on this CPU", "leave STACK_USER out",
	 NULL},
	{0, CSINK_CAUSE_BAD_VALUE, NULL, NULL, detail_stack_user},
	{0},
};
static const struct csink_verdict of_inherit[] = {{0, CSINK_CAUSE_BAD_VALUE, NULL, NULL, detail_inherit}, {0}};
static const struct csink_verdict of_inherit_thread[] = {
	{0, CSINK_CAUSE_BAD_VALUE, "inherit_thread needs inherit, and Linux 5.13", "set inherit too", NULL}, {0}};
static const struct csink_verdict of_remove_on_exec[] = {
	{0, CSINK_CAUSE_BAD_VALUE, "remove_on_exec contradicts enable_on_exec, and needs Linux 5.13",
	 "keep one of the two", NULL},
	{0},
};
static const struct csink_verdict of_sigtrap[] = {
	{0, CSINK_CAUSE_BAD_VALUE, "sigtrap needs remove_on_exec, a task (not pid -1), and Linux 5.13",
	 "set remove_on_exec too", NULL},
	{0},
};
static const struct csink_verdict of_flags[] = {
	{0, CSINK_CAUSE_NEW_FIELD, "this kernel does not know that field", "leave it out, or use a newer kernel", NULL},
	{0},
};
static const struct csink_verdict of_kernel[] = {{0, CSINK_CAUSE_PARANOID, NULL, NULL, detail_kernel}, {0}};
static const struct csink_verdict of_namespaces[] = {{0, CSINK_CAUSE_PARANOID, NULL, NULL, detail_namespaces}, {0}};
static const struct csink_verdict of_freq[] = {
	{EOPNOTSUPP, CSINK_CAUSE_UNSUPPORTED, "this PMU has no interrupt, so it counts but cannot sample",
	 "count only, or sample on another event", NULL},
	{0, CSINK_CAUSE_LIMIT, NULL, NULL, detail_freq},
	{0},
};
static const struct csink_verdict of_period[] = {{0, CSINK_CAUSE_BAD_VALUE, NULL, NULL, detail_period}, {0}};
static const struct csink_verdict of_reserved[] = {
	{0, CSINK_CAUSE_BAD_VALUE, "a reserved part of the attr is not zero", "clear the attr before filling it", NULL},
	{0},
};

static const struct csink_verdict of_excludes[] = {
	{0, CSINK_CAUSE_UNSUPPORTED, "this event's PMU cannot leave out a part of the machine",
	 "count user and kernel together", NULL},
	{0},
};
static const struct csink_verdict of_precise[] = {
	{EOPNOTSUPP, CSINK_CAUSE_UNSUPPORTED, "this event cannot be sampled with less skid here",
	 "drop :p (precise_ip)", NULL},
	{0, CSINK_CAUSE_UNSUPPORTED, "this event does not take that precise_ip", "lower it (fewer p)", NULL},
	{0},
};
static const struct csink_verdict of_branch[] = {
	{EACCES, CSINK_CAUSE_PARANOID, NULL, NULL, detail_branch_kernel},
	{EINVAL, CSINK_CAUSE_BAD_VALUE,
	 "branch_sample_type names no kind of branch, or bits that this kernel or CPU does not know",
	 "set PERF_SAMPLE_BRANCH_ANY", NULL},
	{EBUSY, CSINK_CAUSE_RESOURCE, "the branch registers are held by another event (Intel PT, BTS)",
	 "stop the other one", NULL},
	{0, CSINK_CAUSE_UNSUPPORTED, "this event's PMU records no branches (software events and most virtual machines)",
	 "drop the branch stack (-b)", NULL},
	{0},
};
static const struct csink_verdict of_callchain[] = {
	{EOVERFLOW, CSINK_CAUSE_LIMIT, NULL, NULL, detail_stack_depth},
	{ENOMEM, CSINK_CAUSE_RESOURCE, "no memory for the kernel's call chain buffers", "", NULL},
	{0, CSINK_CAUSE_UNSUPPORTED, "this event cannot record call chains", "leave CALLCHAIN out", NULL},
	{0},
};
static const struct csink_verdict of_clock[] = {
	{0, CSINK_CAUSE_BAD_VALUE,
	 "events can be stamped by CLOCK_MONOTONIC, _MONOTONIC_RAW, _REALTIME, _BOOTTIME or _TAI only (hardware events "
	 "by the first two)",
	 "set one of those in clockid", NULL},
	{0},
};
static const struct csink_verdict of_aux_output[] = {
	{0, CSINK_CAUSE_UNSUPPORTED, "this event's PMU cannot write to an AUX ring (only Intel PT with PEBS can)",
	 "leave aux_output out", NULL},
	{0},
};

/* Bits whose refusal has reasons of its own. */
static const struct {
	uint16_t offset;
	int bit;
	const struct csink_verdict *verdicts;
} special_bits[] = {
	{FLAGS, FLAG_inherit, of_inherit},
	{FLAGS, FLAG_inherit_thread, of_inherit_thread},
	{FLAGS, FLAG_remove_on_exec, of_remove_on_exec},
	{FLAGS, FLAG_sigtrap, of_sigtrap},
	{ATTR(sample_type), __builtin_ctz(PERF_SAMPLE_WEIGHT_STRUCT), of_weights},
};

const struct csink_verdict *csink_row_verdicts(const struct csink_row *row, int bit)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(special_bits); i++)
		if (special_bits[i].offset == row->parts[0].offset && special_bits[i].bit == bit)
			return special_bits[i].verdicts;
	return row->verdicts;
}

/* ---- the rows ---------------------------------------------------------------------------------------------------- */

#define SAMPLES_APART                                                                                                  \
	(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |           \
	 PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_AUX)
#define EXCLUDES (BIT(FLAG_exclude_user) | BIT(FLAG_exclude_idle) | BIT(FLAG_exclude_host) | BIT(FLAG_exclude_guest))
#define FLAGS_APART                                                                                                    \
	(1 /* disabled */ | BIT(FLAG_pinned) | BIT(FLAG_exclusive) | EXCLUDES | BIT(FLAG_exclude_kernel) |             \
	 BIT(FLAG_freq) | 3ULL << FLAG_precise_ip | BIT(FLAG_use_clockid) | BIT(FLAG_namespaces) |                     \
	 BIT(FLAG_aux_output))

/* Checked as the attr is copied, or at least before the event is looked at; in the kernel's order. */
const struct csink_row csink_rows_before[] = {
	/* The second has become aux_action in Linux 6.13, which our headers need not know. */
	{"reserved", {{ATTR(__reserved_2), 2, 0}, {ATTR(aux_sample_size) + 4, 4, 0}}, NULL, false, of_reserved},
	{"sample_type", {{ATTR(sample_type), 8, ~(uint64_t)SAMPLES_APART}}, sample_names, false, of_sample_type},
	{"read_format", {{ATTR(read_format), 8, 0}}, read_names, false, of_read_format},
	{"sample_regs_user",
	 {{ATTR(sample_type), 8, PERF_SAMPLE_REGS_USER}, {ATTR(sample_regs_user), 8, 0}},
	 NULL,
	 false,
	 of_regs},
	{"sample_stack_user",
	 {{ATTR(sample_type), 8, PERF_SAMPLE_STACK_USER}, {ATTR(sample_stack_user), 4, 0}},
	 NULL,
	 false,
	 of_stack_user},
	{"sample_regs_intr",
	 {{ATTR(sample_type), 8, PERF_SAMPLE_REGS_INTR}, {ATTR(sample_regs_intr), 8, 0}},
	 NULL,
	 false,
	 of_regs},
	{"flags of the attr", {{FLAGS, 8, ~(uint64_t)FLAGS_APART}}, csink_flag_names, false, of_flags},
	{"sig_data", {{ATTR(sig_data), 8, 0}}, NULL, false, of_flags},
	{"exclude_kernel", {{FLAGS, 8, BIT(FLAG_exclude_kernel)}}, NULL, false, of_kernel},
	{"namespaces", {{FLAGS, 8, BIT(FLAG_namespaces)}}, NULL, false, of_namespaces},
};

/* One of these two, by attr.freq. */
const struct csink_row csink_row_freq = {
	"sample_freq", {{FLAGS, 8, BIT(FLAG_freq)}, {ATTR(sample_freq), 8, 0}}, NULL, false, of_freq};
const struct csink_row csink_row_period = {"sample_period", {{ATTR(sample_period), 8, 0}}, NULL, false, of_period};

const struct csink_row csink_rows_after[] = {
	{"exclude", {{FLAGS, 8, EXCLUDES}}, csink_flag_names, true, of_excludes},
	{"precise_ip", {{FLAGS, 8, 3ULL << FLAG_precise_ip}}, NULL, true, of_precise},
	{"branch_sample_type",
	 {{ATTR(sample_type), 8, PERF_SAMPLE_BRANCH_STACK}, {ATTR(branch_sample_type), 8, 0}},
	 NULL,
	 true,
	 of_branch},
	{"sample_max_stack",
	 {{ATTR(sample_type), 8, PERF_SAMPLE_CALLCHAIN}, {ATTR(sample_max_stack), 2, 0}},
	 NULL,
	 false,
	 of_callchain},
	{"clockid", {{FLAGS, 8, BIT(FLAG_use_clockid)}, {ATTR(clockid), 4, 0}}, NULL, true, of_clock},
	{"aux_output", {{FLAGS, 8, BIT(FLAG_aux_output)}}, NULL, true, of_aux_output},
};

const uint32_t csink_nr_rows_before = CSINK_ARRAY_SIZE(csink_rows_before);
const uint32_t csink_nr_rows_after = CSINK_ARRAY_SIZE(csink_rows_after);
