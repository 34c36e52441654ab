/*
 * The loader's link-map list, read from inside a signal handler.
 *
 * Another thread may be in dlopen or dlclose: nodes vanish while we walk. So every load goes through
 * process_vm_readv(2) on ourselves, which fails instead of faulting, and a walk counts only if r_state was
 * "consistent" before and after it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/unwind/find_object.h"
#include "preload/agent/unwind/go_frames.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/calls_off.h"
#include "preload/core/safe_load.h"

enum { MAX_OBJECTS = 4096, MAX_NAMESPACES = 16, MAX_PHDRS = 24 };

/* glibc >= 2.35; the loader's lists of further namespaces (dlmopen) hang from the first one. */
struct debug_extended {
	struct r_debug base;
	struct debug_extended *next;
};

static pid_t self;

/* No other thread can change the lists now: they can be read in place. */
static bool is_quiet;

bool csink_copy_by_call(void *to, const void *from, size_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
	long n;

	if (csink_calls_are_off(CSINK_CALLS_SCAN))
		return false;
	n = csink_rawcall(SYS_process_vm_readv, self, &local, 1UL, &remote, 1UL, 0UL);
	if (n == (long)bytes)
		return true;
	/* Refused (a seccomp filter, by whatever error): check, then copy. The window in between is as small as it can
	 * be made. */
	if (n >= 0 || n == -EFAULT || !csink_readable((uintptr_t)from, bytes))
		return false;
	memcpy(to, from, bytes);
	return true;
}

bool csink_module_copy(void *to, const void *from, size_t bytes)
{
	if (!is_quiet)
		return csink_copy_by_call(to, from, bytes);
	memcpy(to, from, bytes);
	return true;
}

static bool copy_string(char *to, size_t size, const char *from)
{
	size_t done = 0;

	if (is_quiet) {
		done = CSINK_MIN(strlen(from), size - 1);
		memcpy(to, from, done);
		to[done] = 0;
		return true;
	}

	/* In pieces that do not cross a page: the string may end just before memory that is not there. */
	while (done < size) {
		size_t piece = CSINK_MIN(256 - ((uintptr_t)(from + done) & 255), size - done);

		if (!csink_module_copy(to + done, from + done, piece))
			return false;
		if (memchr(to + done, 0, piece))
			return true;
		done += piece;
	}
	to[size - 1] = 0;
	return true;
}

/* The build id, and the mark of Go. */
static void read_notes(struct csink_module_info *info, const ElfW(Phdr) * phdr)
{
	uint64_t at = info->module.bias + phdr->p_vaddr, end = at + CSINK_MIN(phdr->p_memsz, (uint64_t)65536);
	uint64_t align = phdr->p_align == 8 ? 8 : 4;

	while (at + sizeof(ElfW(Nhdr)) + 4 <= end) {
		struct {
			ElfW(Nhdr) head;
			char owner[4];
		} note;
		uint64_t desc;

		if (!csink_module_copy(&note, (void *)at, sizeof(note)))
			return;
		desc = at + sizeof(note.head) + ((note.head.n_namesz + align - 1) & ~(align - 1));
		if (note.head.n_namesz == 4 && !memcmp(note.owner, "Go", 3))
			info->is_go = true;
		if (!info->build_id_len && note.head.n_type == NT_GNU_BUILD_ID && note.head.n_namesz == 4 &&
		    note.head.n_descsz <= sizeof(info->build_id) && !memcmp(note.owner, "GNU", 4) &&
		    csink_module_copy(info->build_id, (void *)desc, note.head.n_descsz))
			info->build_id_len = (uint8_t)note.head.n_descsz;
		at = desc + ((note.head.n_descsz + align - 1) & ~(align - 1));
	}
}

/* Take what matters from program headers. False if no executable segment is among them. */
static bool read_segments(struct csink_module_info *info)
{
	struct csink_module *module = &info->module;
	ElfW(Phdr) phdrs[MAX_PHDRS];
	uint32_t nr = CSINK_MIN(module->nr_phdr, (uint32_t)MAX_PHDRS);
	bool found = false;

	if (!csink_module_copy(phdrs, module->phdr, nr * sizeof(phdrs[0])))
		return false;
	for (const ElfW(Phdr) *phdr = phdrs; phdr < phdrs + nr; phdr++) {
		if (phdr->p_type == PT_GNU_EH_FRAME)
			module->eh_frame = module->bias + phdr->p_vaddr;
		if (phdr->p_type == PT_NOTE)
			read_notes(info, phdr);
		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		if (!found) {
			module->start = module->bias + phdr->p_vaddr;
			info->file_offset = phdr->p_offset;
		}
		module->end = module->bias + phdr->p_vaddr + phdr->p_memsz;
		found = true;
	}
	for (const ElfW(Phdr) *phdr = phdrs; phdr < phdrs + nr; phdr++) {
		uint64_t before = module->eh_frame - module->bias - phdr->p_vaddr;

		if (phdr->p_type == PT_LOAD && phdr->p_flags & PF_R && before < phdr->p_filesz) {
			module->tables_before = (uint32_t)before;
			module->tables_behind = (uint32_t)(phdr->p_filesz - before);
		}
	}
	return found;
}

/* What the program may have protected: by a call, unless there may be none. */
static bool copy_headers(void *to, const void *from, size_t bytes)
{
	return csink_calls_are_off(CSINK_CALLS_SCAN) ? csink_module_copy(to, from, bytes)
						     : csink_copy_by_call(to, from, bytes);
}

/*
 * Where the ELF header of an object lies, and so its program headers. glibc 2.36 for arm64 has a place behind it for
 * the start of the loader itself, whose header is where its addresses begin.
 */
static bool find_headers(struct csink_module *module)
{
	uintptr_t base = module->bias;
	ElfW(Ehdr) ehdr = {0};

#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;

	if (csink_find_object && csink_find_object((void *)module->dynamic, &found) == 0)
		base = (uintptr_t)found.dlfo_map_start;
#endif
	if ((!copy_headers(&ehdr, (void *)base, sizeof(ehdr)) || memcmp(ehdr.e_ident, ELFMAG, SELFMAG)) &&
	    (!csink_copy_by_call(&ehdr, (void *)(base = module->bias), sizeof(ehdr)) ||
	     memcmp(ehdr.e_ident, ELFMAG, SELFMAG)))
		return false;
	module->phdr = (const ElfW(Phdr) *)(base + ehdr.e_phoff);
	module->nr_phdr = ehdr.e_phnum;
	return ehdr.e_phentsize == sizeof(ElfW(Phdr));
}

void csink_module_program(char *path, size_t size)
{
	long n = csink_rawcall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, size - 1);
	const char *given = (const char *)getauxval(AT_EXECFN);

	path[n > 0 ? n : 0] = 0;
	if (n <= 0 && given && *given == '/' && strlen(given) < size)
		memcpy(path, given, strlen(given) + 1);
}

/*
 * The table is read where it is. An object that another thread is loading is not relocated yet, and is unmapped if that
 * fails: the loader adds it to those of _dl_find_object(3) when it is to stay. False: not yet, look again later.
 * Before glibc 2.35 that cannot be known: the table is left alone.
 */
static bool describe_go(struct csink_module_info *info)
{
	bool stays = info->is_program || is_quiet;

#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;

	if (!stays && csink_find_object) {
		if (csink_find_object((void *)info->module.dynamic, &found))
			return false;
		stays = true;
	}
#endif
	if (stays)
		csink_go_module_find(info, is_quiet);
	return true;
}

bool csink_module_describe(struct csink_module_info *info, const char *program)
{
	size_t length = 0;

	if (info->is_program) {
		/* The recording's header has it, and may have been overwritten: it need not end. */
		while (length < sizeof(info->path) && program[length])
			length++;
		if (length && length < sizeof(info->path))
			memcpy(info->path, program, length + 1);
		else
			csink_module_program(info->path, sizeof(info->path));
		info->module.phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR);
		info->module.nr_phdr = (uint32_t)getauxval(AT_PHNUM);
	} else if (!find_headers(&info->module)) {
		return false;
	} else if ((uintptr_t)info->module.phdr >> 12 == getauxval(AT_SYSINFO_EHDR) >> 12) {
		info->is_vdso = 1;
		memcpy(info->path, "[vdso]", sizeof("[vdso]")); /* no call of libc, whatever the optimiser does */
	}
	return read_segments(info) && (!info->is_go || describe_go(info));
}

/* What the link map itself says. */
static bool read_link(struct csink_module_info *info, const struct link_map *at, const struct link_map *copy,
		      bool is_program)
{
	memset(info, 0, offsetof(struct csink_module_info, path) + 1);
	info->module.bias = copy->l_addr;
	info->module.link_map = at;
	info->module.dynamic = copy->l_ld;
	info->is_program = is_program;
	return copy_string(info->path, sizeof(info->path), copy->l_name);
}

static int scan_namespace(const struct r_debug *debug, bool base, bool (*each)(struct csink_module_info *, void *),
			  void *data)
{
	const struct link_map *at = debug->r_map;
	bool is_program = base;

	if (debug->r_state != RT_CONSISTENT)
		return -EAGAIN;
	for (int i = 0; at && i < MAX_OBJECTS; i++) {
		struct csink_module_info info;
		struct link_map copy;

		if (!csink_module_copy(&copy, at, sizeof(copy)))
			return -EAGAIN;
		if (read_link(&info, at, &copy, is_program) && !each(&info, data))
			break;
		is_program = false;
		at = copy.l_next;
	}
	return 0;
}

/*
 * The loader's own list. A program that refers to _r_debug has a copy of it (R_*_COPY), and the symbol means that one
 * for us, too. It was copied while the loader was working, and its r_state keeps that value. Its first object is the
 * right one, whose DT_DEBUG, meant for debuggers, has the address of the list.
 */
static struct debug_extended *loaders_list(void)
{
	const struct link_map *program = _r_debug.r_map;

	for (const ElfW(Dyn) *dyn = program ? program->l_ld : NULL; dyn && dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_DEBUG && dyn->d_un.d_ptr)
			return (struct debug_extended *)dyn->d_un.d_ptr;
	}
	return (struct debug_extended *)&_r_debug;
}

/* The lists themselves are never freed. */
bool csink_modules_unloading(void)
{
	struct debug_extended *at = loaders_list();

	for (int i = 0; at && i < MAX_NAMESPACES; i++) {
		if (__atomic_load_n(&at->base.r_state, __ATOMIC_ACQUIRE) == RT_DELETE)
			return true;
		at = at->base.r_version < 2 ? NULL : at->next;
	}
	return false;
}

int csink_module_scan(bool quiet, bool (*each)(struct csink_module_info *info, void *data), void *data)
{
	struct debug_extended *at = loaders_list();
	int err = 0;
	char byte;

	self = getpid();
	/* The program's headers are read, and the name of the loader, which lies beside them. */
	is_quiet = quiet && (csink_calls_are_off(CSINK_CALLS_SCAN) ||
			     csink_copy_by_call(&byte, (const void *)getauxval(AT_PHDR), 1));
	for (int i = 0; at && !err && i < MAX_NAMESPACES; i++) {
		struct debug_extended copy;

		if (!csink_module_copy(&copy, at, sizeof(struct r_debug)))
			return -EAGAIN;
		err = scan_namespace(&copy.base, i == 0, each, data);
		/* The list must not have begun to change while we walked it. */
		if (!err && __atomic_load_n(&at->base.r_state, __ATOMIC_ACQUIRE) != RT_CONSISTENT)
			err = -EAGAIN;
		if (copy.base.r_version < 2 || !csink_module_copy(&copy, at, sizeof(copy)))
			break;
		at = copy.next;
	}
	return err;
}
