/* The commands that a gate compares: splitting --vs into words, and seeing whether both are the same: gate_command.h.
 */
#include "launcher/gate/gate_command.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/format.h"
#include "launcher/base/regular.h"
#include "launcher/session/find_program.h"

/* What only a shell understands; and NAME=value in front. */
static bool needs_shell(const char *line)
{
	bool single = false, twice = false;
	const char *word = line + strspn(line, " \t");
	size_t name = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	if (name && word[name] == '=')
		return true;
	for (; *line; line++) {
		if (*line == '\\' && !single && line[1])
			line++;
		else if (*line == '\'' && !twice)
			single = !single;
		else if (*line == '"' && !single)
			twice = !twice;
		else if (!single && (*line == '`' || (*line == '$' && line[1] == '(')))
			return true;
		else if (!single && !twice && strchr("|&;<>(){}\n", *line))
			return true;
	}
	return false;
}

/* Words behind their array, in one allocation. */
static char **pack(char *const *words, size_t nr)
{
	size_t bytes = (nr + 1) * sizeof(char *);
	char **packed, *text;

	for (size_t i = 0; i < nr; i++)
		bytes += strlen(words[i]) + 1;
	packed = malloc(bytes);
	if (!packed)
		return NULL;
	text = (char *)(packed + nr + 1);
	for (size_t i = 0; i < nr; i++) {
		packed[i] = text;
		text = stpcpy(text, words[i]) + 1;
	}
	packed[nr] = NULL;
	return packed;
}

char **csink_gate_command_split(const char *line, bool *shell)
{
	char *in_shell[] = {(char *)"/bin/sh", (char *)"-c", (char *)line};
	char **packed = NULL;
	wordexp_t words;
	int err;

	*shell = needs_shell(line);
	if (*shell)
		return pack(in_shell, CSINK_ARRAY_SIZE(in_shell));
	err = wordexp(line, &words, WRDE_NOCMD);
	errno = err == WRDE_NOSPACE ? ENOMEM : EINVAL;
	if (err)
		return NULL;
	if (words.we_wordc)
		packed = pack(words.we_wordv, words.we_wordc);
	wordfree(&words);
	return packed;
}

char *csink_gate_command_print(char *const *argv, char *out, size_t size)
{
	out[0] = '\0';
	for (size_t i = 0; argv[i]; i++) {
		csink_append(out, size, "%s", i ? " " : "");
		csink_append_word(out, size, argv[i]);
	}
	return out;
}

/* ---- the same? ---- */

static bool is_same_content(const char *left, const char *right)
{
	static char bytes[2][65536];
	CSINK_AUTO_FCLOSE FILE *f = NULL, *g = NULL;
	struct stat a, b;
	size_t got = 1;
	bool same;

	if (stat(left, &a) || stat(right, &b) || !S_ISREG(a.st_mode) || !S_ISREG(b.st_mode) || a.st_size != b.st_size)
		return false;
	if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return true;
	f = csink_regular_fopen(left, 0, CSINK_REGULAR_ANY);
	g = csink_regular_fopen(right, 0, CSINK_REGULAR_ANY);
	same = f && g;
	while (same && got) {
		got = fread(bytes[0], 1, sizeof(bytes[0]), f);
		same = fread(bytes[1], 1, sizeof(bytes[1]), g) == got && !memcmp(bytes[0], bytes[1], got) &&
		       !ferror(f) && !ferror(g);
	}
	return same;
}

/* A compiled program that loads its libraries by the system's rules alone: no path relative to itself is in it. */
static bool is_plain_elf(const char *path)
{
	CSINK_AUTO_CLOSE int fd = csink_regular_open(path, 0, 1 << 30);
	CSINK_AUTO_FREE char *bytes = NULL;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > SELFMAG)
		bytes = malloc((size_t)st.st_size);
	return bytes && read(fd, bytes, (size_t)st.st_size) == (ssize_t)st.st_size && !memcmp(bytes, ELFMAG, SELFMAG) &&
	       !memmem(bytes, (size_t)st.st_size, "$ORIGIN", 7);
}

enum csink_gate_same csink_gate_command_compare(char *const *left, char *const *right)
{
	static struct csink_program programs[2];
	enum csink_gate_same same = CSINK_GATE_SAME_RUN;
	size_t i;

	csink_program_find(left[0], &programs[0]);
	csink_program_find(right[0], &programs[1]);
	if (!is_same_content(programs[0].path, programs[1].path))
		return CSINK_GATE_DIFFERENT;
	if (strcmp(programs[0].path, programs[1].path) && !is_plain_elf(programs[0].path))
		same = CSINK_GATE_SAME_CONTENTS;
	for (i = 1; left[i] && right[i]; i++) {
		if (!strcmp(left[i], right[i]))
			continue;
		if (!is_same_content(left[i], right[i]))
			return CSINK_GATE_DIFFERENT;
		same = CSINK_GATE_SAME_CONTENTS;
	}
	return left[i] || right[i] ? CSINK_GATE_DIFFERENT : same;
}
