/* See go_object.h. Runs in the attach command's one thread. */
#include "launcher/attach/go_object.h"

#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "preload/core/go_table.h"

#define MAX_TABLE (256U << 20)
#define MAX_LOOKED (64U << 20) /* bytes in which the table, or the code's address, is looked for */
#define WINDOW (1U << 20)

/* ---- where it is ---- */

/* By its header. Tables begin at multiples of 16. */
static bool look_through(const struct csink_object_file *file, const ElfW(Phdr) * segment, uint64_t *vaddr)
{
	CSINK_AUTO_FREE uint8_t *window = malloc(WINDOW);
	uint64_t size = CSINK_MIN(segment->p_filesz, (uint64_t)MAX_LOOKED);

	for (uint64_t from = -segment->p_vaddr & 15; window && from + 16 <= size; from += WINDOW) {
		uint64_t bytes = CSINK_MIN(size - from, (uint64_t)WINDOW);

		if (!csink_object_file_read(file, window, bytes, segment->p_offset + from))
			return false;
		for (uint64_t at = 0; at + 16 <= bytes; at += 16) {
			if (!csink_go_is_header(window + at, bytes - at))
				continue;
			*vaddr = segment->p_vaddr + from + at;
			return true;
		}
	}
	return false;
}

static bool find(const struct csink_object_file *file, uint64_t *vaddr, uint64_t *bytes)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	ElfW(Shdr) section;

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(names); i++) {
		if (!csink_object_file_section(file, names[i], &section))
			continue;
		*vaddr = section.sh_addr;
		*bytes = section.sh_size;
		return true;
	}
	if (file->head.e_shnum || file->fd < 0)
		return false;
	for (uint32_t i = 0; i < file->nr_phdr; i++) {
		const ElfW(Phdr) *segment = &file->phdr[i];

		if (segment->p_type != PT_LOAD || segment->p_flags & PF_X || !segment->p_filesz ||
		    segment->p_filesz > UINT64_MAX - segment->p_vaddr || !look_through(file, segment, vaddr))
			continue;
		*bytes = segment->p_filesz - (*vaddr - segment->p_vaddr);
		return true;
	}
	return false;
}

/* ---- opening it ---- */

/* With the segment of data beside it, where the record of the runtime is that has what the header may lack. */
static bool open_with_data(struct csink_go_table *table, const struct csink_object_file *file,
			   const struct csink_go_bytes *copied)
{
	struct csink_go_bytes parts[] = {*copied, {0}};
	const struct csink_go_program program = {parts, CSINK_ARRAY_SIZE(parts)};

	for (uint32_t i = 0; i < file->nr_phdr; i++) {
		const ElfW(Phdr) *segment = &file->phdr[i];
		CSINK_AUTO_FREE uint8_t *data = NULL;
		uint64_t size = CSINK_MIN(segment->p_filesz, (uint64_t)MAX_LOOKED);

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || !size)
			continue;
		data = malloc(size);
		if (!data || !csink_object_file_read(file, data, size, segment->p_offset))
			continue;
		parts[1] = (struct csink_go_bytes){segment->p_vaddr, data, size};
		if (csink_go_open(table, &program, copied->vaddr))
			return true;
	}
	return false;
}

uint64_t csink_go_object_make(struct csink_attach_object *object, const struct csink_object_file *file, uint64_t room)
{
	struct csink_go_bytes copied = {0};
	const ElfW(Phdr) * segment;
	struct csink_go_table *table;

	if (!find(file, &copied.vaddr, &copied.nr) || copied.nr > CSINK_MIN(room, (uint64_t)MAX_TABLE))
		return 0;
	segment = csink_object_file_segment(file, copied.vaddr);
	table = segment ? malloc(sizeof(*table) + copied.nr) : NULL;
	if (!table)
		return 0;
	copied.at = (uint8_t *)(table + 1);
	if (csink_object_file_read(file, table + 1, copied.nr, segment->p_offset + (copied.vaddr - segment->p_vaddr)) &&
	    (csink_go_open(table, &(struct csink_go_program){&copied, 1}, copied.vaddr) ||
	     open_with_data(table, file, &copied))) {
		object->go = table;
		return copied.nr;
	}
	free(table);
	return 0;
}

/* ---- rules ---- */

/* What Go's compiler says of a function: of this runtime's since Go 1.17, of which those before have the names alone.
 */
enum { IS_OUTERMOST = 1, SWITCHES = 2 };

static bool is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names != NULL;
}

bool csink_go_object_rule(const struct csink_attach_object *object, uint64_t pc, struct csink_go_rule *rule)
{
	/* What mcall calls does not return to it: it gives the thread to other goroutines. */
	static const char *const outermost[] = {"runtime.goexit", "runtime.rt0_go", "runtime.mstart", "runtime.mcall",
						NULL};
	static const char *const switches[] = {
		"runtime.systemstack", "runtime.morestack",   "runtime.asmcgocall", "runtime.nanotime1",
		"runtime.walltime1",   "runtime.cgocallback", "runtime.gogo",       NULL};
	static const char *const schedules[] = {"runtime.schedule", NULL};
	static const char *const interrupts[] = {"runtime.asyncPreempt", "runtime.sigpanic", NULL};
	struct csink_go_function function;
	const char *name;

	if (!csink_go_find(object->go, pc, &function))
		return false;
	name = csink_go_name(object->go, function.name);
	if (!name || strncmp(name, "runtime.", strlen("runtime.")))
		name = "";
	*rule = (struct csink_go_rule){.is_outermost = is_among(name, outermost),
				       .switches = is_among(name, switches),
				       .schedules = is_among(name, schedules),
				       .is_exact = is_among(name, interrupts)};
	if (object->go->form != CSINK_GO_1_16) {
		rule->is_outermost |= (function.flag & IS_OUTERMOST) != 0;
		rule->switches |= (function.flag & SWITCHES) != 0;
	}
	return csink_go_sp_offset(object->go, &function, pc, &rule->offset) || rule->is_outermost;
}
