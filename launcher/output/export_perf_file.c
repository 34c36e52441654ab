/* A perf.data file around its records: header, attributes, features. See export_perf.c. */
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/output/export_perf.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

/* perf's numbers of features. */
enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CPUDESC = 8,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12
};

#define MISC_BUILD_ID_SIZE (1 << 15)
#define STRING_ALIGN 64

struct section {
	uint64_t offset, bytes;
};

struct file_header {
	char magic[8];
	uint64_t bytes, attr_bytes;
	struct section attrs, data, event_types;
	uint64_t features[4];
};

/* ---- attributes ---- */

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} known_events[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
};

/* Others are raw events to perf; their names are in the feature of event descriptions. */
static struct perf_event_attr make_attr(const struct csink_perf *e, uint32_t event)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_RAW, .size = sizeof(attr), .config = event + 1};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(known_events); i++) {
		if (!strcmp(known_events[i].name, e->events[event].name)) {
			attr.type = known_events[i].type;
			attr.config = known_events[i].config;
		}
	}
	attr.sample_period = CSINK_MAX(e->p->period, 1);
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD |
			   PERF_SAMPLE_CALLCHAIN | (e->has_times ? PERF_SAMPLE_TIME : 0);
	attr.disabled = attr.inherit = attr.mmap = attr.mmap2 = attr.comm = attr.build_id = attr.ksymbol = 1;
	return attr;
}

static void put_attrs(FILE *out, const struct csink_perf *e, uint64_t ids_at)
{
	for (uint32_t i = 0; i < e->nr_events; i++) {
		struct perf_event_attr attr = make_attr(e, i);
		struct section ids = {ids_at + i * sizeof(uint64_t), sizeof(uint64_t)};

		fwrite(&attr, sizeof(attr), 1, out);
		fwrite(&ids, sizeof(ids), 1, out);
	}
}

/* ---- features ---- */

static void put_u32(FILE *out, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void put_string(FILE *out, const char *text)
{
	size_t bytes = (strlen(text) + STRING_ALIGN) & ~(size_t)(STRING_ALIGN - 1);

	put_u32(out, bytes);
	csink_perf_put_name(out, text, bytes);
}

static void put_build_ids(FILE *out, const struct csink_perf *e)
{
	struct {
		struct perf_event_header header;
		int32_t pid;
		uint8_t id[20], id_len, reserved[3];
	} entry;

	for (uint32_t i = 1; i < e->p->nr_mappings; i++) {
		const struct csink_perf_object *object = &e->objects[i];
		size_t len = strlen(object->file), bytes = (len + 8) & ~(size_t)7;

		if (!object->build_id_len || *object->file != '/' || len > PATH_MAX)
			continue;
		memset(&entry, 0, sizeof(entry));
		entry.header.misc = PERF_RECORD_MISC_USER | MISC_BUILD_ID_SIZE;
		entry.header.size = sizeof(entry) + bytes;
		entry.pid = -1;
		memcpy(entry.id, object->build_id, sizeof(entry.id));
		entry.id_len = object->build_id_len;
		fwrite(&entry, sizeof(entry), 1, out);
		csink_perf_put_name(out, object->file, bytes);
	}
}

/*
 * How many could be online, then how many are. No sample says where it was, which means the first CPU to hotspot: where
 * there is none it crashes. So profiles of other makers, which have no number, get one.
 */
static void put_cpus(FILE *out, const struct csink_perf *e)
{
	const char *text = csink_profile_fact(e->p, CSINK_FACT_CPUS, 0);
	unsigned int online = 1, available = 1;

	if (!text || sscanf(text, "%u online of %u", &online, &available) != 2 || !online || available < online)
		online = available = 1;
	put_u32(out, available);
	put_u32(out, online);
}

static void put_events(FILE *out, const struct csink_perf *e)
{
	put_u32(out, e->nr_events);
	put_u32(out, sizeof(struct perf_event_attr));
	for (uint32_t i = 0; i < e->nr_events; i++) {
		struct perf_event_attr attr = make_attr(e, i);
		uint64_t id = i + 1;

		fwrite(&attr, sizeof(attr), 1, out);
		put_u32(out, 1);
		put_string(out, e->events[i].name);
		fwrite(&id, sizeof(id), 1, out);
	}
}

/* The words of the kernel's fact: "Linux 6.1.0 x86_64". */
static void put_kernel(FILE *out, const struct csink_perf *e, int word)
{
	const char *text = csink_profile_fact(e->p, CSINK_FACT_KERNEL, 0);
	char name[128] = "", release[128] = "", machine[128] = "";

	if (text)
		sscanf(text, "%127s %127s %127s", name, release, machine);
	put_string(out, word == FEATURE_OSRELEASE ? release : machine);
}

static void put_feature(FILE *out, const struct csink_perf *e, uint32_t feature)
{
	const char *text;

	switch (feature) {
	case FEATURE_BUILD_ID:
		put_build_ids(out, e);
		break;
	case FEATURE_EVENT_DESC:
		put_events(out, e);
		break;
	case FEATURE_OSRELEASE:
	case FEATURE_ARCH:
		put_kernel(out, e, feature);
		break;
	case FEATURE_NRCPUS:
		put_cpus(out, e);
		break;
	case FEATURE_VERSION:
		put_string(out, "countersink " CSINK_VERSION);
		break;
	case FEATURE_CMDLINE:
		put_u32(out, 1);
		/* fall through */
	default:
		text = csink_profile_fact(e->p,
					  feature == FEATURE_CMDLINE    ? CSINK_FACT_COMMAND
					  : feature == FEATURE_HOSTNAME ? CSINK_FACT_HOST
									: CSINK_FACT_CPU,
					  0);
		put_string(out, text ? text : "");
	}
}

static const uint32_t features[] = {FEATURE_BUILD_ID, FEATURE_HOSTNAME, FEATURE_OSRELEASE,
				    FEATURE_VERSION,  FEATURE_ARCH,     FEATURE_NRCPUS,
				    FEATURE_CPUDESC,  FEATURE_CMDLINE,  FEATURE_EVENT_DESC};

/* A table of sections, then what they hold; at is where the table begins. */
static int put_features(FILE *out, const struct csink_perf *e, uint64_t at)
{
	struct section sections[CSINK_ARRAY_SIZE(features)];
	size_t bytes;
	char *text;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(features); i++) {
		sections[i].offset = at + sizeof(sections) + (uint64_t)ftell(f);
		put_feature(f, e, features[i]);
		sections[i].bytes = at + sizeof(sections) + (uint64_t)ftell(f) - sections[i].offset;
	}
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	fwrite(sections, sizeof(sections), 1, out);
	fwrite(text, 1, bytes, out);
	free(text);
	return 0;
}

int csink_perf_write_file(FILE *out, const struct csink_perf *e)
{
	struct file_header header = {.magic = "PERFILE2", .bytes = sizeof(header)};
	uint64_t ids_at = sizeof(header);

	header.attr_bytes = sizeof(struct perf_event_attr) + sizeof(struct section);
	header.attrs = (struct section){ids_at + e->nr_events * sizeof(uint64_t), e->nr_events * header.attr_bytes};
	header.data = (struct section){header.attrs.offset + header.attrs.bytes, e->names_bytes + e->data_bytes};
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(features); i++)
		header.features[0] |= 1ULL << features[i];
	fwrite(&header, sizeof(header), 1, out);
	for (uint64_t id = 1; id <= e->nr_events; id++)
		fwrite(&id, sizeof(id), 1, out);
	put_attrs(out, e, ids_at);
	fwrite(e->names_text, 1, e->names_bytes, out);
	fwrite(e->data_text, 1, e->data_bytes, out);
	return put_features(out, e, header.data.offset + header.data.bytes);
}
