/*
 * Code of an object that is mapped a second time: see code_copies.h. One thread at a time looks, others give up at
 * once; handlers of any thread read the list. A descriptor is open while /proc/self/maps is read.
 */
#include "preload/agent/unwind/code_copies.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/rawcall.h"
#include "preload/core/calls_off.h"

enum {
	MAX_COPIES = 32,
	MAX_PHDRS = 32,
	NR_DENSE_POLLS = 4,  /* the first polls, which all look; then each that is a power of two */
	MAX_MAPS = 4 << 20,  /* bytes of /proc/self/maps */
	MAX_LINE = 512 + 80, /* of a module's path, and what is before it */
};

/*
 * Between start and end. start 0: there is none yet, nor in later slots; GONE: none any more. Stored by the thread that
 * looks, loaded by handlers of others.
 */
enum { GONE = 1 };
static struct copy {
	_Atomic uint64_t start, end;
	bool is_there;
} copies[MAX_COPIES];

static struct csink_module object;
/* Since a copy is wanted, and at least 1; 0: none is wanted, or one was found. */
static _Atomic uint32_t nr_polls;
static _Atomic uint32_t has_object, looking;

static bool (*enter)(void); /* see csink_code_copies_set_guard() */
static void (*leave)(void);

void csink_code_copies_set_guard(bool (*may_open)(void), void (*have_closed)(void))
{
	enter = may_open;
	leave = have_closed;
}

bool csink_code_copies_may_open(void)
{
	return enter && enter();
}

void csink_code_copies_have_closed(void)
{
	leave();
}

void csink_code_copies_begin(void)
{
	atomic_store(&nr_polls, 0);
	atomic_store(&has_object, 0);
	atomic_store(&looking, 0);
	memset(copies, 0, sizeof(copies));
}

void csink_code_copies_want(const struct csink_module *module)
{
	if (atomic_load(&has_object) && object.link_map != module->link_map)
		return;
	object = *module;
	atomic_store(&has_object, 1);
	atomic_store(&nr_polls, 1);
}

void csink_code_copies_leave(const struct csink_module *module)
{
	if (object.link_map != module->link_map)
		return;
	atomic_store(&has_object, 0);
	atomic_store(&nr_polls, 0);
}

bool csink_code_copies_have(uintptr_t pc)
{
	for (int i = 0; i < MAX_COPIES; i++) {
		uint64_t start = atomic_load_explicit(&copies[i].start, memory_order_relaxed);

		if (!start)
			break;
		/* Not by a difference: the end may be 0, while a copy comes or goes. */
		if (pc >= start && pc < atomic_load_explicit(&copies[i].end, memory_order_relaxed))
			return true;
	}
	return false;
}

/* ---- one mapping ------------------------------------------------------------------------------------------------- */

struct mapping {
	uint64_t start, end, offset;
	bool is_code;
	const char *path; /* ends with the line */
};

static uint64_t take_hex(const char **at, const char *end)
{
	uint64_t value = 0;

	for (; *at < end; ++*at) {
		char c = **at;

		if (c >= '0' && c <= '9')
			value = value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	*at += *at < end;
	return value;
}

/* start-end perms offset device inode path */
static struct mapping parse(const char *at, const char *end)
{
	struct mapping mapping = {.start = take_hex(&at, end), .end = take_hex(&at, end)};

	mapping.is_code = end - at > 5 && at[2] == 'x';
	at += CSINK_MIN(end - at, 5);
	mapping.offset = take_hex(&at, end);
	while (at < end && *at != '/')
		at++;
	mapping.path = at;
	return mapping;
}

/* The address that the object has for a place in its file, without the bias; UINT64_MAX: none. */
static uint64_t address_of(uint64_t offset)
{
	ElfW(Phdr) phdrs[MAX_PHDRS];
	uint32_t nr = CSINK_MIN(object.nr_phdr, (uint32_t)MAX_PHDRS);

	/* Not in place: the object may be unloaded by now, and its copy still there. */
	if (!csink_copy_by_call(phdrs, object.phdr, nr * sizeof(phdrs[0])))
		return UINT64_MAX;
	for (const ElfW(Phdr) *phdr = phdrs; phdr < phdrs + nr; phdr++) {
		if (phdr->p_type == PT_LOAD && phdr->p_flags & PF_X && offset - phdr->p_offset < phdr->p_filesz)
			return offset - phdr->p_offset + phdr->p_vaddr;
	}
	return UINT64_MAX;
}

/* As a module of the recording: the object again, elsewhere. */
static bool record(struct csink_recording *rec, struct csink_writer *writer, const struct mapping *mapping)
{
	const struct csink_rec_module *original = csink_recording_at(rec, object.entry);
	uint32_t bytes = (uint32_t)sizeof(*original) + original->path_len + 1u;
	struct csink_rec_module *entry;
	uint64_t address = address_of(mapping->offset);

	entry = address == UINT64_MAX ? NULL : csink_recording_reserve(rec, writer, bytes);
	if (!entry)
		return false;
	memcpy((char *)entry + sizeof(entry->head), (const char *)original + sizeof(entry->head),
	       bytes - sizeof(entry->head));
	entry->bias = mapping->start - address;
	entry->start = mapping->start;
	entry->end = mapping->end;
	entry->file_offset = mapping->offset;
	entry->load_ns = csink_monotonic_ns();
	entry->unload_ns = 0;
	csink_recording_commit(entry, bytes, CSINK_ENTRY_MODULE, 0);
	return true;
}

static bool is_copy(const struct csink_recording *rec, const struct mapping *mapping, const char *end)
{
	const struct csink_rec_module *original = csink_recording_at(rec, object.entry);

	return mapping->is_code && end - mapping->path == original->path_len &&
	       !memcmp(mapping->path, original->path, original->path_len) &&
	       mapping->start - object.start >= object.end - object.start;
}

static void take(struct csink_recording *rec, struct csink_writer *writer, const char *line, const char *end)
{
	struct mapping mapping = parse(line, end);
	struct copy *copy = NULL;

	if (!is_copy(rec, &mapping, end))
		return;
	for (int i = 0; i < MAX_COPIES; i++) {
		uint64_t start = atomic_load_explicit(&copies[i].start, memory_order_relaxed);

		if (start == mapping.start) {
			copies[i].is_there = true;
			return;
		}
		if (!copy && start <= GONE)
			copy = &copies[i];
	}
	if (!copy || !record(rec, writer, &mapping))
		return;
	copy->is_there = true;
	atomic_store_explicit(&copy->start, mapping.start, memory_order_relaxed);
	atomic_store_explicit(&copy->end, mapping.end, memory_order_relaxed);
	atomic_store(&nr_polls, 0);
}

/* ---- all mappings ------------------------------------------------------------------------------------------------ */

static void read_maps(struct csink_recording *rec, struct csink_writer *writer, int fd)
{
	char text[4096];
	uint32_t nr = 0, total = 0;
	long got;

	while (total < MAX_MAPS && (got = csink_rawcall(SYS_read, fd, text + nr, sizeof(text) - nr)) > 0) {
		uint32_t line = 0;

		total += (uint32_t)got;
		nr += (uint32_t)got;
		for (uint32_t i = 0; i < nr; i++) {
			if (text[i] != '\n')
				continue;
			take(rec, writer, text + line, text + i);
			line = i + 1;
		}
		nr -= line;
		/* No module has a line as long as this one: what follows of it is read as another one, and is none. */
		nr = nr > MAX_LINE ? 0 : nr;
		memmove(text, text + line, nr);
	}
}

static void look(struct csink_recording *rec, struct csink_writer *writer)
{
	int fd = (int)csink_rawcall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	for (int i = 0; i < MAX_COPIES; i++)
		copies[i].is_there = false;
	read_maps(rec, writer, fd);
	csink_rawcall(SYS_close, fd);
	for (int i = 0; i < MAX_COPIES; i++) {
		if (copies[i].is_there || !atomic_load_explicit(&copies[i].start, memory_order_relaxed))
			continue;
		atomic_store_explicit(&copies[i].end, 0, memory_order_relaxed);
		atomic_store_explicit(&copies[i].start, GONE, memory_order_relaxed);
	}
}

void csink_code_copies_look(struct csink_recording *rec, struct csink_writer *writer)
{
	if (!atomic_load(&has_object) ||
	    csink_calls_are_off(CSINK_CALLS_SCAN | CSINK_CALLS_LIFE | CSINK_CALLS_RIGHTS /* read */) ||
	    atomic_exchange_explicit(&looking, 1, memory_order_acquire))
		return;
	if (enter()) {
		look(rec, writer);
		leave();
	} else {
		atomic_store(&nr_polls, 1); /* later */
	}
	atomic_store_explicit(&looking, 0, memory_order_release);
}

/* The program may map its copy long after it starts (on a busy machine), or never: the looks get rarer. */
void csink_code_copies_poll(struct csink_recording *rec, struct csink_writer *writer, bool is_last)
{
	uint32_t nr = atomic_load_explicit(&nr_polls, memory_order_relaxed);

	if (CSINK_LIKELY(!nr))
		return;
	/* Fails if another thread has just found a copy, or polled. */
	if (atomic_compare_exchange_strong(&nr_polls, &nr, nr + 1) &&
	    (is_last || nr <= NR_DENSE_POLLS || !(nr & (nr - 1))))
		csink_code_copies_look(rec, writer);
}
