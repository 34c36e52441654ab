/* Names for the addresses of recordings, object by object; an object without names is reported with the reason. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/path.h"
#include "launcher/base/progress.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/symbols/symbols_fetch.h"
#include "preload/core/task_stat.h"

#define MAX_ROOTS 8
#define TRAMPOLINE "py::"

static const char *object_name(struct collector *c, const struct module *module)
{
	return csink_base_name(csink_profile_text(c->p, module->path));
}

static void say_failure(struct collector *c, const struct module *module, int err)
{
	const char *name = object_name(c, module);

	if (err == -ESTALE)
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "%s was replaced since it ran (its build-id differs): its functions have no names",
				    name);
	else if (err == -ENOENT)
		csink_collect_tally(c, CSINK_FACT_WARNING, "%s is gone: its functions have no names", name);
	else
		csink_collect_tally(c, CSINK_FACT_WARNING, "%s cannot be read (%s): its functions have no names", name,
				    err == -ENOEXEC ? "not an ELF file" : strerror(-err));
}

/* What was not read, because it would have cost too much. The rest has its names. */
static void say_left(struct collector *c, const struct module *module, int left)
{
	static const struct {
		int flag;
		const char *text;
	} texts[] = {
		{CSINK_LEFT_MANGLED, "names that take more than 64 KiB or 0.2 s to demangle are shown mangled"},
		{CSINK_LEFT_PACKED, "its compressed debug information unpacks to more than 32 times its size and was "
				    "not read: no lines and no inlined calls"},
		{CSINK_LEFT_SYMBOLS,
		 "its symbols overlap so much that only a part of them was read: some functions may "
		 "have no names"},
		{CSINK_LEFT_DWARF,
		 "its debug information takes more time or memory than its size allows and was read in part: some "
		 "lines and inlined calls are missing"},
		{CSINK_LEFT_CUT, "the file was cut short while it was read: some names may be missing; report again"},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(texts); i++) {
		if (left & texts[i].flag)
			csink_collect_tally(c, CSINK_FACT_WARNING, "%s: %s", object_name(c, module), texts[i].text);
	}
}

static int name_object(struct collector *c, struct module *module)
{
	char path[CSINK_ROOT_BYTES + PATH_MAX];
	struct csink_object object = {.path = path,
				      .build_id = module->build_id,
				      .build_id_len = module->build_id_len,
				      .is_vdso = module->is_vdso,
				      .pid = module->pid,
				      .image = module->image,
				      .nr_image = module->nr_image};
	struct csink_profile_mapping *mapping = &c->p->mappings[module->mapping];
	int found;

	snprintf(path, sizeof(path), "%s%s", module->root, csink_profile_text(c->p, module->path));
	found = csink_symbols_resolve(c->p, &object, module->wants, module->nr_wants);
	if (found == -ENOMEM)
		return found;
	if (found < 0) {
		say_failure(c, module, found);
		return 0;
	}
	say_left(c, module, found);
	mapping->has_functions = (found & CSINK_FOUND_NAMES) != 0;
	mapping->has_filenames = (found & CSINK_FOUND_FILES) != 0;
	mapping->has_lines = (found & CSINK_FOUND_LINES) != 0;
	mapping->has_inlines = (found & CSINK_FOUND_INLINES) != 0;
	return 0;
}

/*
 * When a process started, ns of CLOCK_REALTIME: by its first recording, or earlier if it was attached to. Then only the
 * kernel has it, as long as the process lives. 0: not known.
 */
static uint64_t start_of(const struct collector *c, int32_t pid)
{
	uint64_t start = UINT64_MAX, age, ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	struct csink_task_stat stat;
	bool is_known = false;

	for (uint32_t i = 0; i < c->nr_images; i++) {
		if (c->images[i].pid != pid)
			continue;
		start = CSINK_MIN(start, c->images[i].start_realtime_ns);
		is_known |= !c->images[i].is_outside;
	}
	if (start == UINT64_MAX || csink_task_stat_read(pid, &stat))
		return is_known ? start : 0;
	age = csink_clock_ns(CLOCK_BOOTTIME) - stat.start_ticks * (CSINK_NS_PER_S / ticks);
	return CSINK_MIN(start, csink_clock_ns(CLOCK_REALTIME) - age);
}

/* Returns how many addresses a map names; less than 0: there is none that can be read. */
static int name_from_map(struct collector *c, struct module *module, const char *path)
{
	static const struct {
		int err;
		const char *text;
	} reasons[] = {
		{-EFBIG, "is larger than the 1 GiB that is read, or repeats itself"},
		{-ENOEXEC, "is not a regular file"},
		{-ELOOP, "is a symbolic link"},
		{-EPERM, "belongs to another user and was not read"},
		{-ESTALE, "was written before the process started, by a former one of the same PID, and was not read"},
	};
	int named = csink_perfmap_resolve(c->p, path, start_of(c, module->anon_pid), module->wants, module->nr_wants);

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(reasons); i++)
		if (named == reasons[i].err)
			csink_collect_tally(c, CSINK_FACT_WARNING, "%s %s: code made at run time may have no names",
					    path, reasons[i].text);
	return named;
}

/* Code made at run time: its maker may have left a map, in the /tmp that it sees. */
static void name_anon(struct collector *c, struct module *module)
{
	char roots[MAX_ROOTS][CSINK_ROOT_BYTES], path[128];
	uint32_t nr, i;
	int named;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", module->anon_pid);
	named = name_from_map(c, module, path);
	nr = named < 0 ? csink_roots_find(module->anon_pid, roots, MAX_ROOTS) : 0;
	for (i = 0; i < nr && named <= 0; i++) {
		snprintf(path, sizeof(path), "%s/tmp/perf-%d.map", roots[i], module->anon_pid);
		named = name_from_map(c, module, path);
	}
	if (named > 0)
		c->p->mappings[module->mapping].has_functions = 1;
}

/* Reported once, if the fetch that was asked for is not possible. */
static void say_servers(struct collector *c)
{
	int err = csink_debuginfod_wanted ? csink_debuginfod_open() : 0;

	if (err == -ENOTUNIQ)
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "--debuginfod: DEBUGINFOD_URLS names no server, nothing was fetched");
	else if (err == -ENOPKG)
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "--debuginfod: libdebuginfod.so.1 is not installed, nothing was fetched");
}

/* ---- python -X perf ---- */

/* The function at a location of one function; NULL: none or several. */
static const struct csink_profile_function *sole_function(const struct csink_profile *p, uint32_t location)
{
	const struct csink_profile_location *at = &p->locations[location];

	return at->nr_lines == 1 ? &p->functions[p->lines[at->first_line].function] : NULL;
}

/* Does the location have the name that CPython's perf map gives to the code that runs a function: "py::NAME:FILE"? */
static bool is_trampoline_of(const struct csink_profile *p, uint32_t location, uint32_t inner)
{
	const struct csink_profile_function *code = sole_function(p, location), *function = sole_function(p, inner);
	const char *name = code ? csink_profile_text(p, code->name) : "";
	const char *want = function ? csink_profile_text(p, function->name) : "";
	size_t len = strlen(want);

	if (!len || strncmp(name, TRAMPOLINE, strlen(TRAMPOLINE)))
		return false;
	name += strlen(TRAMPOLINE);
	return !strncmp(name, want, len) && name[len] == ':' &&
	       !strcmp(name + len + 1, csink_profile_text(p, function->file));
}

/*
 * With -X perf, Python 3.12 and later runs each function from code that is generated for it, so that perf can name it.
 * In our stacks that code would be the function a second time: it is removed.
 */
static void fold_trampolines(struct csink_profile *p)
{
	bool any = false;

	for (uint32_t i = 1; i < p->nr_functions && !any; i++)
		any = !strncmp(csink_profile_text(p, p->functions[i].name), TRAMPOLINE, strlen(TRAMPOLINE));
	for (uint32_t s = 1; any && s < p->nr_stacks; s++) {
		uint32_t *ids = p->stack_ids + p->stacks[s].first, nr = 0;

		for (uint32_t i = 0; i < p->stacks[s].nr; i++) {
			if (!nr || !is_trampoline_of(p, ids[i], ids[nr - 1]))
				ids[nr++] = ids[i];
		}
		p->stacks[s].nr = nr;
	}
}

int csink_collect_symbols(struct collector *c)
{
	int err = 0;

	say_servers(c);
	for (uint32_t i = 0; i < c->nr_modules && !err; i++) {
		csink_progress("naming functions", i, c->nr_modules);
		if (c->modules[i].anon_pid)
			name_anon(c, &c->modules[i]);
		else
			err = name_object(c, &c->modules[i]);
	}
	if (!err)
		fold_trampolines(c->p);
	return err ? err : csink_profile_error(c->p);
}
