/* What is compared only with its like: see fingerprint.h. */
#include "launcher/gate/fingerprint.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include <elfutils/libdwelf.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/gate/gate_command.h"
#include "launcher/gate/series.h"
#include "launcher/profile/profile.h"

#define FACT_LIBRARY "gate_library" /* "ID PATH"; several */
#define MAX_SUMMED (4ULL << 30)     /* bytes of a library without a build-id */
#define MAX_NAMED 6                 /* libraries in a note */

/* The parts, and whether runs that differ there can be compared at all. */
static const struct part {
	const char *key, *title;
	size_t where;
	bool refused;
} parts[] = {
	{"gate_program", "program", offsetof(struct csink_gate_fingerprint, program), true},
	{"gate_mode", "kind of measurement", offsetof(struct csink_gate_fingerprint, mode), true},
	{"gate_events", "event", offsetof(struct csink_gate_fingerprint, events), true},
	{"gate_cpu", "CPU", offsetof(struct csink_gate_fingerprint, cpu), true},
	{"gate_command", "command line", offsetof(struct csink_gate_fingerprint, command), false},
	{"gate_frequency", "sampling frequency", offsetof(struct csink_gate_fingerprint, frequency), false},
	{"gate_kernel", "kernel", offsetof(struct csink_gate_fingerprint, kernel), false},
	{"gate_governor", "CPU frequency governor", offsetof(struct csink_gate_fingerprint, governor), false},
	{"gate_engine", "engine", offsetof(struct csink_gate_fingerprint, engine), false},
};

static char **part_of(const struct csink_gate_fingerprint *print, const struct part *part)
{
	return (char **)((char *)print + part->where);
}

static bool is_complete(const struct csink_gate_fingerprint *print)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		if (!*part_of(print, &parts[i]))
			return false;
	}
	return true;
}

/* ---- the machine ---- */

/* The rest of the first line of a file that begins with key, after the colon; key "": the whole line. */
static char *line_of(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	char line[512], *value = strdup("");

	while (f && value && !*value && fgets(line, sizeof(line), f)) {
		char *at = *key ? strchr(line, ':') : line;

		if (strncmp(line, key, strlen(key)) || !at)
			continue;
		at += *key ? 1 + strspn(at + 1, " ") : 0;
		at[strcspn(at, "\n")] = '\0';
		free(value);
		value = strdup(at);
	}
	if (f)
		fclose(f);
	return value;
}

char *csink_gate_cpu_name(const char *path)
{
	char *name = line_of(path, "model name"), *maker, *part, *both = NULL;

	if (!name || *name)
		return name;
	/* ARM's have numbers only. */
	maker = line_of(path, "CPU implementer");
	part = line_of(path, "CPU part");
	if (maker && part && *maker && asprintf(&both, "implementer %s part %s", maker, part) < 0)
		both = NULL;
	else if (maker && part && !*maker)
		both = strdup("");
	free(name);
	free(maker);
	free(part);
	return both;
}

/* Is it one of the words of a list, "a, b"? */
static bool is_listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len) {
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ','))
			return true;
	}
	return false;
}

/* glob() sorts by name, so that the same CPUs give the same text, whichever of them says it first. */
char *csink_gate_governors(const char *directory)
{
	char pattern[512], *list = strdup("");
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/cpu[0-9]*/cpufreq/scaling_governor", directory);
	if (glob(pattern, 0, NULL, &found))
		return list;
	for (size_t i = 0; list && i < found.gl_pathc; i++) {
		char *governor = line_of(found.gl_pathv[i], ""), *longer = NULL;

		if (governor && *governor && !is_listed(list, governor)) {
			if (asprintf(&longer, "%s%s%s", list, *list ? ", " : "", governor) < 0)
				longer = NULL;
			free(list);
			list = longer;
		}
		free(governor);
	}
	globfree(&found);
	return list;
}

int csink_gate_fingerprint_take(struct csink_gate_fingerprint *print, char *const *argv,
				const struct csink_gate_runner *runner, bool simulate)
{
	struct utsname name;
	char line[1900];

	memset(print, 0, sizeof(*print));
	print->program = strdup(csink_base_name(argv[0]));
	print->command = strdup(csink_gate_command_print(argv, line, sizeof(line)));
	print->events = strdup(simulate ? "instructions" : runner->texts[CSINK_OPT_EVENTS]);
	print->frequency = strdup(simulate ? "" : runner->frequency_text);
	print->cpu = simulate ? strdup("") : csink_gate_cpu_name("/proc/cpuinfo");
	print->governor = simulate ? strdup("") : csink_gate_governors("/sys/devices/system/cpu");
	print->engine = strdup("");
	print->mode = strdup(simulate ? "simulated" : "measured");
	line[0] = '\0';
	if (!uname(&name))
		snprintf(line, sizeof(line), "%s %s %s", name.sysname, name.release, name.machine);
	print->kernel = strdup(line);
	return is_complete(print) ? 0 : -ENOMEM;
}

void csink_gate_fingerprint_free(struct csink_gate_fingerprint *print)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++)
		free(*part_of(print, &parts[i]));
	for (uint32_t i = 0; i < print->nr_libraries; i++) {
		free(print->libraries[i].path);
		free(print->libraries[i].id);
	}
	free(print->libraries);
	memset(print, 0, sizeof(*print));
}

/* ---- libraries ---- */

static char *checksum(int fd)
{
	static unsigned char bytes[65536];
	uLong crc = crc32(0, NULL, 0);
	unsigned long long size = 0;
	char *text = NULL;
	ssize_t got;

	while ((got = pread(fd, bytes, sizeof(bytes), (off_t)size)) > 0 && size < MAX_SUMMED) {
		crc = crc32(crc, bytes, (uInt)got);
		size += (unsigned long long)got;
	}
	if (asprintf(&text, "crc32-%08lx-%llu", crc, size) < 0)
		return NULL;
	return text;
}

char *csink_gate_library_id(const char *path)
{
	int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY);
	const unsigned char *id = NULL;
	char *text = NULL;
	ssize_t len = 0;
	Elf *elf;

	if (fd < 0)
		return strdup("");
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf)
		len = dwelf_elf_gnu_build_id(elf, (const void **)&id);
	if (len > 0)
		text = malloc((size_t)len * 2 + 1);
	for (ssize_t i = 0; text && i < len; i++)
		snprintf(text + i * 2, 3, "%02x", id[i]);
	if (len <= 0)
		text = checksum(fd);
	elf_end(elf);
	close(fd);
	return text;
}

static int add_library(struct csink_gate_fingerprint *print, char *path, char *id)
{
	if (CSINK_GROW_UNCAPPED(print->libraries, print->nr_libraries) || !path || !id) {
		free(path);
		free(id);
		return -ENOMEM;
	}
	print->libraries[print->nr_libraries++] = (struct csink_gate_library){path, id};
	return 0;
}

int csink_gate_fingerprint_learn(struct csink_gate_fingerprint *print, const char *engine,
				 const struct csink_gate_placement *placement)
{
	int err = 0;

	free(print->engine);
	print->engine = strdup(engine);
	for (uint32_t i = 0; i < placement->nr && !err; i++) {
		const struct csink_gate_file *file = &placement->files[i];

		/* The program itself is meant to be another. */
		if (file->sides[CSINK_GATE_NEW] && !file->is_program && strstr(file->path, ".so"))
			err = add_library(print, strdup(file->path), csink_gate_library_id(file->path));
	}
	return print->engine ? err : -ENOMEM;
}

static void note_libraries(const struct csink_gate_fingerprint *old, const struct csink_gate_fingerprint *now,
			   struct csink_gate_series *series)
{
	char names[1024] = "";
	uint32_t nr = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < now->nr_libraries; i++) {
		const struct csink_gate_library *library = &now->libraries[i], *known = NULL;
		bool same = false;

		/* Of one name there may be several: one that is the same will do. */
		for (uint32_t k = 0; k < old->nr_libraries; k++) {
			if (!csink_gate_same_library(old->libraries[k].path, library->path))
				continue;
			known = &old->libraries[k];
			same |= !strcmp(known->id, library->id);
		}
		if (!known || same)
			continue;
		if (nr++ < MAX_NAMED && n < sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%.150s", n ? ", " : "", library->path);
	}
	if (nr == 1)
		csink_gate_note(series, "%s is another build than when the baseline was made", names);
	else if (nr > 1)
		csink_gate_note(series, "%u libraries are other builds than when the baseline was made: %s%s", nr,
				names, nr > MAX_NAMED ? ", ..." : "");
}

/* ---- in a profile ---- */

int csink_gate_fingerprint_read(struct csink_gate_fingerprint *print, const struct csink_profile *profile)
{
	const char *text;
	int err = 0;

	memset(print, 0, sizeof(*print));
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		text = csink_profile_fact(profile, parts[i].key, 0);
		*part_of(print, &parts[i]) = strdup(text ? text : "");
	}
	for (uint32_t i = 0; !err && (text = csink_profile_fact(profile, FACT_LIBRARY, i)); i++) {
		size_t len = strcspn(text, " ");

		if (len && text[len])
			err = add_library(print, strdup(text + len + 1), strndup(text, len));
	}
	return is_complete(print) ? err : -ENOMEM;
}

void csink_gate_fingerprint_write(const struct csink_gate_fingerprint *print, struct csink_profile *profile)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++)
		csink_profile_fact_add(profile, parts[i].key, "%s", *part_of(print, &parts[i]));
	for (uint32_t i = 0; i < print->nr_libraries; i++) {
		if (*print->libraries[i].id)
			csink_profile_fact_add(profile, FACT_LIBRARY, "%s %s", print->libraries[i].id,
					       print->libraries[i].path);
	}
}

/* ---- comparing ---- */

bool csink_gate_fingerprint_fits(const struct csink_gate_fingerprint *old, const struct csink_gate_fingerprint *now,
				 char *why, size_t why_size)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		const char *then = *part_of(old, &parts[i]), *here = *part_of(now, &parts[i]);

		if (!parts[i].refused || !strcmp(then, here))
			continue;
		snprintf(why, why_size,
			 "the baseline was made with another %s: '%s', not '%s'; make it again with --update-baseline, "
			 "or compare all the same with --any-environment",
			 parts[i].title, then, here);
		return false;
	}
	return true;
}

void csink_gate_fingerprint_note(const struct csink_gate_fingerprint *old, const struct csink_gate_fingerprint *now,
				 struct csink_gate_series *series)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		const char *then = *part_of(old, &parts[i]), *here = *part_of(now, &parts[i]);

		if (strcmp(then, here))
			csink_gate_note(series, "the baseline was made with another %s: '%s', not '%s'", parts[i].title,
					*then ? then : "unknown", *here ? here : "unknown");
	}
	note_libraries(old, now, series);
}
