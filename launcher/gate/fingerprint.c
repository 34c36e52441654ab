/* What is compared only with its like: see fingerprint.h. */
#include "launcher/gate/fingerprint.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include <elfutils/libdwelf.h>

#include "include/internal/cleanup.h"
#include "launcher/base/format.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/gate/gate_command.h"
#include "launcher/gate/series.h"
#include "launcher/profile/profile.h"

#define FACT_LIBRARY "gate_library" /* "ID PATH"; several */
#define MAX_SUMMED (4ULL << 30)     /* bytes of a library without a build-id */
#define MAX_NAMED 6                 /* libraries in a note */

/* The parts, and whether runs that differ there can be compared at all. */
enum part { PROGRAM, MODE, EVENTS, CPU, COMMAND, FREQUENCY, KERNEL, GOVERNOR, ENGINE, NR_PARTS };
static const struct {
	const char *key, *title;
	bool refused;
} parts[NR_PARTS] = {
	[PROGRAM] = {"gate_program", "program", true},
	[MODE] = {"gate_mode", "kind of measurement", true}, /* csink_gate_counting_mode */
	[EVENTS] = {"gate_events", "event", true},           /* as printed for the library */
	[CPU] = {"gate_cpu", "CPU", true},
	[COMMAND] = {"gate_command", "command line", false},
	[FREQUENCY] = {"gate_frequency", "sampling frequency", false},
	[KERNEL] = {"gate_kernel", "kernel", false},
	[GOVERNOR] = {"gate_governor", "CPU frequency governor", false},
	[ENGINE] = {"gate_engine", "engine", false}, /* known only after a run */
};

static const char *text_of(const struct csink_profile *print, enum part part)
{
	return csink_profile_fact(print, parts[part].key, 0) ?: "";
}

static void set(struct csink_profile *print, enum part part, const char *text)
{
	csink_profile_fact_add(print, parts[part].key, "%s", text);
}

const char *csink_gate_fingerprint_mode(const struct csink_profile *baseline)
{
	return csink_profile_fact(baseline, parts[MODE].key, 0);
}

/* ---- the machine ---- */

/* The rest of the first line of a file that begins with key, after the colon; key "": the whole line. */
static char *line_of(const char *path, const char *key)
{
	CSINK_AUTO_FCLOSE FILE *f = fopen(path, "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		char *at = *key ? strchr(line, ':') : line;

		if (strncmp(line, key, strlen(key)) || !at)
			continue;
		at += *key ? 1 + strspn(at + 1, " ") : 0;
		at[strcspn(at, "\n")] = '\0';
		if (*at)
			return strdup(at);
	}
	return strdup("");
}

char *csink_gate_cpu_name(const char *path)
{
	char *name = line_of(path, "model name");
	CSINK_AUTO_FREE char *maker = NULL, *part = NULL;

	if (!name || *name)
		return name;
	/* ARM's have numbers only. */
	maker = line_of(path, "CPU implementer");
	part = line_of(path, "CPU part");
	if (maker && part && !*maker)
		return name;
	free(name);
	return maker && part && asprintf(&name, "implementer %s part %s", maker, part) >= 0 ? name : NULL;
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

struct csink_profile *csink_gate_fingerprint_take(char *const *argv, const struct csink_gate_runner *runner,
						  const char *mode)
{
	bool counted = strcmp(mode, "measured") != 0;
	struct csink_profile *print = csink_profile_create();
	CSINK_AUTO_FREE char *cpu = counted ? strdup("") : csink_gate_cpu_name("/proc/cpuinfo");
	CSINK_AUTO_FREE char *governor = counted ? strdup("") : csink_gate_governors("/sys/devices/system/cpu");
	struct utsname name;
	char line[1900];

	if (!print || !cpu || !governor) {
		csink_profile_free(print);
		return NULL;
	}
	set(print, PROGRAM, csink_base_name(argv[0]));
	set(print, COMMAND, csink_gate_command_print(argv, line, sizeof(line)));
	set(print, EVENTS, counted ? "instructions" : runner->texts[CSINK_OPT_EVENTS]);
	set(print, FREQUENCY, counted ? "" : runner->frequency_text);
	set(print, CPU, cpu);
	set(print, GOVERNOR, governor);
	set(print, MODE, mode);
	if (!uname(&name))
		csink_profile_fact_add(print, parts[KERNEL].key, "%s %s %s", name.sysname, name.release, name.machine);
	return print;
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

int csink_gate_fingerprint_learn(struct csink_profile *print, const char *engine,
				 const struct csink_gate_placement *placement)
{
	set(print, ENGINE, engine);
	for (uint32_t i = 0; i < placement->nr; i++) {
		const struct csink_gate_file *file = &placement->files[i];
		CSINK_AUTO_FREE char *id = NULL;

		/* The program itself is meant to be another. */
		if (!file->sides[CSINK_GATE_NEW] || file->is_program || !strstr(file->path, ".so"))
			continue;
		id = csink_gate_library_id(file->path);
		if (!id)
			return -ENOMEM;
		csink_profile_fact_add(print, FACT_LIBRARY, "%s %s", id, file->path);
	}
	return csink_profile_error(print);
}

/* Of one name there may be several: one that is the same will do. */
static bool is_other_build(const struct csink_profile *old, const char *library)
{
	const char *path = strchr(library, ' ') + 1, *known;
	bool found = false;

	for (uint32_t i = 0; (known = csink_profile_fact(old, FACT_LIBRARY, i)); i++) {
		size_t len = strcspn(known, " ");

		if (!len || !known[len] || !csink_gate_same_library(known + len + 1, path))
			continue;
		if (!strncmp(known, library, len + 1))
			return false;
		found = true;
	}
	return found;
}

static void note_libraries(const struct csink_profile *old, const struct csink_profile *now,
			   struct csink_gate_series *series)
{
	const char *library;
	char names[1024] = "";
	uint32_t nr = 0;

	for (uint32_t i = 0; (library = csink_profile_fact(now, FACT_LIBRARY, i)); i++) {
		if (is_other_build(old, library) && nr++ < MAX_NAMED)
			csink_append(names, sizeof(names), "%s%.150s", *names ? ", " : "", strchr(library, ' ') + 1);
	}
	if (nr == 1)
		csink_gate_note(series, "%s is another build than when the baseline was made", names);
	else if (nr > 1)
		csink_gate_note(series, "%u libraries are other builds than when the baseline was made: %s%s", nr,
				names, nr > MAX_NAMED ? ", ..." : "");
}

/* ---- in a baseline ---- */

void csink_gate_fingerprint_write(const struct csink_profile *print, struct csink_profile *baseline)
{
	const char *library;

	for (enum part i = 0; i < NR_PARTS; i++)
		set(baseline, i, text_of(print, i));
	for (uint32_t i = 0; (library = csink_profile_fact(print, FACT_LIBRARY, i)); i++) {
		if (*library != ' ') /* it could be read */
			csink_profile_fact_add(baseline, FACT_LIBRARY, "%s", library);
	}
}

bool csink_gate_fingerprint_fits(const struct csink_profile *old, const struct csink_profile *now, char *why,
				 size_t why_size)
{
	for (enum part i = 0; i < NR_PARTS; i++) {
		const char *then = text_of(old, i), *here = text_of(now, i);

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

void csink_gate_fingerprint_note(const struct csink_profile *old, const struct csink_profile *now,
				 struct csink_gate_series *series)
{
	for (enum part i = 0; i < NR_PARTS; i++) {
		const char *then = text_of(old, i), *here = text_of(now, i);

		if (strcmp(then, here))
			csink_gate_note(series, "the baseline was made with another %s: '%s', not '%s'", parts[i].title,
					*then ? then : "unknown", *here ? here : "unknown");
	}
	note_libraries(old, now, series);
}
