/* A run under qemu-user with the plugin that counts blocks: see counting.h. In the launcher's one thread. */
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/gate/counting.h"
#include "launcher/gate/qemu_read.h"
#include "launcher/gate/series.h"
#include "launcher/session/find_program.h"

#define PLUGIN "qemu_count.so"
#define MAX_SCRIPTS 4 /* that interpret each other; Linux has the same limit */

/* How to start a command under qemu-user. */
struct start {
	char qemu[PATH_MAX];
	char program[PATH_MAX];                 /* an ELF file: the command's, or that of its interpreter */
	char before[MAX_SCRIPTS * 2][PATH_MAX]; /* the interpreter's arguments */
	uint32_t nr_before;
	bool is_script; /* the command's argv[0] is not the program's */
};

/* ---- finding it ---- */

/* qemu-user's name for a machine; NULL: not known. */
static const char *machine_of(const Elf64_Ehdr *header)
{
	static const struct {
		uint16_t machine;
		uint8_t class, data;
		const char *name;
	} machines[] = {
		{EM_X86_64, ELFCLASS64, ELFDATA2LSB, "x86_64"},   {EM_386, ELFCLASS32, ELFDATA2LSB, "i386"},
		{EM_AARCH64, ELFCLASS64, ELFDATA2LSB, "aarch64"}, {EM_ARM, ELFCLASS32, ELFDATA2LSB, "arm"},
		{EM_RISCV, ELFCLASS64, ELFDATA2LSB, "riscv64"},   {EM_PPC64, ELFCLASS64, ELFDATA2LSB, "ppc64le"},
		{EM_S390, ELFCLASS64, ELFDATA2MSB, "s390x"},
	};
	/* In the file's byte order, not in this machine's. */
	uint16_t machine =
		header->e_ident[EI_DATA] == ELFDATA2MSB ? be16toh(header->e_machine) : le16toh(header->e_machine);

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(machines); i++) {
		if (machine == machines[i].machine && header->e_ident[EI_CLASS] == machines[i].class &&
		    header->e_ident[EI_DATA] == machines[i].data)
			return machines[i].name;
	}
	return NULL;
}

/* "#!/bin/sh -e": the interpreter becomes the program, what follows its first argument. */
static int read_script(struct start *start, char *line, const char *script)
{
	char *interpreter = line + 2 + strspn(line + 2, " \t"), *argument;

	if (start->nr_before + 2 > CSINK_ARRAY_SIZE(start->before))
		return -ELOOP;
	interpreter[strcspn(interpreter, "\n")] = '\0';
	/* Linux leaves out blanks at the end. */
	for (size_t len = strlen(interpreter); len && strchr(" \t", interpreter[len - 1]); len--)
		interpreter[len - 1] = '\0';
	argument = interpreter + strcspn(interpreter, " \t");
	if (*argument)
		*argument++ = '\0';
	argument += strspn(argument, " \t");
	/* What was there before comes behind it. */
	memmove(start->before[*argument ? 2 : 1], start->before[0], start->nr_before * sizeof(start->before[0]));
	start->nr_before += *argument ? 2 : 1;
	if (*argument)
		snprintf(start->before[0], PATH_MAX, "%s", argument);
	snprintf(start->before[*argument ? 1 : 0], PATH_MAX, "%s", script);
	snprintf(start->program, PATH_MAX, "%s", interpreter);
	start->is_script = true;
	return 0;
}

/* Returns 0, or -ENOENT and why: a phrase. */
static int find_start(const char *command, struct start *start, char *why, size_t why_size)
{
	static struct csink_program program;
	const char *machine = NULL;
	char head[PATH_MAX], name[32];
	ssize_t got;

	memset(start, 0, sizeof(*start));
	if (csink_program_find(command, &program))
		return csink_why(-ENOENT, why, why_size, "%.200s cannot be executed", command);
	snprintf(start->program, sizeof(start->program), "%s", program.path);
	for (;;) {
		CSINK_AUTO_CLOSE int fd = csink_regular_open(start->program, 0, CSINK_REGULAR_ANY);

		got = fd < 0 ? -1 : pread(fd, head, sizeof(head) - 1, 0);
		if (got < 0)
			return csink_why(-ENOENT, why, why_size, "%.200s cannot be read", start->program);
		head[got] = '\0';
		if (strncmp(head, "#!", 2))
			break;
		snprintf(program.path, sizeof(program.path), "%s", start->program);
		if (read_script(start, head, program.path))
			return csink_why(-ENOENT, why, why_size, "%.200s is a script of too many scripts", command);
	}
	if (got >= (ssize_t)sizeof(Elf64_Ehdr) && !memcmp(head, ELFMAG, SELFMAG)) {
		Elf64_Ehdr header;

		memcpy(&header, head, sizeof(header));
		machine = machine_of(&header);
	}
	if (!machine)
		return csink_why(-ENOENT, why, why_size, "%.200s is for a machine that is not known", start->program);
	snprintf(name, sizeof(name), "qemu-%s", machine);
	if (csink_program_find(name, &program))
		return csink_why(-ENOENT, why, why_size, "there is no %s here (Debian's package: qemu-user)", name);
	snprintf(start->qemu, sizeof(start->qemu), "%s", program.path);
	return 0;
}

static int find_plugin(char plugin[PATH_MAX], char *why, size_t why_size)
{
	if (!csink_path_of_private(PLUGIN, plugin))
		return 0;
	return csink_why(-ENOENT, why, why_size, "%s/lib has no countersink/" PLUGIN " (incomplete installation?)",
			 plugin);
}

int csink_gate_qemu_find(const char *command, char *version, size_t version_size, char *plugin, char *why,
			 size_t why_size)
{
	static struct start start;

	if (find_start(command, &start, why, why_size) || find_plugin(plugin, why, why_size))
		return -ENOENT;
	csink_gate_ask_version(start.qemu, version, version_size);
	return 0;
}

/* ---- a run ---- */

/* A comma is doubled in a list of qemu's. */
static void append_listed(char *out, size_t size, const char *text)
{
	for (; *text; text++)
		csink_append(out, size, *text == ',' ? ",%c" : "%c", *text);
}

/* Returns a malloc'ed list whose words are in the arguments. */
static char **wrap(const struct start *start, char **argv, char *plugin)
{
	/* Addresses and random numbers that the simulated kernel hands out are the same in each run. */
	const char *const before[] = {
		start->qemu,   "-seed", "1", "-plugin", plugin, "-0", start->is_script ? start->program : argv[0],
		start->program};
	size_t nr = 0, n = 0;
	char **wrapped;

	while (argv[nr])
		nr++;
	wrapped = calloc(nr + CSINK_ARRAY_SIZE(before) + start->nr_before + 1, sizeof(*wrapped));
	for (size_t i = 0; wrapped && i < CSINK_ARRAY_SIZE(before); i++)
		wrapped[n++] = (char *)before[i];
	for (uint32_t i = 0; wrapped && i < start->nr_before; i++)
		wrapped[n++] = (char *)start->before[i];
	if (wrapped)
		memcpy(wrapped + n, argv + 1, (nr - 1) * sizeof(*argv));
	return wrapped;
}

int csink_gate_qemu_run(struct csink_gate_series *series, struct csink_gate_run *run, const char *directory,
			struct csink_gate_uncounted *uncounted)
{
	static struct start start;
	static char plugin[3 * PATH_MAX];
	char why[CSINK_WHY_BYTES];
	CSINK_AUTO_FREE char **argv = NULL;
	int err;

	if (find_start(series->plan->argv[run->side][0], &start, why, sizeof(why)))
		return csink_why(-ENOENT, series->error, sizeof(series->error), "qemu-user: %s", why);
	*plugin = '\0';
	append_listed(plugin, sizeof(plugin), series->plan->counting->plugin);
	csink_append(plugin, sizeof(plugin), ",dir=");
	append_listed(plugin, sizeof(plugin), directory);
	argv = wrap(&start, series->plan->argv[run->side], plugin);
	if (!argv)
		return -ENOMEM;
	err = csink_gate_run_under(series, argv, "qemu-user");
	if (err)
		return err;
	err = csink_gate_qemu_read(directory, &series->data->functions, &series->placement, run, uncounted, why,
				   sizeof(why));
	if (err)
		snprintf(series->error, sizeof(series->error), "what qemu-user counted cannot be read: %s", why);
	return err;
}
