/*
 * Names of code made at run time, from the map that its maker keeps for perf: lines of "START SIZE NAME", hexadecimal,
 * in the order in which code was made; what comes later replaces what was there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/regular.h"
#include "launcher/base/search.h"
#include "launcher/profile/demangle.h"
#include "launcher/profile/function_name.h"
#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"

/* Maps of hours of JIT have some hundred megabytes; they are read line by line. */
#define MAX_BYTES (1ULL << 30)
#define MAX_NAME 1024
/* A file system may keep the time of writing in units of two seconds. */
#define UNIT_NS (2 * CSINK_NS_PER_S)
/* Names given to addresses, all lines together: code is made again at an address, but not for ever. */
#define MAX_GIVEN 10000000

/* Does the process that the map is named after belong to that user, still? It may say what it likes of itself. */
static bool is_of_process(const char *path, uid_t uid)
{
	const char *name = strrchr(path, '/');
	struct stat st;
	char proc[32];
	int pid;

	if (!name || sscanf(name, "/perf-%d.map", &pid) != 1)
		return false;
	snprintf(proc, sizeof(proc), "/proc/%d", pid);
	return !stat(proc, &st) && st.st_uid == uid;
}

/*
 * The map is in a directory that all users can write: only a map of this user, of root, or of the user whom the
 * process belongs to (attach watches other users' processes), is taken. Maps stay when their processes end: one that
 * is older than the process is of a former owner of its PID.
 */
static FILE *open_map(const char *path, uint64_t since_ns)
{
	int fd = csink_regular_open(path, O_NOFOLLOW, MAX_BYTES), err = 0;
	struct stat st;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	if (fstat(fd, &st) || (st.st_uid != geteuid() && st.st_uid && !is_of_process(path, st.st_uid)))
		err = EPERM;
	else if ((uint64_t)st.st_mtim.tv_sec * CSINK_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec + UNIT_NS < since_ns)
		err = ESTALE;
	if (err) {
		close(fd);
		errno = err;
		return NULL;
	}
	return csink_regular_stream(fd, MAX_BYTES);
}

/* Returns how many addresses the line names. */
static uint32_t take_line(struct csink_profile *p, char *line, const struct csink_want *wants, uint32_t nr,
			  uint32_t *functions)
{
	struct csink_profile_function function = {0};
	uint32_t at, id = 0, given = 0;
	uint64_t start, size;
	char *end;

	start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return 0;
	size = strtoull(end, &end, 16);
	while (*end == ' ')
		end++;
	end[strcspn(end, "\n")] = 0;
	at = CSINK_LOWER(nr, i, wants[i].address < start);
	for (; *end && at < nr && wants[at].address - start < size; at++) {
		if (!id) {
			csink_symbol_name(p, end, "", &function);
			id = csink_profile_function_add(p, &function);
		}
		functions[at] = id;
		given++;
	}
	return given;
}

int csink_perfmap_resolve(struct csink_profile *p, const char *path, uint64_t since_ns, struct csink_want *wants,
			  uint32_t nr_wants)
{
	CSINK_AUTO_FREE uint32_t *functions = NULL;
	uint32_t i, named = 0, given = 0;
	struct csink_profile_line line = {0};
	char text[MAX_NAME];
	CSINK_AUTO_FCLOSE FILE *map = open_map(path, since_ns);

	if (!map)
		return -errno;
	functions = calloc(nr_wants + 1, sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	qsort(wants, nr_wants, sizeof(*wants), csink_compare_u64);
	csink_demangle_begin();
	while (given < MAX_GIVEN && fgets(text, sizeof(text), map)) {
		bool is_whole = strchr(text, '\n') != NULL;

		given += take_line(p, text, wants, nr_wants, functions);
		while (!is_whole && fgets(text, sizeof(text), map)) /* the rest of a line that is too long */
			is_whole = strchr(text, '\n') != NULL;
	}
	for (i = 0; i < nr_wants; i++) {
		line.function = functions[i];
		csink_profile_location_set_lines(p, wants[i].location, &line, functions[i] != 0);
		named += functions[i] != 0;
	}
	return given < MAX_GIVEN ? (int)named : -EFBIG;
}
