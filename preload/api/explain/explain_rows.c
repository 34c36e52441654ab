/*
 * Explaining a failed perf_event_open: the caller's attributes, taken over row by row. A row of the table names the
 * bytes and bits that are taken over together; those that are sets of flags are taken over bit by bit when the whole
 * set fails. What a refusal means is in the verdicts. And the attr's size.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/api/explain/explain_probe.h"

struct part {
	uint16_t offset, bytes;
	uint64_t mask; /* of bytes <= 8; 0: all */
};

struct row {
	const char *field;
	struct part parts[2];
	const char *const *bits; /* of parts[0]: taken over bit by bit when the whole fails */
};

#define ATTR(field) offsetof(struct perf_event_attr, field)
/* Where the one-bit fields of an attr are: 64 bits, which have no name together. */
#define FLAGS (offsetof(struct perf_event_attr, read_format) + 8)
#define BIT(nr) (1ULL << (nr))

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "one-bit fields are numbered from the least significant bit");

/* The one-bit fields, and the two bits of precise_ip, from the least significant bit: the header gives no numbers. */
#define ATTR_FLAGS(X)                                                                                                  \
	X(disabled)                                                                                                    \
	X(inherit)                                                                                                     \
	X(pinned)                                                                                                      \
	X(exclusive)                                                                                                   \
	X(exclude_user)                                                                                                \
	X(exclude_kernel)                                                                                              \
	X(exclude_hv)                                                                                                  \
	X(exclude_idle)                                                                                                \
	X(mmap)                                                                                                        \
	X(comm)                                                                                                        \
	X(freq)                                                                                                        \
	X(inherit_stat)                                                                                                \
	X(enable_on_exec)                                                                                              \
	X(task)                                                                                                        \
	X(watermark)                                                                                                   \
	X(precise_ip)                                                                                                  \
	X(precise_ip_high)                                                                                             \
	X(mmap_data)                                                                                                   \
	X(sample_id_all)                                                                                               \
	X(exclude_host)                                                                                                \
	X(exclude_guest)                                                                                               \
	X(exclude_callchain_kernel)                                                                                    \
	X(exclude_callchain_user)                                                                                      \
	X(mmap2)                                                                                                       \
	X(comm_exec)                                                                                                   \
	X(use_clockid)                                                                                                 \
	X(context_switch)                                                                                              \
	X(write_backward)                                                                                              \
	X(namespaces)                                                                                                  \
	X(ksymbol)                                                                                                     \
	X(bpf_event)                                                                                                   \
	X(aux_output)                                                                                                  \
	X(cgroup)                                                                                                      \
	X(text_poke)                                                                                                   \
	X(build_id)                                                                                                    \
	X(inherit_thread)                                                                                              \
	X(remove_on_exec)                                                                                              \
	X(sigtrap)                                                                                                     \
	X(defer_callchain)                                                                                             \
	X(defer_output)
#define ATTR_FLAG_NUMBER(name) FLAG_##name,
#define ATTR_FLAG_NAME(name) #name,

enum { ATTR_FLAGS(ATTR_FLAG_NUMBER) };
static const char *const flag_names[64] = {ATTR_FLAGS(ATTR_FLAG_NAME)};

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

/* ---- what a refusal means ---------------------------------------------------------------------------------------- */

/* Linux 5.13 brought all three. Its version is the cause where no other field of the caller's is. */
static void detail_5_13(struct csink_explanation *out, const char *name, const char *remedy)
{
	csink_explain_as(out, CSINK_CAUSE_NEW_FIELD, NULL, remedy, "%s " CSINK_SINCE_5_13, name);
}

static void detail_inherit_thread(const struct csink_probe *probe, struct csink_explanation *out)
{
	if (probe->want.inherit)
		detail_5_13(out, "inherit_thread", "leave it out; inherit alone counts child processes, too");
	else
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "set inherit too",
				 "inherit_thread needs inherit, and Linux 5.13");
}

static void detail_remove_on_exec(const struct csink_probe *probe, struct csink_explanation *out)
{
	if (!probe->want.enable_on_exec)
		detail_5_13(out, "remove_on_exec", "leave it out");
	else
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "keep one of the two",
				 "remove_on_exec contradicts enable_on_exec, and needs Linux 5.13");
}

static void detail_sigtrap(const struct csink_probe *probe, struct csink_explanation *out)
{
	if (probe->want.remove_on_exec && probe->pid >= 0)
		detail_5_13(out, "sigtrap", "leave it out, and take the signal of the descriptor (F_SETSIG)");
	else
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "set remove_on_exec too",
				 "sigtrap needs remove_on_exec, a task (not pid -1), and Linux 5.13");
}

static void detail_freq(const struct csink_probe *probe, struct csink_explanation *out)
{
	unsigned long long want = probe->want.sample_freq;
	long long most = probe->system.max_sample_rate;

	if (most >= 0 && want <= (unsigned long long)most) {
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "", "a frequency of %llu is not taken", want);
		return;
	}
	csink_explain_as(out, CSINK_CAUSE_LIMIT, NULL, "",
			 "%llu samples a second are over kernel.perf_event_max_sample_rate, which is %lld", want, most);
	csink_explain_remedy(out, "ask for at most %lld, or sysctl kernel.perf_event_max_sample_rate=%llu", most, want);
}

static void detail_period(const struct csink_probe *probe, struct csink_explanation *out)
{
	unsigned long long want = probe->want.sample_period;

	if (want >> 63)
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "ask for a period below 2^63",
				 "a period has 63 bits; 0x%llx is longer", want);
	else
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "ask for a longer one",
				 "the PMU does not take a period of %llu", want);
}

static void detail_stack_depth(const struct csink_probe *probe, struct csink_explanation *out)
{
	long long most = probe->system.max_stack;

	csink_explain_as(out, CSINK_CAUSE_LIMIT, NULL, "",
			 "a call chain of %u frames is over kernel.perf_event_max_stack, which is %lld",
			 probe->want.sample_max_stack, most);
	csink_explain_remedy(out, "set sample_max_stack to at most %lld, or sysctl kernel.perf_event_max_stack=%u",
			     most, probe->want.sample_max_stack);
}

static void detail_inherit(const struct csink_probe *probe, struct csink_explanation *out)
{
	if (probe->want.sample_type & PERF_SAMPLE_READ)
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL,
				 "leave inherit out and open an event in each thread, or add PERF_SAMPLE_TID (Linux "
				 "6.12)",
				 "an inherited event cannot be read in its samples (PERF_SAMPLE_READ)");
	else if (probe->want.read_format & PERF_FORMAT_GROUP)
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "leave inherit out and open an event in each thread",
				 "an inherited event cannot be read as a group (PERF_FORMAT_GROUP)");
	else
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "",
				 "an inherited event is not taken with the other values");
}

static void detail_stack_user(const struct csink_probe *probe, struct csink_explanation *out)
{
	csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, NULL, "8192 is usual",
			 "sample_stack_user is %u; it has to be a multiple of 8 below 65528",
			 probe->want.sample_stack_user);
}

/* Each row has one for all other errnos. */
static const struct csink_verdict verdicts[] = {
	{"sample_type", EACCES, CSINK_CAUSE_PARANOID, "sampling physical addresses", "leave PHYS_ADDR out, or ", 1,
	 NULL},
	{"sample_type", EPERM, CSINK_CAUSE_LSM, "the kernel is locked down, which forbids this kind of sample",
	 "leave it out", 0, NULL},
	{"sample_type: WEIGHT_STRUCT", EINVAL, CSINK_CAUSE_BAD_VALUE, "WEIGHT and WEIGHT_STRUCT exclude each other",
	 "keep WEIGHT_STRUCT alone", 0, NULL},
	{"sample_type", EINVAL, CSINK_CAUSE_NEW_FIELD,
	 "this kernel does not know that kind of sample (or not with the others)", "leave it out", 0, NULL},
	{"sample_type", 0, CSINK_CAUSE_UNSUPPORTED, "this kind of sample is not supported here", "leave it out", 0,
	 NULL},
	{"read_format", 0, CSINK_CAUSE_NEW_FIELD, "this kernel does not know that read format", "leave it out", 0,
	 NULL},
	{"sample_regs_*", ENOSYS, CSINK_CAUSE_UNSUPPORTED, "this kernel cannot sample registers on this CPU",
	 "leave them out", 0, NULL},
	{"sample_regs_*", EPERM, CSINK_CAUSE_LSM, "the kernel is locked down, which forbids samples of registers",
	 "leave them out", 0, NULL},
	{"sample_regs_*", EACCES, CSINK_CAUSE_LSM, "a security module forbids samples of registers", "leave them out",
	 0, NULL},
	{"sample_regs_*", EOPNOTSUPP, CSINK_CAUSE_UNSUPPORTED,
	 "the event's PMU cannot sample the vector registers asked for", "ask for the general registers only", 0, NULL},
	{"sample_regs_*", 0, CSINK_CAUSE_BAD_VALUE,
	 "the set of registers is empty, or has bits that are no registers of this CPU",
	 "take the bits from asm/perf_regs.h", 0, NULL},
	{"sample_stack_user", ENOSYS, CSINK_CAUSE_UNSUPPORTED, "this kernel cannot copy user stacks on this CPU",
	 "leave STACK_USER out", 0, NULL},
	{"sample_stack_user", 0, 0, NULL, NULL, 0, detail_stack_user},
	{"inherit", 0, 0, NULL, NULL, 0, detail_inherit},
	{"inherit_thread", 0, 0, NULL, NULL, 0, detail_inherit_thread},
	{"remove_on_exec", 0, 0, NULL, NULL, 0, detail_remove_on_exec},
	{"sigtrap", 0, 0, NULL, NULL, 0, detail_sigtrap},
	{"flags of the attr", 0, CSINK_CAUSE_NEW_FIELD, "this kernel does not know that field",
	 "leave it out, or use a newer kernel", 0, NULL},
	{"sig_data", 0, CSINK_CAUSE_NEW_FIELD, "this kernel does not know that field",
	 "leave it out, or use a newer kernel", 0, NULL},
	{"exclude_kernel", 0, CSINK_CAUSE_PARANOID, "observing the kernel", "set exclude_kernel (:u), or ", 1, NULL},
	{"namespaces", 0, CSINK_CAUSE_PARANOID, "recording namespaces", "leave namespaces out, or ", -2, NULL},
	{"sample_freq", EOPNOTSUPP, CSINK_CAUSE_UNSUPPORTED,
	 "this PMU has no interrupt, so it counts but cannot sample", "count only, or sample on another event", 0,
	 NULL},
	{"sample_freq", 0, 0, NULL, NULL, 0, detail_freq},
	{"sample_period", 0, 0, NULL, NULL, 0, detail_period},
	{"reserved", 0, CSINK_CAUSE_BAD_VALUE, "a reserved part of the attr is not zero",
	 "clear the attr before filling it", 0, NULL},
	{"exclude", 0, CSINK_CAUSE_UNSUPPORTED, "this event's PMU cannot leave out a part of the machine",
	 "count user and kernel together", 0, NULL},
	{"precise_ip", EOPNOTSUPP, CSINK_CAUSE_UNSUPPORTED, "this event cannot be sampled with less skid here",
	 "drop :p (precise_ip)", 0, NULL},
	{"precise_ip", 0, CSINK_CAUSE_UNSUPPORTED, "this event does not take that precise_ip", "lower it (fewer p)", 0,
	 NULL},
	{"branch_sample_type", EACCES, CSINK_CAUSE_PARANOID, "recording branches in the kernel",
	 "set PERF_SAMPLE_BRANCH_USER alone, or ", 1, NULL},
	{"branch_sample_type", EINVAL, CSINK_CAUSE_BAD_VALUE,
	 "branch_sample_type names no kind of branch, or bits that this kernel or CPU does not know",
	 "set PERF_SAMPLE_BRANCH_ANY", 0, NULL},
	{"branch_sample_type", EBUSY, CSINK_CAUSE_RESOURCE,
	 "the branch registers are held by another event (Intel PT, BTS)", "stop the other one", 0, NULL},
	{"branch_sample_type", 0, CSINK_CAUSE_UNSUPPORTED,
	 "this event's PMU records no branches (software events and most virtual machines)",
	 "drop the branch stack (-b)", 0, NULL},
	{"sample_max_stack", EOVERFLOW, 0, NULL, NULL, 0, detail_stack_depth},
	{"sample_max_stack", ENOMEM, CSINK_CAUSE_RESOURCE, "no memory for the kernel's call chain buffers", "", 0,
	 NULL},
	{"sample_max_stack", 0, CSINK_CAUSE_UNSUPPORTED, "this event cannot record call chains", "leave CALLCHAIN out",
	 0, NULL},
	{"clockid", 0, CSINK_CAUSE_BAD_VALUE,
	 "events can be stamped by CLOCK_MONOTONIC, _MONOTONIC_RAW, _REALTIME, _BOOTTIME or _TAI only (hardware events "
	 "by the first two)",
	 "set one of those in clockid", 0, NULL},
	{"aux_output", 0, CSINK_CAUSE_UNSUPPORTED,
	 "this event's PMU cannot write to an AUX ring (only Intel PT with PEBS can)", "leave aux_output out", 0, NULL},
};

/* @field  the row's own, or of a bit of it, which may have verdicts under its own name. */
static void judge(struct csink_probe *probe, int err, const struct row *row, const char *field)
{
	const struct csink_verdict *own = csink_verdict_find(verdicts, CSINK_ARRAY_SIZE(verdicts), field, err);

	csink_probe_judge(probe, err, field,
			  own ? own : csink_verdict_find(verdicts, CSINK_ARRAY_SIZE(verdicts), row->field, err));
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
static const struct row rows_before[] = {
	/* The second has become aux_action in Linux 6.13, which our headers need not know. */
	{"reserved", {{ATTR(__reserved_2), 2, 0}, {ATTR(aux_sample_size) + 4, 4, 0}}, NULL},
	{"sample_type", {{ATTR(sample_type), 8, ~(uint64_t)SAMPLES_APART}}, sample_names},
	{"read_format", {{ATTR(read_format), 8, 0}}, read_names},
	{"sample_regs_user", {{ATTR(sample_type), 8, PERF_SAMPLE_REGS_USER}, {ATTR(sample_regs_user), 8, 0}}, NULL},
	{"sample_stack_user", {{ATTR(sample_type), 8, PERF_SAMPLE_STACK_USER}, {ATTR(sample_stack_user), 4, 0}}, NULL},
	{"sample_regs_intr", {{ATTR(sample_type), 8, PERF_SAMPLE_REGS_INTR}, {ATTR(sample_regs_intr), 8, 0}}, NULL},
	{"flags of the attr", {{FLAGS, 8, ~(uint64_t)FLAGS_APART}}, flag_names},
	{"sig_data", {{ATTR(sig_data), 8, 0}}, NULL},
	{"exclude_kernel", {{FLAGS, 8, BIT(FLAG_exclude_kernel)}}, NULL},
	{"namespaces", {{FLAGS, 8, BIT(FLAG_namespaces)}}, NULL},
};

/* Then one of these, by attr.freq. */
static const struct row row_freq = {"sample_freq", {{FLAGS, 8, BIT(FLAG_freq)}, {ATTR(sample_freq), 8, 0}}, NULL};
static const struct row row_period = {"sample_period", {{ATTR(sample_period), 8, 0}}, NULL};

/* The event's PMU has a say in these. */
static const struct row rows_after[] = {
	{"exclude", {{FLAGS, 8, EXCLUDES}}, flag_names},
	{"precise_ip", {{FLAGS, 8, 3ULL << FLAG_precise_ip}}, NULL},
	{"branch_sample_type",
	 {{ATTR(sample_type), 8, PERF_SAMPLE_BRANCH_STACK}, {ATTR(branch_sample_type), 8, 0}},
	 NULL},
	{"sample_max_stack", {{ATTR(sample_type), 8, PERF_SAMPLE_CALLCHAIN}, {ATTR(sample_max_stack), 2, 0}}, NULL},
	{"clockid", {{FLAGS, 8, BIT(FLAG_use_clockid)}, {ATTR(clockid), 4, 0}}, NULL},
	{"aux_output", {{FLAGS, 8, BIT(FLAG_aux_output)}}, NULL},
};

/* ---- taking them over ---- */

static uint64_t load_part(const struct perf_event_attr *attr, const struct part *part)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)attr + part->offset, part->bytes);
	return part->mask ? value & part->mask : value;
}

static void take_part(struct csink_probe *probe, const struct part *part, uint64_t value)
{
	uint64_t old = 0, mask = part->mask ? part->mask : UINT64_MAX;

	memcpy(&old, (const char *)&probe->attr + part->offset, part->bytes);
	old = (old & ~mask) | (value & mask);
	memcpy((char *)&probe->attr + part->offset, &old, part->bytes);
}

static bool differs(const struct csink_probe *probe, const struct row *row)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(row->parts) && row->parts[i].bytes; i++)
		if (load_part(&probe->want, &row->parts[i]) != load_part(&probe->attr, &row->parts[i]))
			return true;
	return false;
}

static void take_row(struct csink_probe *probe, const struct row *row)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(row->parts) && row->parts[i].bytes; i++)
		take_part(probe, &row->parts[i], load_part(&probe->want, &row->parts[i]));
}

/* Bit by bit, lowest first, which is also the order of what needs what (inherit before inherit_thread ...). */
static void take_bits(struct csink_probe *probe, const struct row *row)
{
	const struct part *part = &row->parts[0];
	uint64_t want = load_part(&probe->want, part), have = load_part(&probe->attr, part);
	struct perf_event_attr good;
	char field[sizeof(probe->faults[0].field)];
	int err;

	for (int bit = 0; bit < 64; bit++) {
		if (!((want ^ have) >> bit & 1))
			continue;
		good = probe->attr;
		take_part(probe, part, load_part(&probe->attr, part) ^ (1ULL << bit));
		err = csink_probe_try(probe);
		if (!err)
			continue;
		probe->attr = good;
		if (row->bits == flag_names && row->bits[bit])
			snprintf(field, sizeof(field), "%s", row->bits[bit]);
		else if (row->bits[bit])
			snprintf(field, sizeof(field), "%s: %s", row->field, row->bits[bit]);
		else
			snprintf(field, sizeof(field), "%s: bit %d", row->field, bit);
		judge(probe, err, row, field);
	}
}

static void try_row(struct csink_probe *probe, const struct row *row)
{
	struct perf_event_attr good = probe->attr;
	int err;

	if (!differs(probe, row))
		return;
	take_row(probe, row);
	err = csink_probe_try(probe);
	if (!err)
		return;
	probe->attr = good;
	/* Without the event there is no PMU to ask: the dummy takes no such thing. */
	if (probe->no_event && err == EOPNOTSUPP)
		return;
	if (row->bits)
		take_bits(probe, row);
	else
		judge(probe, err, row, row->field);
}

void csink_probe_rows_before(struct csink_probe *probe)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(rows_before); i++)
		try_row(probe, &rows_before[i]);
	try_row(probe, probe->want.freq ? &row_freq : &row_period);
}

void csink_probe_rows_after(struct csink_probe *probe)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(rows_after); i++)
		try_row(probe, &rows_after[i]);
}

/* ---- the size ---------------------------------------------------------------------------------------------------- */

void csink_probe_size(struct csink_probe *probe)
{
	/* As long as the caller says its attr is; the least event, and behind what we know the caller's own bytes. */
	union csink_attr_copy copy = *probe->passed;
	uint32_t size = copy.attr.size;
	struct csink_explanation *fault;
	int fd;

	copy.attr = probe->attr;
	copy.attr.size = size;
	fd = csink_perf_open(&copy.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	probe->nr_probes++;
	if (fd >= 0)
		close(fd);
	if (fd != -E2BIG)
		return;
	fault = csink_probe_fault(probe, E2BIG, CSINK_CAUSE_BAD_VALUE, "size");
	if (size && size < PERF_ATTR_SIZE_VER0)
		csink_explain_as(fault, CSINK_CAUSE_BAD_VALUE, NULL, "",
				 "attr.size is %u; the smallest there ever was is %d", size, PERF_ATTR_SIZE_VER0);
	else if (size > CSINK_ATTR_MAX_SIZE)
		csink_explain_as(fault, CSINK_CAUSE_BAD_VALUE, NULL, "", "attr.size is %u, more than a page", size);
	else
		csink_explain_as(fault, CSINK_CAUSE_NEW_FIELD, NULL, "",
				 "this kernel knows %u bytes of the attr, and of the caller's %u those behind are not "
				 "zero",
				 copy.attr.size, size);
	csink_explain_remedy(fault, "set attr.size to %u, which is this kernel's", copy.attr.size);
}
