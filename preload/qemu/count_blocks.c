/*
 * A plugin for qemu-user: counts how often each translated block of a program is executed, for `countersink gate
 * --deterministic`. What it writes is described in include/internal/simulated_counts.h.
 *
 * When qemu translates a block, its place in its file and the sizes of its instructions are noted, and an addition to a
 * counter of its own is added to the translated code. The counters are in a mapped file: what a process counted is
 * there whatever ends it, a signal or an execve included. A process that is forked counts in a file of its own.
 *
 * It runs in qemu's process, on the threads of the simulated program, where malloc is qemu's own. Translation is
 * serialised by qemu; lock_ is held because versions differ in that, and across fork. File descriptors are shared with
 * the program: none is kept open.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "include/internal/simulated_counts.h"
#include "preload/qemu/plugin_api.h"

#define EXPORT __attribute__((visibility("default")))
#define CHUNK (1U << 16) /* of a file, that is allocated at once: a full file system is found here, not by a SIGBUS */

EXPORT int qemu_plugin_version = 1;

/* A part of the simulated program's memory that has a file behind it, at its place in qemu. */
struct mapping {
	uintptr_t start, end;
	uint64_t offset;
	char *path;    /* malloc'ed */
	uint32_t file; /* its text, once a block is in it */
	bool has_file;
};

/* System calls by number: those after which other code may lie at an address, and those that execute a program. */
static const struct target {
	const char *name;
	int execve, execveat, maps[5]; /* mmap, munmap, mremap, mprotect; 0 ends */
	bool is_x86;
} targets[] = {
	{"x86_64", 59, 322, {9, 11, 25, 10}, true},         {"i386", 11, 358, {192, 90, 91, 163, 125}, true},
	{"aarch64", 221, 281, {222, 215, 216, 226}, false}, {"arm", 11, 387, {192, 91, 163, 125}, false},
	{"riscv64", 221, 281, {222, 215, 216, 226}, false}, {"ppc64le", 11, 362, {90, 91, 163, 125}, false},
	{"s390x", 11, 354, {90, 91, 163, 125}, false},
};

static pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
static const struct target *target_;
static char directory_[PATH_MAX - 32];
static char *blocks_file_;        /* the mapped files */
static uint64_t *counts_;         /* this process's */
static uint64_t blocks_ready_[3]; /* bytes of the text, blocks and sizes that this process knows to be allocated */
static uint64_t counts_ready_;    /* likewise of its counts */
static bool counts_lost_;         /* they are in no file */
static struct mapping *mappings_;
static size_t nr_mappings_, cap_mappings_;
static bool is_stale_ = true; /* mappings_ */
static uint64_t guest_base_;  /* what is added to an address of the program for its place in qemu */
static bool has_base_;
static uint32_t program_ = UINT32_MAX; /* the text of the program that is being executed; one thread at a time */
static uint32_t *table_;               /* blocks by place: index + 1 */
static uint32_t table_mask_, nr_in_table_;

static struct csink_sim_head *head(void)
{
	return (struct csink_sim_head *)blocks_file_;
}

static struct csink_sim_block *block_of(uint32_t index)
{
	return (struct csink_sim_block *)(blocks_file_ + CSINK_SIM_BLOCKS_AT) + index;
}

/* ---- the files ---- */

static int open_file(const char *name, bool create)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory_, name);
	return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0), 0600);
}

static void name_counts(char *name, size_t size)
{
	snprintf(name, size, CSINK_SIM_COUNTS "%d", (int)getpid());
}

/* Allocate a file's bytes up to end. ready: how far they are. */
static bool ensure(const char *name, uint64_t base, uint64_t end, uint64_t limit, uint64_t *ready)
{
	uint64_t want = (end + CHUNK - 1) / CHUNK * CHUNK;
	int fd, err;

	if (end <= *ready)
		return true;
	if (want > limit)
		want = limit;
	fd = open_file(name, false);
	if (fd < 0)
		return false;
	err = fallocate(fd, 0, (off_t)(base + *ready), (off_t)(want - *ready));
	if (err && errno == EOPNOTSUPP)
		err = 0;
	close(fd);
	if (!err)
		*ready = want;
	return !err;
}

static bool ensure_counts(uint64_t end)
{
	char name[32];

	name_counts(name, sizeof(name));
	return counts_lost_ || ensure(name, 0, end, CSINK_SIM_COUNTS_BYTES, &counts_ready_);
}

static void *map(int fd, void *at, uint64_t bytes)
{
	return mmap(at, bytes, PROT_READ | PROT_WRITE,
		    (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE | (at ? MAP_FIXED : 0), fd, 0);
}

/* Map this process's counts, at the place of its parent's if there are any: translated code has their addresses. */
static bool open_counts(void)
{
	char name[32];
	void *at;
	int fd;

	name_counts(name, sizeof(name));
	fd = open_file(name, true);
	counts_ready_ = 0;
	counts_lost_ = fd < 0 || ftruncate(fd, CSINK_SIM_COUNTS_BYTES);
	at = map(counts_lost_ ? -1 : fd, counts_, CSINK_SIM_COUNTS_BYTES);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		return false;
	counts_ = at;
	return true;
}

static bool open_blocks(void)
{
	int fd = open_file(CSINK_SIM_BLOCKS, true);
	void *at = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, CSINK_SIM_BYTES) && !fallocate(fd, 0, 0, CSINK_SIM_TEXT_AT))
		at = map(fd, NULL, CSINK_SIM_BYTES);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		return false;
	blocks_file_ = at;
	head()->version = CSINK_SIM_VERSION;
	head()->magic = CSINK_SIM_MAGIC;
	return true;
}

/* Returns where the text is, or UINT32_MAX. */
static uint32_t add_text(enum csink_sim_text kind, const char *text)
{
	size_t bytes = strlen(text) + 2;
	uint32_t at = __atomic_fetch_add(&head()->nr_text, (uint32_t)bytes, __ATOMIC_RELAXED);
	char *out = blocks_file_ + CSINK_SIM_TEXT_AT + at;

	if (at + bytes > CSINK_SIM_MAX_TEXT ||
	    !ensure(CSINK_SIM_BLOCKS, CSINK_SIM_TEXT_AT, at + bytes, CSINK_SIM_MAX_TEXT, &blocks_ready_[0]))
		return UINT32_MAX;
	memcpy(out + 1, text, bytes - 1);
	out[0] = (char)kind;
	return at;
}

/* ---- what is mapped where ---- */

/* The text of a file; one that is there already is used again. */
static uint32_t file_of(struct mapping *mapping)
{
	uint32_t used = __atomic_load_n(&head()->nr_text, __ATOMIC_RELAXED);

	for (uint32_t at = 0; !mapping->has_file && at < used && at < blocks_ready_[0];) {
		const char *known = blocks_file_ + CSINK_SIM_TEXT_AT + at;

		mapping->has_file = *known == CSINK_SIM_FILE && !strcmp(known + 1, mapping->path);
		mapping->file = at;
		at += (uint32_t)strlen(known + 1) + 2;
	}
	if (!mapping->has_file)
		mapping->file = add_text(CSINK_SIM_FILE, mapping->path);
	mapping->has_file = true;
	return mapping->file;
}

/* One line of /proc/self/maps. */
static void add_mapping(const char *line)
{
	unsigned long start, end, offset;
	struct mapping *grown;
	int at = 0;

	if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &start, &end, &offset, &at) < 3 || !at || line[at] != '/')
		return;
	if (nr_mappings_ == cap_mappings_) {
		grown = realloc(mappings_, (cap_mappings_ * 2 + 64) * sizeof(*mappings_));
		if (!grown)
			return;
		mappings_ = grown;
		cap_mappings_ = cap_mappings_ * 2 + 64;
	}
	mappings_[nr_mappings_] = (struct mapping){.start = start, .end = end, .offset = offset};
	mappings_[nr_mappings_].path = strdup(line + at);
	nr_mappings_ += mappings_[nr_mappings_].path != NULL;
}

static void read_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;

	__atomic_store_n(&is_stale_, false, __ATOMIC_RELAXED);
	while (nr_mappings_)
		free(mappings_[--nr_mappings_].path);
	while (f && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		add_mapping(line);
	}
	free(line);
	if (f)
		fclose(f);
}

static struct mapping *find_mapping(uintptr_t address)
{
	if (__atomic_load_n(&is_stale_, __ATOMIC_RELAXED))
		read_mappings();
	for (size_t low = 0, high = nr_mappings_; low < high;) {
		size_t middle = (low + high) / 2;

		if (address < mappings_[middle].start)
			high = middle;
		else if (address >= mappings_[middle].end)
			low = middle + 1;
		else
			return &mappings_[middle];
	}
	return NULL;
}

/* ---- blocks ---- */

static uint32_t hash(uint32_t file, uint64_t offset, uint32_t nr)
{
	return (uint32_t)(((offset ^ (uint64_t)file << 40 ^ (uint64_t)nr << 32) * 0x9e3779b97f4a7c15ULL) >> 32);
}

static uint32_t *slot_of(uint32_t *table, uint32_t mask, const struct csink_sim_block *block)
{
	uint32_t at = hash(block->file, block->offset, block->nr) & mask;

	for (; table[at]; at = (at + 1) & mask) {
		const struct csink_sim_block *other = block_of(table[at] - 1);

		if (other->offset == block->offset && other->file == block->file && other->nr == block->nr)
			break;
	}
	return &table[at];
}

static bool grow_table(void)
{
	uint32_t mask = table_ ? table_mask_ * 2 + 1 : 4095;
	uint32_t *grown = calloc((size_t)mask + 1, sizeof(*grown));

	if (!grown)
		return false;
	for (uint32_t i = 0; table_ && i <= table_mask_; i++) {
		if (table_[i])
			*slot_of(grown, mask, block_of(table_[i] - 1)) = table_[i];
	}
	free(table_);
	table_ = grown;
	table_mask_ = mask;
	return true;
}

/* Where a block goes on directly: the target of a call or jump with an offset of 32 bits. What is called through a
 * pointer or a table is not known. */
static uint64_t target_of(const struct qemu_plugin_insn *last, uint64_t offset)
{
	const uint8_t *bytes = qemu_plugin_insn_data(last);
	int32_t distance;

	if (!target_->is_x86 || qemu_plugin_insn_size(last) != 5 || (bytes[0] != 0xe8 && bytes[0] != 0xe9))
		return 0;
	memcpy(&distance, bytes + 1, sizeof(distance));
	return offset + 5 + (uint64_t)(int64_t)distance;
}

/* Returns the index, or UINT32_MAX: there is no room. */
static uint32_t write_block(const struct qemu_plugin_tb *tb, struct csink_sim_block *block)
{
	uint32_t index = __atomic_fetch_add(&head()->nr_blocks, 1, __ATOMIC_RELAXED), nr = block->nr;
	uint64_t offset = block->offset;

	block->sizes = __atomic_fetch_add(&head()->nr_sizes, nr, __ATOMIC_RELAXED);
	if (index >= CSINK_SIM_MAX_BLOCKS || (uint64_t)block->sizes + nr > CSINK_SIM_MAX_SIZES ||
	    !ensure(CSINK_SIM_BLOCKS, CSINK_SIM_BLOCKS_AT, (index + 1ULL) * sizeof(*block),
		    CSINK_SIM_MAX_BLOCKS * (uint64_t)sizeof(*block), &blocks_ready_[1]) ||
	    !ensure(CSINK_SIM_BLOCKS, CSINK_SIM_SIZES_AT, (uint64_t)block->sizes + nr, CSINK_SIM_MAX_SIZES,
		    &blocks_ready_[2]) ||
	    !ensure_counts((index + 1ULL) * sizeof(*counts_)))
		return UINT32_MAX;
	for (uint32_t i = 0; i < nr; i++) {
		const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		size_t size = qemu_plugin_insn_size(insn);

		((uint8_t *)blocks_file_ + CSINK_SIM_SIZES_AT)[block->sizes + i] = (uint8_t)size;
		if (i + 1 == nr)
			block->target = target_of(insn, offset);
		offset += size;
	}
	*block_of(index) = *block;
	return index;
}

/* The counter of a block; NULL: there is none. */
static uint64_t *counter_of(const struct qemu_plugin_tb *tb)
{
	const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
	uintptr_t place = (uintptr_t)qemu_plugin_insn_haddr(first);
	struct mapping *mapping;
	struct csink_sim_block block = {.file = UINT32_MAX, .nr = (uint32_t)qemu_plugin_tb_n_insns(tb)};
	uint32_t index, *slot;

	guest_base_ = place - qemu_plugin_insn_vaddr(first);
	has_base_ = true;
	mapping = find_mapping(place);
	block.offset = mapping ? place - mapping->start + mapping->offset : place;
	block.file = mapping ? file_of(mapping) : UINT32_MAX;
	if (!block.nr || (nr_in_table_ * 2 >= table_mask_ && !grow_table()))
		return NULL;
	slot = slot_of(table_, table_mask_, &block);
	if (*slot)
		return &counts_[*slot - 1];
	index = write_block(tb, &block);
	if (index == UINT32_MAX)
		return NULL;
	*slot = index + 1;
	nr_in_table_++;
	return &counts_[index];
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	uint64_t *counter;

	(void)id;
	pthread_mutex_lock(&lock_);
	counter = counter_of(tb);
	pthread_mutex_unlock(&lock_);
	if (counter)
		qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
	else
		__atomic_fetch_add(&head()->nr_lost_blocks, 1, __ATOMIC_RELAXED);
}

/* ---- what the program does ---- */

/* The text at an address of the program; "?" where it cannot be read. A read of qemu's own memory by the kernel fails
 * where a load would be a fault. */
static void read_text(uint64_t address, char *out, size_t size)
{
	for (size_t i = 0; i + 1 < size; i++) {
		struct iovec to = {out + i, 1}, from = {(void *)(uintptr_t)(address + guest_base_ + i), 1};

		out[i + 1] = '\0';
		if (!has_base_ || process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1) {
			strcpy(out, "?");
			return;
		}
		if (!out[i])
			return;
	}
}

static void note_program(uint64_t address)
{
	char path[PATH_MAX];

	read_text(address, path, sizeof(path));
	pthread_mutex_lock(&lock_);
	program_ = add_text(CSINK_SIM_PROGRAM, path);
	pthread_mutex_unlock(&lock_);
	if (program_ == UINT32_MAX)
		__atomic_fetch_add(&head()->nr_lost_programs, 1, __ATOMIC_RELAXED);
}

static void on_syscall(qemu_plugin_id_t id, unsigned int vcpu, int64_t nr, uint64_t a1, uint64_t a2, uint64_t a3,
		       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	(void)id, (void)vcpu, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
	__atomic_fetch_add(&head()->nr_calls, 1, __ATOMIC_RELAXED);
	if (nr == target_->execve || nr == target_->execveat)
		note_program(nr == target_->execve ? a1 : a2);
}

static void on_syscall_end(qemu_plugin_id_t id, unsigned int vcpu, int64_t nr, int64_t ret)
{
	(void)id, (void)vcpu, (void)ret;
	/* An execve that returns has failed. */
	if ((nr == target_->execve || nr == target_->execveat) && program_ != UINT32_MAX) {
		blocks_file_[CSINK_SIM_TEXT_AT + program_] = CSINK_SIM_NOTHING;
		program_ = UINT32_MAX;
		return;
	}
	for (size_t i = 0; i < sizeof(target_->maps) / sizeof(target_->maps[0]); i++) {
		if (target_->maps[i] && nr == target_->maps[i])
			__atomic_store_n(&is_stale_, true, __ATOMIC_RELAXED); /* read under lock_ */
	}
}

static void on_thread(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	if (vcpu > 0)
		head()->has_threads = 1;
}

/* ---- forks ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock_);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock_);
}

static void in_child(void)
{
	/* Without a mapping of its own it counts in its parent's, where additions of both get lost. */
	bool is_counted = open_counts() && !counts_lost_;

	if (is_counted && !ensure_counts(head()->nr_blocks * (uint64_t)sizeof(*counts_))) {
		/* A count in a file that cannot be allocated would end the process by a SIGBUS. */
		counts_lost_ = true;
		map(-1, counts_, CSINK_SIM_COUNTS_BYTES);
		is_counted = false;
	}
	if (!is_counted)
		__atomic_fetch_add(&head()->nr_lost_processes, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock_);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_plugin_info *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "dir=", 4) ||
	    snprintf(directory_, sizeof(directory_), "%s", argv[0] + 4) >= (int)sizeof(directory_))
		return -1;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		if (!strcmp(targets[i].name, info->target_name))
			target_ = &targets[i];
	}
	if (!target_ || !open_blocks() || !open_counts() || counts_lost_ ||
	    pthread_atfork(before_fork, after_fork, in_child))
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_vcpu_init_cb(id, on_thread);
	qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_end);
	return 0;
}
