/*
 * Events: names to attributes. sysfs and tracefs are made in a private directory; libpfm4 is set to describe one
 * certain CPU, so that the test runs anywhere. test_event_generic.c holds our generic names against libpfm4's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "preload/core/event/event_spec.h"
#include "tests/unit/tap.h"

#define MAX 8

static char root[64], devices[128], tracefs[128];
static struct csink_event_roots roots = {devices, tracefs};
static struct csink_event_spec specs[MAX];
static struct csink_event_error err;

static void put(const char *path, const char *text)
{
	char full[256], *slash;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = full + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(full, 0755);
	}
	fd = open(full, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		perror(full);
		exit(1);
	}
	close(fd);
}

static void make_roots(void)
{
	snprintf(root, sizeof(root), "/tmp/csink-event-XXXXXX");
	if (!mkdtemp(root))
		exit(1);
	snprintf(devices, sizeof(devices), "%s/devices", root);
	snprintf(tracefs, sizeof(tracefs), "%s/tracing", root);
	put("devices/cpu_core/type", "4\n");
	put("devices/cpu_core/cpus", "0-7\n");
	put("devices/cpu_core/format/event", "config:0-7\n");
	put("devices/cpu_core/format/umask", "config:8-15,32-35\n");
	put("devices/cpu_core/format/edge", "config:18\n");
	put("devices/cpu_core/format/ldlat", "config1:0-15\n");
	put("devices/cpu_core/format/future", "config9:0-15\n");
	put("devices/cpu_core/events/cpu-cycles", "event=0x3c\n");
	put("devices/cpu_core/events/loads", "event=0xcd,umask=0x1,ldlat=3\n");
	put("devices/cpu_core/events/template", "event=0xcd,umask=?\n");
	put("devices/cpu_atom/type", "10\n");
	put("devices/cpu_atom/cpus", "8-15\n");
	put("devices/cpu_atom/format/event", "config:0-7\n");
	put("devices/power/type", "20\n");
	put("devices/power/cpumask", "0\n");
	put("devices/power/format/event", "config:0-7\n");
	put("devices/power/events/energy-pkg", "event=0x02\n");
	put("devices/power/events/energy-pkg.unit", "Joules\n");
	put("devices/power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
	put("tracing/events/sched/sched_switch/id", "317\n");
	put("tracing/events/sched/sched_wakeup/id", "318\n");
}

static int parse(const char *list)
{
	memset(specs, 0xa5, sizeof(specs));
	return csink_events_parse_at(&roots, list, specs, MAX, &err);
}

/* One event that must parse to this type and config. */
static void is_event(const char *text, uint32_t type, uint64_t config, const char *name)
{
	int nr = parse(text);

	if (nr != 1) {
		ok(0, "'%s' is one event", text);
		printf("#   %d: %s\n", nr, nr < 0 ? err.line : "");
		return;
	}
	if (!ok(specs[0].attr.type == type && specs[0].attr.config == config && !strcmp(specs[0].rec.name, name) &&
			specs[0].rec.type == type && specs[0].rec.config == config &&
			specs[0].attr.size == sizeof(specs[0].attr),
		"'%s' is type %u, config 0x%llx, named %s", text, type, (unsigned long long)config, name))
		printf("#   got %u 0x%llx '%s'\n", specs[0].attr.type, (unsigned long long)specs[0].attr.config,
		       specs[0].rec.name);
}

/* A list that must be refused with this errno, at this place, with this in the line. */
static void is_refused(const char *list, int want, const char *token, const char *words)
{
	int got = parse(list);

	if (!ok(got == want && err.err == want && strlen(token) == err.length &&
			!strncmp(list + err.offset, token, err.length) && strstr(err.line, words),
		"'%s': %s", list, words))
		printf("#   got %d at %u+%u: %s\n", got, err.offset, err.length, err.line);
}

static void test_names(void)
{
	is_event("cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	is_event("cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	is_event("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "task-clock");
	is_str(specs[0].rec.unit, "nanoseconds", "clocks have the unit nanoseconds");
	is_num(specs[0].rec.flags, CSINK_EVENT_CPU_NS, "clocks are flagged as CPU time");
	is_event("faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults");
	is_str(specs[0].rec.unit, "count", "events other than clocks have the unit count");
	is_event("cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches");
	is_event("L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000, "L1-dcache-load-misses");
	is_event("LLC-stores", PERF_TYPE_HW_CACHE, 0x102, "LLC-stores");
	is_event("l1d-read-miss", PERF_TYPE_HW_CACHE, 0x10000, "L1-dcache-load-misses");
	is_event("dTLB-speculative-load-access", PERF_TYPE_HW_CACHE, 0x203, "dTLB-prefetches");
	is_event("r1c2", PERF_TYPE_RAW, 0x1c2, "r1c2");
	is_event("rFFFFFFFFFFFFFFFF", PERF_TYPE_RAW, UINT64_MAX, "rFFFFFFFFFFFFFFFF");
	is_refused("iTLB-stores", -ENOENT, "iTLB-stores", "'dTLB-stores'");
	is_refused("r10000000000000000", -ENOENT, "r10000000000000000", "unknown event");
	is_refused("r", -ENOENT, "r", "a raw code is r and up to 16 hex digits, as in r1a8");
	is_refused("r8z", -ENOENT, "r8z", "a raw code is r");
}

static void test_modifiers(void)
{
	const struct perf_event_attr *attr = &specs[0].attr;

	is_event("cycles:u", PERF_TYPE_HARDWARE, 0, "cycles:u");
	ok(attr->exclude_kernel && attr->exclude_hv && !attr->exclude_user, "u excludes the kernel and the hypervisor");
	ok(attr->exclude_callchain_kernel, "u excludes the kernel's call chains");
	is_num(specs[0].rec.flags, CSINK_EVENT_USER_ONLY | CSINK_EVENT_USER_ASKED, "u sets the recording's flags");
	is_event("cycles:ku", PERF_TYPE_HARDWARE, 0, "cycles:uk");
	ok(!attr->exclude_kernel && attr->exclude_hv && !attr->exclude_user, "uk excludes the hypervisor only");
	is_event("cycles:ppp:G", PERF_TYPE_HARDWARE, 0, "cycles:Gppp");
	ok(attr->precise_ip == 3 && attr->exclude_host && !attr->exclude_guest,
	   "ppp sets precise_ip, G excludes the host");
	is_event("cycles:u:D:e", PERF_TYPE_HARDWARE, 0, "cycles:u");
	ok(attr->pinned && attr->exclusive, "D sets pinned, e sets exclusive");
	is_event("cycles:pinned:excl:precise=1", PERF_TYPE_HARDWARE, 0, "cycles:p");
	ok(attr->pinned && attr->exclusive && attr->precise_ip == 1,
	   "the long modifiers set pinned, exclusive and precise_ip");
	is_event("instructions:period=100000", PERF_TYPE_HARDWARE, 1, "instructions");
	ok(attr->sample_period == 100000 && !attr->freq && specs[0].rec.period == 100000, "period= sets the period");
	is_event("instructions:freq=0x64", PERF_TYPE_HARDWARE, 1, "instructions");
	ok(attr->sample_freq == 100 && attr->freq && !specs[0].rec.period, "freq= sets the frequency");
}

static void test_refusals(void)
{
	is_refused("cycels", -ENOENT, "cycels", "did you mean 'cycles'");
	is_refused("task-clock,instrutions:u", -ENOENT, "instrutions", "'instructions'");
	is_refused("cycles:x", -EINVAL, "x", "unknown modifier 'x'");
	is_refused("cycles:pined", -EINVAL, "pined", "did you mean 'pinned'");
	is_refused("cycles:pppp", -EINVAL, "pppp", "at most three");
	is_refused("cycles:precise=4", -EINVAL, "precise=4", "0 to 3");
	is_refused("cycles:period=0", -EINVAL, "period=0", "from 1");
	is_refused("cycles:period=-1", -EINVAL, "period=-1", "from 1");
	is_refused("cycles:period=9223372036854775808", -EINVAL, "period=9223372036854775808", "from 1");
	is_refused("cycles:period=abc", -EINVAL, "period=abc", "from 1");
	is_refused("cycles:period", -EINVAL, "period", "=N");
	is_refused("cycles:pinned=1", -EINVAL, "pinned=1", "no value");
	is_refused("cycles:period=1000:freq=10", -EINVAL, "freq=10", "not both");
	is_refused("cycles:", -EINVAL, "", "modifier is missing");
	is_refused("task-clock:period=9999", -EINVAL, "task-clock:period=9999", "10000 ns");
	is_refused("page-faults:p", -EOPNOTSUPP, "page-faults:p", "without skid");
	is_refused("", -EINVAL, "", "name is missing");
	is_refused("cycles,,cs", -EINVAL, "", "name is missing");
	is_refused("cycles,", -EINVAL, "", "name is missing");
	is_refused("{cycles,cs", -EINVAL, "{cycles,cs", "closing '}'");
	is_refused("cycles}", -EINVAL, "}", "not expected");
	is_refused("{}", -EINVAL, "", "name is missing");
	is_refused("{cycles}{cs}", -EINVAL, "{", "not expected");
	is_refused("{cycles,{cs}}", -EINVAL, "{cycles,{cs}}", "closing '}'");
	is_refused("{cycles,instructions:D}", -EINVAL, "instructions:D", "first event");
	is_refused("cs,cs,cs,cs,cs,cs,cs,cs,cycles", -E2BIG, "cycles", "8 fit");
}

static void test_groups(void)
{
	is_num(parse(" task-clock , {cycles, instructions:u}:pinned,cs"), 4,
	       "a list of two events and a group is parsed");
	ok(specs[0].group == 0 && specs[1].group == 1 && specs[2].group == 1 && specs[3].group == 2,
	   "groups are numbered");
	ok(specs[1].attr.pinned && !specs[2].attr.pinned && !specs[3].attr.pinned, "a group is pinned by its leader");
	is_num(specs[2].offset, 23, "offset is the event's place in the list");
	is_num(specs[2].length, 14, "length is the event's length in the list");
	is_num(parse("{cycles,instructions}:u"), 2, "a group with modifiers is parsed");
	ok(specs[0].attr.exclude_kernel && specs[1].attr.exclude_kernel, "a group's modifiers apply to every member");
}

static void test_pmus(void)
{
	const struct perf_event_attr *attr = &specs[0].attr;

	is_event("cpu_core/event=0x3c,umask=0xfa5/", 4, 0xf0000a53c, "cpu_core/event=0x3c,umask=0xfa5/");
	is_event("cpu_core/event=0xff,edge/u", 4, 0x400ff, "cpu_core/event=0xff,edge/:u");
	ok(attr->exclude_kernel, "a modifier after the slash applies");
	is_event("cpu_core/loads/:pp", 4, 0x1cd, "cpu_core/loads/:pp");
	is_num(attr->config1, 3, "an alias sets config1");
	is_event("cpu_core/loads,ldlat=30,name=slow loads/", 4, 0x1cd, "slow loads");
	is_num(attr->config1, 30, "later terms override earlier ones");
	is_event("cpu_core/config=0x1234,config2=7/", 4, 0x1234, "cpu_core/config=0x1234,config2=7/");
	is_num(attr->config2, 7, "config2= sets config2");
	is_event("cpu_atom/cycles/", PERF_TYPE_HARDWARE, 10ULL << 32, "cpu_atom/cycles/");
	is_str(specs[0].cpus, "8-15", "an event of a core PMU has its CPUs");
	is_event("cpu_core/cpu-cycles,period=50000/", 4, 0x3c, "cpu_core/cpu-cycles,period=50000/");
	is_num(attr->sample_period, 50000, "period= between the slashes sets the period");
	is_event("power/energy-pkg/", 20, 2, "power/energy-pkg/");
	ok(specs[0].cpu_wide && !strcmp(specs[0].rec.unit, "Joules") && specs[0].scale > 2.3e-10 &&
		   specs[0].scale < 2.4e-10,
	   "unit, scale and scope of a package's events");
	is_event("#7/config=0x3c,name='a,b/c'/:k", 7, 0x3c, "a,b/c");
	is_refused("cpu_cor/event=1/", -ENOENT, "cpu_cor", "did you mean 'cpu_core//'");
	is_refused("cpu_core/evnt=1/", -ENOENT, "evnt=1", "did you mean 'event'");
	is_refused("cpu_core/event=0x100/", -EINVAL, "event=0x100", "0 to 0xff");
	is_refused("cpu_core/event=zz/", -EINVAL, "event=zz", "number");
	is_refused("cpu_core/event=1", -EINVAL, "cpu_core/event=1", "closing '/'");
	is_refused("cpu_core/template/", -EINVAL, "template", "event=0xcd,umask=?");
	is_refused("cpu_core/future=1/", -EINVAL, "future=1", "config9");
	is_refused("power/cycles/", -ENOENT, "cycles", "no field or event");
	is_refused("../power/event=1/", -ENOENT, "..", "no PMU");
	is_refused("#x/config=1/", -EINVAL, "x", "type number");
	is_refused("#4/event=1/", -EINVAL, "event=1", "by number");
	is_refused("#4/config=1,name='a'b/", -EINVAL, "name='a'b", "quotes");
	is_refused("/event=1/", -EINVAL, "", "name is missing");
}

static void test_tracepoints(void)
{
	is_event("sched:sched_switch", PERF_TYPE_TRACEPOINT, 317, "sched:sched_switch");
	is_event("sched:sched_wakeup:u", PERF_TYPE_TRACEPOINT, 318, "sched:sched_wakeup:u");
	is_refused("sched:sched_swich", -ENOENT, "sched:sched_swich", "did you mean 'sched_switch'");
	is_refused("shed:sched_switch", -ENOENT, "shed:sched_switch", "did you mean 'sched'");
	is_refused("sched:sched_switch:p", -EOPNOTSUPP, "sched:sched_switch:p", "tracepoint");
	roots.tracefs = "/nowhere";
	is_refused("sched:sched_switch", -ENOENT, "sched:sched_switch", "mount -t tracefs");
	roots.tracefs = tracefs;
}

static void test_closed_tracefs(void)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/events", tracefs);
	chmod(path, 0);
	if (geteuid())
		is_refused("sched:sched_switch", -EACCES, "sched:sched_switch", "only root");
	else if (!seteuid(65534)) {
		is_refused("sched:sched_switch", -EACCES, "sched:sched_switch", "only root");
		seteuid(0);
	}
	chmod(path, 0755);
}

static void test_bind(void)
{
	struct csink_event_roots plain = {"/nowhere", NULL};

	is_num(parse("cycles:u,task-clock,{instructions,cs}"), 4, "four events are parsed for a hybrid machine");
	is_num(csink_events_bind(&plain, specs, 4, MAX, &err), 4, "bind keeps four events where there is one CPU kind");
	is_str(specs[0].rec.name, "cycles:u", "bind keeps the names where there is one CPU kind");
	is_num(csink_events_bind(&roots, specs, 4, MAX, &err), 7,
	       "bind makes seven events of four where there are two CPU kinds");
	is_str(specs[0].rec.name, "cpu_atom/cycles/:u", "CPU kinds come in the order of their names");
	is_str(specs[1].rec.name, "cpu_core/cycles/:u", "each CPU kind has the event");
	ok(specs[0].attr.config == 10ULL << 32 && specs[1].attr.config == 4ULL << 32,
	   "each event has its PMU's type in config's upper half");
	ok(specs[0].attr.exclude_kernel && specs[1].attr.exclude_kernel, "each event keeps its modifiers");
	is_str(specs[2].rec.name, "task-clock", "software events are not duplicated");
	is_str(specs[3].rec.name, "cpu_atom/instructions/", "a group is duplicated as a whole");
	is_str(specs[4].rec.name, "context-switches", "a duplicated group keeps its software events");
	ok(specs[0].group == 0 && specs[1].group == 1 && specs[2].group == 2 && specs[3].group == 3 &&
		   specs[4].group == 3 && specs[5].group == 4 && specs[6].group == 4,
	   "groups are renumbered");
	is_num(csink_events_bind(&roots, specs, 7, MAX, &err), 7, "bind of bound events changes nothing");
	parse("r3c");
	is_num(csink_events_bind(&roots, specs, 1, MAX, &err), 2, "raw codes are bound to CPU kinds");
	ok(specs[0].attr.type == 10 && specs[1].attr.type == 4, "raw codes get the PMU's type");
	is_num(parse("cycles,cycles:u,cycles:k,instructions,branches"), 5, "five generic events are parsed");
	is_num(csink_events_bind(&roots, specs, 5, MAX, &err), -E2BIG,
	       "five generic events are too many when doubled: E2BIG");
	ok(!!strstr(err.line, "2 kinds of CPU"), "the error names the two CPU kinds");
}

static bool is_same(const struct csink_event_spec *a, const struct csink_event_spec *b)
{
	return !memcmp(&a->attr, &b->attr, sizeof(a->attr)) && !memcmp(&a->rec, &b->rec, sizeof(a->rec)) &&
	       a->group == b->group && a->scale == b->scale && a->cpu_wide == b->cpu_wide &&
	       !strcmp(a->cpus, b->cpus) && !strcmp(a->pmu, b->pmu);
}

static void test_print(void)
{
	static const char *const lists[] = {
		"task-clock",
		"cycles:u:period=1000,task-clock",
		"{cycles:D,instructions,L1-dcache-load-misses:k}:u,cs",
		"cpu_core/loads,name='a, b'/:pp,power/energy-pkg/",
		"sched:sched_switch,r1c2:G,cpu_atom/cycles/:freq=99",
		"#0/config=0,name=cycles/,cycles:ukhI",
	};
	struct csink_event_roots nothing = {"/nowhere", "/nowhere"};
	struct csink_event_spec again[MAX];
	char text[2048];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(lists); i++) {
		int nr = parse(lists[i]), same = nr > 0;

		ok(csink_events_print(specs, (uint32_t)CSINK_MAX(nr, 0), text, sizeof(text)) > 0, "'%s' is printed",
		   lists[i]);
		same = same && csink_events_parse_at(&nothing, text, again, MAX, &err) == nr;
		for (int k = 0; same && k < nr; k++)
			same = is_same(&again[k], &specs[k]);
		if (!ok(same, "'%s', printed, is parsed without a file", lists[i]))
			printf("#   %s: %s\n", text, err.line);
		same = csink_events_read(text, again, MAX) == nr;
		for (int k = 0; same && k < nr; k++)
			same = is_same(&again[k], &specs[k]) && again[k].offset < strlen(text);
		if (!ok(same, "'%s', printed, is read without the parser", lists[i]))
			printf("#   %s\n", text);
	}
	parse("cycles");
	csink_event_set_user_only(&specs[0]);
	csink_events_print(specs, 1, text, sizeof(text));
	is_num(csink_events_parse(text, again, MAX, &err), 1, "an event forced to user space is parsed from print");
	ok(again[0].attr.exclude_kernel && !strcmp(again[0].rec.name, "cycles"),
	   "an event forced to user space keeps its name");
	is_num(csink_events_print(specs, 1, text, 4), -ENOSPC, "print into a short buffer: ENOSPC");
}

/* What is not of the printed form is left to the parser. */
static void test_read(void)
{
	static const char *const others[] = {
		"",
		"cycles,",
		"nonsense",
		"cycles:x",
		"cycles:pppp",
		"{cycles",
		"cycles}",
		"{cycles}}",
		"{{cycles}}",
		"cycles,{cycles",
		"r1c2",
		"cpu/event=1/",
		"sched:sched_switch",
		"L1-dcache-loads",
		"cycles:u:",
		"#4/config=1/",
		"#4/name=x",
		"#4/name='x/",
		"#4/config=x,name=y/",
		"#4/name=y,field=1/",
		"#x/name=y/",
		"#4",
		"cycles:period=x",
		"cycles:skid=1",
		"{cycles}:u",
	};
	struct csink_event_spec two[2];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(others); i++)
		ok(csink_events_read(others[i], two, 2) == -EINVAL, "'%s' is not in the printed form", others[i]);
	is_num(csink_events_read("cycles,{instructions}", two, 2), 2, "two events are read into room for two");
	is_num(csink_events_read("cycles,instructions,cs", two, 2), -EINVAL, "three events do not fit there");
	csink_event_named("task-clock", two);
	ok(parse("task-clock") == 1 && is_same(two, specs), "a generic name gives what the parser gives");
}

/* ---- libpfm4's names ----------------------------------------------------------------------------------------------
 */

static void test_libpfm4_names(void)
{
	const struct perf_event_attr *attr = &specs[0].attr;

#ifndef __x86_64__
	skip("names of x86's events", "libpfm4 has the tables of its own kind of machine alone");
	return;
#endif
	is_event("INST_RETIRED:ANY_P", PERF_TYPE_RAW, 0xc0, "INST_RETIRED:ANY_P");
	is_event("skl::MEM_LOAD_RETIRED:L3_MISS:u", PERF_TYPE_RAW, 0x20d1, "skl::MEM_LOAD_RETIRED:L3_MISS:u");
	ok(attr->exclude_kernel && attr->exclude_hv &&
		   specs[0].rec.flags == (CSINK_EVENT_USER_ONLY | CSINK_EVENT_USER_ASKED),
	   "libpfm4 parses :u");
	is_event("OFFCORE_RESPONSE_0:DMND_DATA_RD:L3_MISS", PERF_TYPE_RAW, 0x1b7,
		 "OFFCORE_RESPONSE_0:DMND_DATA_RD:L3_MISS");
	is_num((long long)attr->config1, 0x3f84000001, "libpfm4 sets config1");
	is_event("INST_RETIRED:ANY_P:upp:D", PERF_TYPE_RAW, 0xc0, "INST_RETIRED:ANY_P:upp");
	ok(attr->pinned && attr->precise_ip == 2 && attr->exclude_kernel,
	   "perf's modifiers apply after libpfm4's attributes");
	is_event("INST_RETIRED:period=5000", PERF_TYPE_RAW, 0xc0, "INST_RETIRED:period=5000");
	is_num((long long)specs[0].rec.period, 5000, "libpfm4 parses period=");
	is_refused("INST_RETIRD", -ENOENT, "INST_RETIRD", "'INST_RETIRED'");
	is_refused("INST_RETIRED:ANY_Q", -EINVAL, "INST_RETIRED:ANY_Q", "did you mean 'ANY_P'");
	is_refused("MEM_LOAD_RETIRED", -EINVAL, "MEM_LOAD_RETIRED", "it has L1_HIT");
	is_refused("INST_RETIRED:precise=9", -EINVAL, "INST_RETIRED:precise=9", "value");
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

/* Count the calls of open(2) and the allocator that a parse makes: this program's own definitions come first. */
static int nr_opens;

int open(const char *path, int flags, ...)
{
	nr_opens++;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0644);
}

static void test_cost(void)
{
	uint64_t best = UINT64_MAX;

	nr_opens = 0;
	for (int i = 0; i < 100; i++) {
		struct timespec from, to;
		uint64_t ns;

		clock_gettime(CLOCK_MONOTONIC, &from);
		csink_events_parse("task-clock,cycles:u,{instructions,L1-dcache-load-misses},r1c2,#4/config=1/", specs,
				   MAX, &err);
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns = (uint64_t)(to.tv_sec - from.tv_sec) * CSINK_NS_PER_S + (uint64_t)to.tv_nsec -
		     (uint64_t)from.tv_nsec;
		best = CSINK_MIN(best, ns);
	}
	is_num(nr_opens, 0, "common events are parsed without opening a file");
	printf("# six events in %llu ns\n", (unsigned long long)best);
	csink_events_parse("power/energy-pkg/", specs, MAX, &err);
	ok(nr_opens > 0, "the check counts the files that a PMU event opens");
}

static void test_auto(void)
{
	char reason[160] = "";
	struct csink_event_spec spec;
	int fd = dup(0), next;

	close(fd);
	csink_events_auto(&spec, reason, sizeof(reason));
	next = dup(0);
	is_num(next, fd, "auto leaves no descriptor open");
	close(next);
	ok(!strcmp(spec.rec.name, "cycles") || !strcmp(spec.rec.name, "task-clock"), "auto is %s", spec.rec.name);
	ok(!!strstr(reason, spec.rec.name), "auto's reason names the event: %s", reason);
}

static void remove_roots(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command))
		printf("# %s stays\n", root);
}

int main(void)
{
	void *handle;

	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	make_roots();
	test_names();
	test_modifiers();
	test_refusals();
	test_groups();
	test_pmus();
	test_tracepoints();
	test_closed_tracefs();
	test_bind();
	test_print();
	test_read();
	handle = dlopen("libpfm.so.4", RTLD_NOW);
	if (handle)
		test_libpfm4_names();
	else
		skip("libpfm4's names", "libpfm4 is not installed");
	test_cost();
	test_auto();
	remove_roots();
	return done();
}
