/*
 * The only file that knows libpfm4. It is never linked: the program we live in may have a libpfm4 of its own, or none,
 * so ours is opened with RTLD_LOCAL, once, and kept (its tables are what csink_pfm_list hands out).
 */
#include "preload/api/events/pfm.h"

#include <dlfcn.h>
#include <errno.h>
#include <perfmon/pfmlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * libpfm4's own header for this declares a perf_event_attr of its own, which cannot stand beside the kernel's; this is
 * the documented layout of its first ABI (PFM_PERF_ENCODE_ABI0), which the library recognises by its size.
 */
struct encode_arg {
	struct perf_event_attr *attr;
	char **fstr;
	size_t size;
	int idx, cpu, flags, pad;
};

static struct {
	bool tried, usable;
	char why[160];
	pfm_err_t (*initialize)(void);
	const char *(*strerror)(int code);
	pfm_err_t (*get_pmu_info)(pfm_pmu_t pmu, pfm_pmu_info_t *info);
	int (*get_event_next)(int idx);
	int (*find_event)(const char *name);
	pfm_err_t (*get_event_info)(int idx, pfm_os_t os, pfm_event_info_t *info);
	pfm_err_t (*get_event_attr_info)(int event, int attr, pfm_os_t os, pfm_event_attr_info_t *info);
	pfm_err_t (*get_os_event_encoding)(const char *text, int plm, pfm_os_t os, void *arg);
} pfm;

static bool find_symbols(void *handle)
{
	const struct {
		const char *name;
		void **place;
	} symbols[] = {
		{"pfm_initialize", (void **)&pfm.initialize},
		{"pfm_strerror", (void **)&pfm.strerror},
		{"pfm_get_pmu_info", (void **)&pfm.get_pmu_info},
		{"pfm_get_event_next", (void **)&pfm.get_event_next},
		{"pfm_find_event", (void **)&pfm.find_event},
		{"pfm_get_event_info", (void **)&pfm.get_event_info},
		{"pfm_get_event_attr_info", (void **)&pfm.get_event_attr_info},
		{"pfm_get_os_event_encoding", (void **)&pfm.get_os_event_encoding},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(symbols); i++)
		if (!(*symbols[i].place = dlsym(handle, symbols[i].name)))
			return false;
	return true;
}

static bool load(void)
{
	void *handle;
	int ret;

	if (pfm.tried)
		return pfm.usable;
	pfm.tried = true;
	handle = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(pfm.why, sizeof(pfm.why),
			 "libpfm4 is not installed, so the names of this CPU's own events are "
			 "not known");
		return false;
	}
	if (!find_symbols(handle)) {
		snprintf(pfm.why, sizeof(pfm.why), "libpfm.so.4 lacks a function that is needed; is it libpfm4?");
		dlclose(handle);
		return false;
	}
	ret = pfm.initialize();
	pfm.usable = ret == PFM_SUCCESS;
	if (!pfm.usable)
		snprintf(pfm.why, sizeof(pfm.why), "libpfm4 does not know this CPU (%s)", pfm.strerror(ret));
	return pfm.usable;
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

static int encode(const char *text, struct perf_event_attr *attr)
{
	/* libpfm4 may have been built with a longer perf_event_attr than ours. */
	union {
		struct perf_event_attr attr;
		char room[512];
	} buf;
	struct encode_arg arg = {.attr = &buf.attr, .size = sizeof(arg), .cpu = -1};
	int ret;

	memset(&buf, 0, sizeof(buf));
	buf.attr.size = sizeof(buf.attr);
	ret = pfm.get_os_event_encoding(text, PFM_PLM0 | PFM_PLM3 | PFM_PLMH, PFM_OS_PERF_EVENT_EXT, &arg);
	if (ret == PFM_SUCCESS) {
		*attr = buf.attr;
		attr->size = sizeof(*attr);
	}
	return ret;
}

/* The segment after the last single ':', or NULL. */
static char *last_segment(char *text)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text || colon[-1] == ':')
		return NULL;
	return colon + 1;
}

/* text: PMU::EVENT or EVENT, with attributes or without. Cut it to PMU::EVENT. */
static void cut_attributes(char *text)
{
	char *name = strstr(text, "::");

	name = strchr(name ? name + 2 : text, ':');
	if (name)
		*name = '\0';
}

/* What to say of an attribute that was refused: names near it, else which there are; nothing if only its value is
 * wrong. */
static void describe_attributes(int event, const char *wrong, char *buf, size_t size)
{
	pfm_event_info_t info = {.size = sizeof(info)};
	struct csink_nearest near;
	size_t used = 0;
	bool known = false;

	buf[0] = '\0';
	if (event < 0 || pfm.get_event_info(event, PFM_OS_PERF_EVENT_EXT, &info) != PFM_SUCCESS)
		return;
	csink_nearest_init(&near, wrong, strlen(wrong));
	for (int i = 0; i < info.nattrs; i++) {
		pfm_event_attr_info_t attr = {.size = sizeof(attr)};

		if (pfm.get_event_attr_info(event, i, PFM_OS_PERF_EVENT_EXT, &attr) != PFM_SUCCESS)
			continue;
		known |= !strcasecmp(attr.name, wrong);
		csink_nearest_offer(&near, attr.name);
		if (attr.ctrl == PFM_ATTR_CTRL_PMU && used + 60 < size)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? " " : "; it has ", attr.name);
	}
	if (known)
		buf[0] = '\0';
	else if (near.nr)
		csink_nearest_print(&near, buf, size);
}

static int fail_attribute(struct csink_event_parser *parser, struct csink_text text, char *copy, int ret)
{
	char hint[256], *wrong = last_segment(copy), attribute[64] = "";

	if (wrong)
		snprintf(attribute, sizeof(attribute), "%.*s", (int)strcspn(wrong, "="), wrong);
	cut_attributes(copy);
	describe_attributes(pfm.find_event(copy), attribute, hint, sizeof(hint));
	return csink_event_fail(parser, -EINVAL, text, "'%.*s': libpfm4: %s%s", (int)text.length, text.at,
				pfm.strerror(ret), hint);
}

int csink_pfm_encode(struct csink_event_parser *parser, struct csink_text text, struct csink_event_spec *spec,
		     struct csink_event_modifiers *mods)
{
	struct csink_event_modifiers ours = {0}, before;
	struct csink_event_error no_error;
	struct csink_event_parser quiet = *parser;
	char copy[256], *segment;
	int first = 0, ret;

	if (text.length >= sizeof(copy) || !load())
		return 0;
	csink_text_copy(text, copy, sizeof(copy));
	quiet.err = &no_error;
	while ((ret = encode(copy, &spec->attr)) != PFM_SUCCESS) {
		if (!first)
			first = ret;
		/* What libpfm4 did not understand may be a modifier of ours: take it off from the end. */
		segment = last_segment(copy);
		before = ours;
		quiet.list = copy;
		if (!segment ||
		    csink_event_modifiers_parse(&quiet, csink_text(segment, segment + strlen(segment)), &ours)) {
			ours = before;
			break;
		}
		segment[-1] = '\0';
	}
	if (ret == PFM_ERR_NOTFOUND || ret == PFM_ERR_NOTSUPP || ret == PFM_ERR_NOINIT)
		return 0;
	if (ret != PFM_SUCCESS) {
		csink_text_copy(text, copy, sizeof(copy));
		return fail_attribute(parser, text, copy, first);
	}
	/* "User only" leaves out the hypervisor too, whether this CPU can count it or not. */
	spec->attr.exclude_hv |= spec->attr.exclude_kernel;
	snprintf(spec->rec.name, sizeof(spec->rec.name), "%.63s", copy);
	*mods = ours;
	return 1;
}

/* The next PMU of this machine behind number i. Returns false where there is none. */
static bool next_pmu(int *i, bool is_core, pfm_pmu_info_t *pmu)
{
	while (++*i < PFM_PMU_MAX) {
		*pmu = (pfm_pmu_info_t){.size = sizeof(*pmu)};
		if (pfm.get_pmu_info((pfm_pmu_t)*i, pmu) == PFM_SUCCESS && pmu->is_present &&
		    (!is_core || pmu->type == PFM_PMU_TYPE_CORE))
			return true;
	}
	return false;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

static int list_masks(int event, int nr, int (*visit)(void *, const struct csink_pfm_event *), void *cookie,
		      const char *pmu)
{
	for (int i = 0; i < nr; i++) {
		pfm_event_attr_info_t attr = {.size = sizeof(attr)};
		struct csink_pfm_event listed = {.pmu = pmu, .is_mask = true};
		int ret;

		if (pfm.get_event_attr_info(event, i, PFM_OS_PERF_EVENT_EXT, &attr) != PFM_SUCCESS)
			continue;
		if (attr.type != PFM_ATTR_UMASK)
			continue; /* edge, u, k, period and so on: much the same for every event */
		listed.name = attr.name;
		listed.help = attr.desc;
		ret = visit(cookie, &listed);
		if (ret)
			return ret;
	}
	return 0;
}

static int list_pmu(const pfm_pmu_info_t *pmu, int (*visit)(void *, const struct csink_pfm_event *), void *cookie)
{
	int ret = 0;

	for (int idx = pmu->first_event; idx != -1 && !ret; idx = pfm.get_event_next(idx)) {
		pfm_event_info_t info = {.size = sizeof(info)};
		struct csink_pfm_event listed = {.pmu = pmu->name};

		if (pfm.get_event_info(idx, PFM_OS_PERF_EVENT_EXT, &info) != PFM_SUCCESS)
			continue;
		listed.name = info.name;
		listed.help = info.desc;
		ret = visit(cookie, &listed);
		if (!ret)
			ret = list_masks(idx, info.nattrs, visit, cookie, pmu->name);
	}
	return ret;
}

int csink_pfm_list(int (*visit)(void *cookie, const struct csink_pfm_event *event), void *cookie, char *why,
		   size_t size)
{
	int i = PFM_PMU_NONE - 1, ret = 0;
	pfm_pmu_info_t pmu;

	if (!load()) {
		snprintf(why, size, "%s", pfm.why);
		return -ENOENT;
	}
	while (!ret && next_pmu(&i, false, &pmu))
		ret = list_pmu(&pmu, visit, cookie);
	return ret;
}

static int offer(void *cookie, const struct csink_pfm_event *event)
{
	if (!event->is_mask)
		csink_nearest_offer(cookie, event->name);
	return 0;
}

void csink_pfm_offer(struct csink_nearest *near, char *note, size_t size)
{
	int i = PFM_PMU_NONE - 1;
	pfm_pmu_info_t pmu;
	char why[160];

	note[0] = '\0';
	/* libpfm4 always finds perf's own names; what counts is whether it has a table for this kind of CPU. */
	if (csink_pfm_list(offer, near, why, sizeof(why)) < 0)
		snprintf(note, size, " (%s)", why);
	else if (!next_pmu(&i, true, &pmu))
		snprintf(note, size, " (and libpfm4 has no table of this CPU's own events)");
}

/* An event of this code in the table of one PMU. */
static bool find_in_pmu(const pfm_pmu_info_t *pmu, uint64_t code, char *name, size_t size)
{
	for (int idx = pmu->first_event; idx != -1; idx = pfm.get_event_next(idx)) {
		pfm_event_info_t info = {.size = sizeof(info)};
		struct perf_event_attr attr;

		if (pfm.get_event_info(idx, PFM_OS_PERF_EVENT_EXT, &info) != PFM_SUCCESS)
			continue;
		snprintf(name, size, "%s::%s", pmu->name, info.name);
		if (encode(name, &attr) == PFM_SUCCESS && attr.config == code)
			return true;
	}
	return false;
}

enum csink_pfm_code csink_pfm_find_code(uint64_t code, char *name, size_t size)
{
	enum csink_pfm_code found = CSINK_PFM_NO_TABLE;
	int i = PFM_PMU_NONE - 1;
	const char *absent = "";
	pfm_pmu_info_t pmu;

	*name = '\0';
	if (!load())
		return found;
	while (next_pmu(&i, true, &pmu)) {
		if (find_in_pmu(&pmu, code, name, size))
			return CSINK_PFM_PRESENT;
		found = CSINK_PFM_ABSENT;
		absent = pmu.name;
	}
	snprintf(name, size, "%s", absent);
	return found;
}
