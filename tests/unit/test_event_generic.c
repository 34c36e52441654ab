/* Generic and cache names: libpfm4's own tables are the oracle for ours. */
#include <dlfcn.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "tests/unit/tap.h"

struct oracle_arg {
	struct perf_event_attr *attr;
	char **fstr;
	size_t size;
	int idx, cpu, flags, pad;
};

static int (*oracle)(const char *text, int plm, int os, void *arg);

static int ask(const char *text, struct perf_event_attr *attr)
{
	struct oracle_arg arg = {.attr = attr, .size = sizeof(arg), .cpu = -1};

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	return oracle(text, 0x1 | 0x8, 2, &arg); /* PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT */
}

static void agrees(const char *ours, const char *theirs)
{
	struct csink_event_error err;
	struct csink_event_spec spec;
	struct perf_event_attr attr;

	ok(!ask(theirs, &attr) && csink_events_parse(ours, &spec, 1, &err) == 1 && attr.type == spec.attr.type &&
		   attr.config == spec.attr.config && attr.config1 == spec.attr.config1,
	   "%s is libpfm4's %s", ours, theirs);
}

static void test_generic_against_libpfm4(void)
{
	static const char *const pairs[][2] = {
		{"cycles", "CPU-CYCLES"},
		{"instructions", "INSTRUCTIONS"},
		{"cache-references", "CACHE-REFERENCES"},
		{"cache-misses", "CACHE-MISSES"},
		{"branches", "BRANCH-INSTRUCTIONS"},
		{"branch-misses", "BRANCH-MISSES"},
		{"bus-cycles", "BUS-CYCLES"},
		{"stalled-cycles-frontend", "STALLED-CYCLES-FRONTEND"},
		{"stalled-cycles-backend", "STALLED-CYCLES-BACKEND"},
		{"ref-cycles", "REF-CYCLES"},
		{"task-clock", "TASK-CLOCK"},
		{"cpu-clock", "CPU-CLOCK"},
		{"page-faults", "PAGE-FAULTS"},
		{"context-switches", "CONTEXT-SWITCHES"},
		{"cpu-migrations", "CPU-MIGRATIONS"},
		{"minor-faults", "MINOR-FAULTS"},
		{"major-faults", "MAJOR-FAULTS"},
		{"cgroup-switches", "CGROUP-SWITCHES"},
	};
	static const char *const caches[][2] = {
		{"L1-dcache", "L1-DCACHE"}, {"L1-icache", "L1-ICACHE"}, {"LLC", "LLC"},  {"dTLB", "DTLB"},
		{"iTLB", "ITLB"},           {"branch", "BRANCH"},       {"node", "NODE"}};
	static const char *const ops[][2] = {
		{"loads", "LOADS"},           {"load-misses", "LOAD-MISSES"},
		{"stores", "STORES"},         {"store-misses", "STORE-MISSES"},
		{"prefetches", "PREFETCHES"}, {"prefetch-misses", "PREFETCH-MISSES"},
	};
	char ours[64], theirs[64];
	struct perf_event_attr attr;
	int nr = 0;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(pairs); i++) {
		snprintf(theirs, sizeof(theirs), "perf::%s", pairs[i][1]);
		agrees(pairs[i][0], theirs);
	}
	for (size_t c = 0; c < CSINK_ARRAY_SIZE(caches); c++)
		for (size_t o = 0; o < CSINK_ARRAY_SIZE(ops); o++) {
			snprintf(ours, sizeof(ours), "%s-%s", caches[c][0], ops[o][0]);
			snprintf(theirs, sizeof(theirs), "perf::%s-%s", caches[c][1], ops[o][1]);
			if (ask(theirs, &attr))
				continue;
			agrees(ours, theirs);
			nr++;
		}
	ok(nr >= 20, "%d cache events were compared", nr);
}

int main(void)
{
	void *handle = dlopen("libpfm.so.4", RTLD_NOW);
	int (*initialize)(void) = NULL;

	if (handle) {
		*(void **)&oracle = dlsym(handle, "pfm_get_os_event_encoding");
		*(void **)&initialize = dlsym(handle, "pfm_initialize");
	}
	if (!oracle || !initialize || initialize())
		skip("generic names against libpfm4's", "libpfm4 is not installed, or finds nothing here");
	else
		test_generic_against_libpfm4();
	return done();
}
