/*
 * The snapshot of loaded objects: see modules.h. Refreshed by one thread at a time, usually in its handler; read by the
 * handlers of all threads. No lock, no loader call.
 */
#include "preload/agent/unwind/modules.h"

#include <errno.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "preload/agent/unwind/find_object.h"
#include "preload/core/calls_off.h"
#include "preload/core/private_memory.h"

/*
 * Two buffers. One is current; a refresh fills the other, if no reader is left in it, and makes it current. Readers
 * mark the buffer that they use.
 */
struct snapshot {
	_Atomic uint32_t readers;
	uint32_t nr, room;
	struct csink_module *modules; /* sorted by start; private memory of its own */
};

static struct snapshot buffers[2];
static _Atomic uint32_t current;
static _Atomic uint32_t generation;
static _Atomic uint32_t unloads;
static _Atomic uint64_t epoch_ns; /* just after the latest unload that was seen */
static _Atomic uint32_t refreshing;
static csink_modules_callback callback;

/*
 * Objects of the loader that the snapshot has not, though it was refreshed for them: their marks, 0: none. Written by
 * any thread that refreshed, read by handlers. A mark that is lost, or outlives its object, costs a refresh more, or
 * leaves one to housekeeping.
 */
enum { NR_MISSED = 8 };
static _Atomic uint32_t missed[NR_MISSED];

static struct snapshot *snapshot_get(void)
{
	for (;;) {
		uint32_t i = atomic_load_explicit(&current, memory_order_acquire);

		atomic_fetch_add_explicit(&buffers[i].readers, 1, memory_order_seq_cst);
		/* Still current: a refresh that starts now sees us. */
		if (atomic_load_explicit(&current, memory_order_seq_cst) == i)
			return &buffers[i];
		atomic_fetch_sub_explicit(&buffers[i].readers, 1, memory_order_release);
	}
}

static void snapshot_put(struct snapshot *snap)
{
	atomic_fetch_sub_explicit(&snap->readers, 1, memory_order_release);
}

void csink_modules_set_callback(csink_modules_callback to)
{
	callback = to;
}

uint32_t csink_modules_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_acquire);
}

/* The last module that starts at or below pc, or NULL. */
static const struct csink_module *search(const struct snapshot *snap, uint64_t pc)
{
	uint32_t low = 0, high = snap->nr;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (snap->modules[mid].start <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &snap->modules[low - 1] : NULL;
}

bool csink_modules_find(uint64_t pc, struct csink_module *out)
{
	struct snapshot *snap = snapshot_get();
	const struct csink_module *module = search(snap, pc);
	bool found = module && pc < module->end;

	if (found)
		*out = *module;
	snapshot_put(snap);
	return found;
}

bool csink_modules_at(uint32_t index, struct csink_module *out)
{
	struct snapshot *snap = snapshot_get();
	bool found = index < snap->nr;

	if (found)
		*out = snap->modules[index];
	snapshot_put(snap);
	return found;
}

void csink_modules_code_changed(bool gone)
{
	if (gone)
		atomic_fetch_add_explicit(&unloads, 1, memory_order_release);
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

uint32_t csink_modules_unloads(void)
{
	return atomic_load_explicit(&unloads, memory_order_acquire);
}

uint64_t csink_modules_epoch_ns(void)
{
	return atomic_load_explicit(&epoch_ns, memory_order_relaxed);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/* Never 0. Link maps are far larger than the bits that are left out. */
static uint32_t mark_of(const struct dl_find_object *found)
{
	return (uint32_t)((uintptr_t)found->dlfo_link_map >> 4) | 1;
}

static bool was_missed(uint32_t mark)
{
	uint32_t i = 0;

	while (i < NR_MISSED && atomic_load_explicit(&missed[i], memory_order_relaxed) != mark)
		i++;
	return i < NR_MISSED;
}
#endif

bool csink_modules_current(uint64_t pc, struct csink_module_memo *memo)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;
	struct csink_module module;

	if (!csink_find_object || csink_find_object((void *)pc, &found) < 0)
		return true;
	if (pc - memo->start < memo->end - memo->start && memo->eh_frame == (uintptr_t)found.dlfo_eh_frame)
		return true;
	if (csink_modules_find(pc, &module) && module.eh_frame == (uintptr_t)found.dlfo_eh_frame) {
		*memo = (struct csink_module_memo){module.start, module.end, module.eh_frame};
		return true;
	}
	if (!was_missed(mark_of(&found)))
		return false;
	*memo = (struct csink_module_memo){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end,
					   (uintptr_t)found.dlfo_eh_frame};
#else
	(void)pc;
	(void)memo;
#endif
	return true;
}

/* ---- refreshing -------------------------------------------------------------------------------------------------- */

struct refresh {
	struct csink_recording *rec;
	struct csink_writer *writer;
	uint64_t now_ns;
	const struct snapshot *old;
	struct snapshot *new;
	bool changed, failed;
};

static bool grow(struct snapshot *snap)
{
	uint32_t room = CSINK_MAX(16u, snap->room * 2);
	struct csink_module *modules = csink_private_get(room * sizeof(*modules));

	if (!modules)
		return false;
	/* The old ones stay behind: less than the new ones. */
	if (snap->modules)
		memcpy(modules, snap->modules, snap->nr * sizeof(*modules));
	snap->modules = modules;
	snap->room = room;
	return true;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	while (*name)
		hash = (hash ^ (unsigned char)*name++) * 16777619u;
	return hash;
}

static const struct csink_module *known(const struct refresh *r, const struct csink_module *now)
{
	for (uint32_t i = 0; i < r->old->nr; i++) {
		const struct csink_module *module = &r->old->modules[i];

		if (module->link_map == now->link_map && module->bias == now->bias && module->dynamic == now->dynamic &&
		    module->name_hash == now->name_hash)
			return module;
	}
	return NULL;
}

static bool record(struct refresh *r, struct csink_module_info *info)
{
	uint32_t path_len = (uint32_t)strlen(info->path);
	uint32_t bytes = (uint32_t)sizeof(struct csink_rec_module) + path_len + 1;
	struct csink_rec_module *entry = csink_recording_reserve(r->rec, r->writer, bytes);

	if (!entry)
		return false;
	entry->bias = info->module.bias;
	entry->start = info->module.start;
	entry->end = info->module.end;
	entry->file_offset = info->file_offset;
	entry->load_ns = r->now_ns;
	memcpy(entry->build_id, info->build_id, sizeof(entry->build_id));
	entry->build_id_len = info->build_id_len;
	entry->is_vdso = info->is_vdso;
	entry->path_len = (uint16_t)path_len;
	memcpy(entry->path, info->path, path_len + 1);
	csink_recording_commit(entry, bytes, CSINK_ENTRY_MODULE, 0);
	info->module.entry = csink_recording_ref(r->rec, entry);
	return true;
}

static __attribute__((cold)) bool add_module(struct csink_module_info *info, void *data)
{
	struct refresh *r = data;
	const struct csink_module *before;
	uint32_t at;

	info->module.name_hash = hash_name(info->path);
	before = known(r, &info->module);
	if (before) {
		info->module = *before;
	} else {
		if (!csink_module_describe(info, r->rec->header->exe))
			return true;
		r->changed = true;
		if (!record(r, info)) {
			r->failed = true;
			return false;
		}
		if (callback)
			callback(&info->module, true, r->rec, r->writer);
	}
	if (r->new->nr == r->new->room && !grow(r->new)) {
		r->failed = true;
		return false;
	}
	for (at = r->new->nr++; at && r->new->modules[at - 1].start > info->module.start; at--)
		r->new->modules[at] = r->new->modules[at - 1];
	r->new->modules[at] = info->module;
	return true;
}

static void mark_unloaded(struct refresh *r)
{
	for (uint32_t i = 0; i < r->old->nr; i++) {
		const struct csink_module *module = &r->old->modules[i];
		const struct csink_module *now = search(r->new, module->start);

		if (now && now->entry == module->entry)
			continue;
		atomic_fetch_add_explicit(&unloads, 1, memory_order_release);
		if (callback)
			callback(module, false, r->rec, r->writer);
		((struct csink_rec_module *)csink_recording_at(r->rec, module->entry))->unload_ns = r->now_ns;
		atomic_store_explicit(&epoch_ns, r->now_ns + 1, memory_order_relaxed);
		r->changed = true;
	}
}

static int refresh(struct csink_recording *rec, struct csink_writer *writer, uint64_t now_ns, bool quiet)
{
	struct refresh r = {.rec = rec, .writer = writer, .now_ns = now_ns};
	int result = -EAGAIN;
	uint32_t now;

	if (atomic_exchange_explicit(&refreshing, 1, memory_order_acquire))
		return -EAGAIN;
	/* Not before: another thread's refresh may just have ended, and what it filled is in use. */
	now = atomic_load_explicit(&current, memory_order_relaxed);
	r.old = &buffers[now];
	r.new = &buffers[!now];
	if (atomic_load_explicit(&r.new->readers, memory_order_seq_cst) == 0) {
		r.new->nr = 0;
		result = csink_module_scan(quiet, add_module, &r);
		if (r.failed)
			result = -ENOSPC;
		if (result == 0) {
			mark_unloaded(&r);
			result = r.changed;
		}
		if (result == 1) {
			atomic_store_explicit(&current, !now, memory_order_seq_cst);
			atomic_fetch_add_explicit(&generation, 1, memory_order_release);
			for (uint32_t i = 0; i < NR_MISSED; i++)
				atomic_store_explicit(&missed[i], 0, memory_order_relaxed);
		}
	}
	atomic_store_explicit(&refreshing, 0, memory_order_release);
	return result;
}

int csink_modules_refresh(struct csink_recording *rec, struct csink_writer *writer, uint64_t now_ns)
{
	return csink_calls_are_off(CSINK_CALLS_SCAN) ? -EAGAIN : refresh(rec, writer, now_ns, false);
}

int csink_modules_refresh_last(struct csink_recording *rec, struct csink_writer *writer, uint64_t now_ns)
{
	if (csink_calls_are_off(CSINK_CALLS_SCAN))
		return -EAGAIN;
	/* Alone, and not inside dlopen or dlclose (a scan gives up there): no other thread unloads an object meanwhile.
	 */
	return refresh(rec, writer, now_ns, csink_is_single_threaded());
}

void csink_modules_refresh_at(uint64_t pc, struct csink_module_memo *memo, struct csink_recording *rec,
			      struct csink_writer *writer, uint64_t now_ns)
{
	int result = csink_modules_refresh(rec, writer, now_ns);
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;
	uint32_t i = 0;

	if (result == -EAGAIN || csink_modules_current(pc, memo) || csink_find_object((void *)pc, &found) < 0)
		return;
	while (i < NR_MISSED - 1 && atomic_load_explicit(&missed[i], memory_order_relaxed))
		i++;
	atomic_store_explicit(&missed[i], mark_of(&found), memory_order_relaxed);
#else
	(void)result;
	(void)pc;
	(void)memo;
#endif
}

void csink_modules_reserve(void)
{
	for (int i = 0; i < 2; i++)
		grow(&buffers[i]);
}

void csink_modules_init(struct csink_recording *rec, struct csink_writer *writer)
{
	/* What was written to the recording before a fork is not in this one. */
	buffers[atomic_load(&current)].nr = 0;
	atomic_store(&buffers[0].readers, 0);
	atomic_store(&buffers[1].readers, 0);
	atomic_store(&refreshing, 0);
	/* In a constructor the loader waits for us; a forked child has no other thread. */
	refresh(rec, writer, csink_monotonic_ns(), true);
}
