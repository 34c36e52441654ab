/*
 * Events as they are opened: generic names, modifiers, and questions that a spec answers by itself. See event_spec.h
 * for the context.
 */
#include "preload/core/event/event_spec.h"

#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"

#define NEVER_SAMPLE (1ULL << 62)

/* Reading gives a csink_event_count. */
#define COUNT_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/* ---- pieces of text ---------------------------------------------------------------------------------------------- */

bool csink_text_is(struct csink_text text, const char *word)
{
	return !strncmp(text.at, word, text.length) && !word[text.length];
}

void csink_text_copy(struct csink_text text, char *buf, size_t size)
{
	size_t length = CSINK_MIN(text.length, size - 1);

	memcpy(buf, text.at, length);
	buf[length] = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

bool csink_text_number(struct csink_text text, uint64_t *value)
{
	unsigned base = 10;
	uint64_t number = 0;

	if (text.length > 2 && text.at[0] == '0' && (text.at[1] | 0x20) == 'x') {
		base = 16;
		text.at += 2;
		text.length -= 2;
	}
	if (!text.length)
		return false;
	for (size_t i = 0; i < text.length; i++) {
		unsigned d = (unsigned)digit(text.at[i]);

		if (d >= base || __builtin_mul_overflow(number, (uint64_t)base, &number) ||
		    __builtin_add_overflow(number, (uint64_t)d, &number))
			return false;
	}
	*value = number;
	return true;
}

/* ---- generic names ----------------------------------------------------------------------------------------------- */

/* clang-format off */
#define GENERICS(HW, SW) \
	HW("cycles", "cpu-cycles", CPU_CYCLES, "CPU cycles, at whatever frequency the CPU ran") \
	HW("instructions", "", INSTRUCTIONS, "instructions that completed") \
	HW("cache-references", "", CACHE_REFERENCES, "accesses that reached the last-level cache") \
	HW("cache-misses", "", CACHE_MISSES, "accesses that the last-level cache missed") \
	HW("branches", "branch-instructions", BRANCH_INSTRUCTIONS, "branches that completed") \
	HW("branch-misses", "", BRANCH_MISSES, "branches that were predicted wrongly") \
	HW("bus-cycles", "", BUS_CYCLES, "bus cycles") \
	HW("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND, "cycles with nothing to issue") \
	HW("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND, "cycles waiting to complete") \
	HW("ref-cycles", "", REF_CPU_CYCLES, "cycles at a constant frequency") \
	SW("task-clock", "", TASK_CLOCK, "CPU time of the task, ns") \
	SW("cpu-clock", "", CPU_CLOCK, "CPU time by the CPU's own timer, ns") \
	SW("page-faults", "faults", PAGE_FAULTS, "page faults") \
	SW("minor-faults", "", PAGE_FAULTS_MIN, "page faults served without reading a disk") \
	SW("major-faults", "", PAGE_FAULTS_MAJ, "page faults that read a disk") \
	SW("context-switches", "cs", CONTEXT_SWITCHES, "times the task left a CPU") \
	SW("cpu-migrations", "migrations", CPU_MIGRATIONS, "times the task changed CPU") \
	SW("alignment-faults", "", ALIGNMENT_FAULTS, "unaligned accesses that the kernel mended") \
	SW("emulation-faults", "", EMULATION_FAULTS, "instructions that the kernel emulated") \
	SW("dummy", "", DUMMY, "nothing; carries records of threads and mappings") \
	SW("bpf-output", "", BPF_OUTPUT, "what a BPF program writes") \
	SW("cgroup-switches", "", CGROUP_SWITCHES, "switches to a task of another control group")
/* clang-format on */

static const struct csink_event_generic generics[] = {
#define HW(name, alias, id, help) {name, alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id},
#define SW(name, alias, id, help) {name, alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id},
	GENERICS(HW, SW)
#undef HW
#undef SW
};

/* The same in less room, to find a name: it is all that the agent needs. The linker leaves the rows and the helps out
 * there. */
static const char names[] =
#define ROW(name, alias, id, help) name "\0" alias "\0"
	GENERICS(ROW, ROW);
#undef ROW

static const struct {
	uint8_t type, config;
} kinds[] = {
#define HW(name, alias, id, help) {PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id},
#define SW(name, alias, id, help) {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id},
	GENERICS(HW, SW)
#undef HW
#undef SW
};

const char *csink_event_generic_help(const struct csink_event_generic *generic)
{
#define ROW(name, alias, id, help) char id[sizeof(help)];
	enum { HELP_BYTES = sizeof(union {GENERICS(ROW, ROW)}) }; /* room for the longest */
#undef ROW
#define ROW(name, alias, id, help) help,
	static const char helps[CSINK_ARRAY_SIZE(generics)][HELP_BYTES] = {GENERICS(ROW, ROW)};
#undef ROW

	return helps[generic - generics];
}

const struct csink_event_generic *csink_events_generic(uint32_t *nr)
{
	*nr = CSINK_ARRAY_SIZE(generics);
	return generics;
}

int csink_event_from_generic(struct csink_text name, struct csink_event_spec *spec)
{
	const char *at = names, *alias;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(kinds); i++, at = alias + strlen(alias) + 1) {
		alias = at + strlen(at) + 1;
		if (!csink_text_is(name, at) && !(*alias && csink_text_is(name, alias)))
			continue;
		spec->attr.type = kinds[i].type;
		spec->attr.config = kinds[i].config;
		strcpy(spec->rec.name, at);
		return 1;
	}
	return 0;
}

void csink_event_init(struct csink_event_spec *spec)
{
	memset(spec, 0, sizeof(*spec));
	spec->attr.size = sizeof(spec->attr);
	spec->scale = 1;
	strcpy(spec->rec.unit, "count");
}

void csink_event_named(const char *name, struct csink_event_spec *spec)
{
	static const struct csink_event_modifiers none;

	csink_event_init(spec);
	csink_event_from_generic((struct csink_text){name, strlen(name)}, spec);
	csink_event_modifiers_set(&none, spec);
}

/* ---- terms and modifiers ----------------------------------------------------------------------------------------- */

uint64_t *csink_event_config_word(struct perf_event_attr *attr, struct csink_text word)
{
	static const char words[][8] = {"config", "config1", "config2", "config3"};
	__u64 *values[CSINK_ARRAY_SIZE(words)] = {&attr->config, &attr->config1, &attr->config2, NULL};

#ifdef PERF_ATTR_SIZE_VER8
	values[3] = &attr->config3;
#endif
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(words); i++)
		if (csink_text_is(word, words[i]))
			return (uint64_t *)values[i];
	return NULL;
}

bool csink_event_printed_term(struct csink_event_spec *spec, struct csink_text key, struct csink_text value)
{
	char number[32];

	if (csink_text_is(key, "unit"))
		csink_text_copy(value, spec->rec.unit, sizeof(spec->rec.unit));
	else if (csink_text_is(key, "pmu"))
		csink_text_copy(value, spec->pmu, sizeof(spec->pmu));
	else if (csink_text_is(key, "cpus"))
		csink_text_copy(value, spec->cpus, sizeof(spec->cpus));
	else if (csink_text_is(key, "wide"))
		spec->cpu_wide = 1;
	else if (csink_text_is(key, "scale")) {
		csink_text_copy(value, number, sizeof(number));
		spec->scale = strtod(number, NULL);
	} else
		return false;
	return true;
}

/* Those that a name has first, in its order; how often 'p' was there is in mods->precise. */
enum { NR_IN_NAME = 6 };
static const struct {
	char letter;
	uint8_t at; /* of the modifier, a bool */
} letters[] = {
	{'u', offsetof(struct csink_event_modifiers, user)},   {'k', offsetof(struct csink_event_modifiers, kernel)},
	{'h', offsetof(struct csink_event_modifiers, hv)},     {'G', offsetof(struct csink_event_modifiers, guest)},
	{'H', offsetof(struct csink_event_modifiers, host)},   {'I', offsetof(struct csink_event_modifiers, no_idle)},
	{'D', offsetof(struct csink_event_modifiers, pinned)}, {'e', offsetof(struct csink_event_modifiers, exclusive)},
};

bool csink_event_modifiers_letter(struct csink_event_modifiers *mods, char letter)
{
	mods->precise += letter == 'p';
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(letters); i++)
		if (letters[i].letter == letter)
			return *((bool *)mods + letters[i].at) = true;
	return letter == 'p';
}

/* What the name says of the kernel's part is true no more: ":uk" is ":u". */
static void drop_kernel_letter(char *name)
{
	char *suffix = strrchr(name, ':'), *to;

	if (!suffix || suffix[1 + strspn(suffix + 1, "ukhGHIp")])
		return;
	to = ++suffix;
	for (; *suffix; suffix++)
		if (*suffix != 'k' && *suffix != 'h')
			*to++ = *suffix;
	*to = '\0';
}

void csink_event_set_user_only(struct csink_event_spec *spec)
{
	drop_kernel_letter(spec->rec.name);
	spec->attr.exclude_kernel = 1;
	spec->attr.exclude_hv = 1;
	/* Without it an unprivileged sample with a call chain is refused (or its chain shows kernel addresses). */
	spec->attr.exclude_callchain_kernel = 1;
	spec->rec.flags |= CSINK_EVENT_USER_ONLY;
}

static void apply_where(const struct csink_event_modifiers *mods, struct csink_event_spec *spec)
{
	if (mods->user || mods->kernel || mods->hv) {
		spec->attr.exclude_user = !mods->user;
		spec->attr.exclude_kernel = !mods->kernel;
		spec->attr.exclude_hv = !mods->hv;
	}
	if (mods->guest != mods->host) {
		spec->attr.exclude_host = mods->guest;
		spec->attr.exclude_guest = mods->host;
	}
	spec->attr.exclude_idle |= mods->no_idle;
	if (spec->attr.exclude_kernel)
		spec->attr.exclude_callchain_kernel = 1;
	if (spec->attr.exclude_kernel && !spec->attr.exclude_user)
		spec->rec.flags |= CSINK_EVENT_USER_ONLY | CSINK_EVENT_USER_ASKED;
}

/* Append the modifiers to the name, in one order: :ukhGHIp. */
static void apply_name(const struct csink_event_modifiers *mods, struct csink_event_spec *spec)
{
	char suffix[16] = ":";
	size_t used = 1, length = strlen(spec->rec.name);

	for (size_t i = 0; i < NR_IN_NAME; i++)
		if (*((const bool *)mods + letters[i].at))
			suffix[used++] = letters[i].letter;
	for (uint32_t n = 0; n < mods->precise; n++)
		suffix[used++] = 'p';
	suffix[used] = '\0';
	if (used > 1 && length + used < sizeof(spec->rec.name))
		memcpy(spec->rec.name + length, suffix, used + 1);
}

/* If the attr counts CPU time in ns, say so in the recording's flags and unit. */
static void mark_clock(struct csink_event_spec *spec)
{
	if (spec->attr.type != PERF_TYPE_SOFTWARE)
		return;
	if (spec->attr.config != PERF_COUNT_SW_TASK_CLOCK && spec->attr.config != PERF_COUNT_SW_CPU_CLOCK)
		return;
	spec->rec.flags |= CSINK_EVENT_CPU_NS;
	strcpy(spec->rec.unit, "nanoseconds");
}

void csink_event_modifiers_set(const struct csink_event_modifiers *mods, struct csink_event_spec *spec)
{
	apply_where(mods, spec);
	if (!mods->exact_name)
		apply_name(mods, spec);
	spec->attr.pinned |= mods->pinned;
	spec->attr.exclusive |= mods->exclusive;
	if (mods->precise)
		spec->attr.precise_ip = mods->precise & 3;
	if (mods->period)
		spec->attr.sample_period = mods->period;
	if (mods->freq) {
		spec->attr.freq = 1;
		spec->attr.sample_freq = mods->freq;
	}
	spec->rec.type = spec->attr.type;
	spec->rec.config = spec->attr.config;
	spec->rec.period = spec->attr.freq ? 0 : spec->attr.sample_period;
	mark_clock(spec);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

bool csink_event_is_kernels_own(const struct csink_event_spec *spec)
{
	static const uint64_t configs[] = {PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS,
					   PERF_COUNT_SW_CGROUP_SWITCHES};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(configs); i++) {
		if (spec->attr.type == PERF_TYPE_SOFTWARE && spec->attr.config == configs[i])
			return true;
	}
	return spec->attr.type == PERF_TYPE_TRACEPOINT || (spec->attr.exclude_user && !spec->attr.exclude_kernel);
}

/* A long name was cut, at another place for each PMU. */
static bool is_cut(const char *name, size_t length)
{
	return length && name[length - 1] == '~';
}

bool csink_event_is_counterpart(const struct csink_event_spec *a, const struct csink_event_spec *b)
{
	const char *of_a = strchr(a->rec.name, '/'), *of_b = strchr(b->rec.name, '/');
	size_t length_a, length_b;

	if (!a->cpus[0] || !b->cpus[0] || !of_a || !of_b || !strcmp(a->cpus, b->cpus))
		return false;
	length_a = strlen(of_a);
	length_b = strlen(of_b);
	if (!is_cut(of_a, length_a) && !is_cut(of_b, length_b))
		return !strcmp(of_a, of_b);
	return !strncmp(of_a, of_b, CSINK_MIN(length_a, length_b) - 1);
}

int csink_event_open_count(const struct perf_event_attr *asked, int leader)
{
	struct perf_event_attr attr = *asked;

	attr.size = sizeof(attr);
	attr.freq = 0;
	/* A precise event must sample, and has fewer counters to choose from: keep that, and never overflow. */
	attr.sample_period = attr.precise_ip ? NEVER_SAMPLE : 0;
	attr.sample_type = 0;
	attr.sigtrap = 0;
	attr.remove_on_exec = 0;
	attr.sig_data = 0;
	attr.enable_on_exec = 0;
	attr.inherit = 0;
	attr.disabled = leader < 0;
	attr.pinned = leader < 0;
	attr.read_format = COUNT_FORMAT;
	return csink_perf_open(&attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* Enough to be counted anywhere; a few microseconds. */
#define PROBE_LOOPS 2000

static void spend_cycles(void)
{
	for (int i = 0; i < PROBE_LOOPS; i++)
		__asm__ volatile("" ::: "memory");
}

/* True if the event counts while we work; closes fd. */
static bool does_count(int fd)
{
	struct csink_event_count count = {0, 0, 0};
	bool counts;

	csink_rawcall(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0);
	spend_cycles();
	csink_rawcall(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
	counts = csink_rawcall(SYS_read, fd, &count, sizeof(count)) == sizeof(count) && count.value && count.running_ns;
	csink_rawcall(SYS_close, fd);
	return counts;
}

int csink_event_does_count(const struct csink_event_spec *spec)
{
	struct perf_event_attr attr = spec->attr;
	int fd;

	attr.disabled = 1;
	attr.exclude_kernel = attr.exclude_hv = 1; /* so that every user may try */
	attr.read_format = COUNT_FORMAT;
	fd = csink_perf_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? fd : does_count(fd);
}
