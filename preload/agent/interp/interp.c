/*
 * The interpreters of a process, and the merging of their frames into native stacks: see interp.h. Interpreters are
 * found by the constructor or by the thread that finds a new object; all else runs in handlers.
 */
#include "preload/agent/interp/interp.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/unwind/code_copies.h"
#include "preload/agent/unwind/find_object.h"
#include "preload/agent/unwind/jit_objects.h"
#include "preload/agent/unwind/kept_pages.h"
#include "preload/agent/unwind/made_code.h"
#include "preload/core/interpreter_signs.h"
#include "preload/core/private_memory.h"

static const struct csink_language *const languages[] = {&csink_python, &csink_php, &csink_perl,
							 &csink_ruby,   &csink_v8,  &csink_hotspot};

enum {
	MAX_INTERPRETERS = 4,
	MAX_CHECKS = 1024, /* system calls for one walk, after which it ends: some 100 us */
	/* Of glibc's record of a thread, and of the list that it refers to, by the number of a module: */
	THREAD_LISTS = 8,
	LIST_BYTES = 16,
};

/* Slots are filled by one thread at a time (modules are refreshed by one), and read by handlers below csink_interp_nr.
 */
static struct csink_interpreter interpreters[MAX_INTERPRETERS];
_Atomic uint32_t csink_interp_nr;

/* Of interpreters that the program starts with. Kept in forked children. */
static const void *first_maps[MAX_INTERPRETERS];
static uint32_t nr_first;
static bool has_started;

static enum csink_interp_mode mode;

int csink_interp_parse(const char *name)
{
	static const char names[][7] = {"auto", "native", "both"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return (int)i;
	return -EINVAL;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* Remove the interpreter whose object was unloaded. */
static void leave(csink_ref_t module)
{
	uint32_t nr = atomic_load(&csink_interp_nr);

	/* Handlers of other threads may be reading the slot: it stays, and csink_interp_merge() skips it. */
	for (uint32_t i = 0; i < nr; i++) {
		if (interpreters[i].module != module)
			continue;
		if (interpreters[i].language == &csink_hotspot)
			csink_made_set_stepper(NULL);
		__atomic_store_n(&interpreters[i].language, NULL, __ATOMIC_RELEASE);
	}
}

static bool is_for_good(const void *link_map)
{
	for (uint32_t i = 0; i < nr_first; i++) {
		if (first_maps[i] == link_map)
			return true;
	}
	if (has_started || nr_first == MAX_INTERPRETERS)
		return false;
	first_maps[nr_first++] = link_map;
	return true;
}

/* Store an interpreter: in the slot that has it already (a failed scan is repeated; an object may be loaded again at
 * its old address), else in a new one. False: there are too many. */
static bool keep(const struct csink_interpreter *found)
{
	uint32_t nr = atomic_load(&csink_interp_nr), i = 0;

	while (i < nr && (memcmp(interpreters[i].data, found->data, sizeof(found->data)) != 0 ||
			  interpreters[i].eh_frame != found->eh_frame))
		i++;
	if (i == MAX_INTERPRETERS)
		return false;
	if (i < nr) {
		interpreters[i].module = found->module;
		interpreters[i].variables = found->variables;
		interpreters[i].variables_end = found->variables_end;
		__atomic_store_n(&interpreters[i].is_bound, false, __ATOMIC_RELAXED);
		__atomic_store_n(&interpreters[i].language, found->language, __ATOMIC_RELEASE);
		return true;
	}
	csink_kept_begin();
	interpreters[i] = *found;
	atomic_store_explicit(&csink_interp_nr, i + 1, memory_order_release);
	return true;
}

/* Find where the object's variables are: in its last segment that is written to. */
static void find_variables(const struct csink_module *module, struct csink_interpreter *to)
{
	ElfW(Phdr) phdr;

	for (uint32_t i = 0; i < module->nr_phdr && csink_module_copy(&phdr, module->phdr + i, sizeof(phdr)); i++)
		if (phdr.p_type == PT_LOAD && phdr.p_flags & PF_W) {
			to->variables = module->bias + phdr.p_vaddr;
			to->variables_end = to->variables + phdr.p_memsz;
		}
}

/* An object was loaded or unloaded: see csink_modules_set_callback(). */
static CSINK_RARE void on_module(const struct csink_module *module, bool is_there, struct csink_recording *rec,
				 struct csink_writer *writer)
{
	struct csink_elf_view object;
	const char *why = NULL;

	if (!is_there) {
		leave(module->entry);
		csink_code_copies_leave(module);
		csink_jit_unload(module);
		return;
	}
	if (!csink_elf_open(&object, module->bias, module->dynamic, csink_module_copy))
		return;
	if (csink_elf_look(&object, CSINK_SIGN_V8_TOO, STT_OBJECT, NULL))
		csink_code_copies_want(module);
	csink_jit_load(module, &object);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(languages) && mode != CSINK_INTERP_NATIVE; i++) {
		struct csink_interpreter to = {.language = languages[i],
					       .module = module->entry,
					       .eh_frame = module->eh_frame,
					       .start = module->start,
					       .end = module->end,
					       .constants = module->eh_frame - module->tables_before,
					       .constants_end = module->eh_frame + module->tables_behind};
		int found = languages[i]->find(&object, &to, &why);

		if (found < 0)
			csink_recording_note_text(rec, writer, why);
		if (found <= 0 || !csink_code_ids_begin())
			continue;
		to.is_for_good = is_for_good(module->link_map);
		find_variables(module, &to);
		if (!keep(&to))
			csink_recording_note_text(rec, writer,
						  "frames of a further interpreter are not read: only of the first 4 "
						  "of a process");
	}
}

void csink_interp_begin(enum csink_interp_mode wanted)
{
	int busy = CSINK_HOTSPOT_BUSY;

	mode = wanted;
	atomic_store(&csink_interp_nr, 0);
	csink_kept_forked();
	csink_code_ids_reset();
	csink_code_copies_begin();
	csink_jit_begin();
	csink_made_set_stepper(NULL);
	__atomic_compare_exchange_n(&csink_hotspot_state, &busy, CSINK_HOTSPOT_UNKNOWN, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	csink_modules_set_callback(on_module);
}

void csink_interp_started(void)
{
	has_started = true;
}

/* ---- what languages add ------------------------------------------------------------------------------------------ */

/* A page that was found readable in this walk is not asked for again, unless two others with the same hash came since,
 * nor is one that stays known (kept_pages.h).
 * No page has the number 0, which is in unused slots. */
__attribute__((noinline)) bool csink_interp_load_checked(struct csink_interp_walk *walk, uintptr_t at, uint64_t *value)
{
	/* Memory managers align their areas: the numbers of many pages have the same low bits. */
	uintptr_t page = at >> 12;
	uintptr_t *pair = &walk->pages[page * 0x9e3779b97f4a7c15ULL >> (65 - CSINK_INTERP_PAGE_BITS) << 1];
	bool is_within = (at & 4095) <= 4096 - sizeof(*value);
	const struct csink_interpreter *in = walk->interpreter;
	uint64_t asked;

	if (at >= in->variables && at < in->variables_end && in->variables_end - at >= sizeof(*value)) {
		*value = csink_load_known(at);
		return true;
	}
	if (is_within && page && (pair[0] == page || pair[1] == page || csink_kept_has(page))) {
		*value = csink_load_known(at);
		return true;
	}
	if (walk->load.nr_checks >= MAX_CHECKS) {
		walk->is_broken = true;
		return false;
	}
	asked = csink_kept_ask(page);
	if (!csink_load_word(&walk->load, at, value))
		return false;
	if (asked != CSINK_KEPT_NONE)
		csink_kept_put(page, asked);
	pair[1] = pair[0];
	pair[0] = page;
	return true;
}

bool csink_interp_copy(struct csink_interp_walk *walk, uintptr_t at, void *to, size_t bytes)
{
	if (walk->load.nr_checks++ < MAX_CHECKS)
		return csink_copy_by_call(to, (const void *)at, bytes);
	walk->is_broken = true;
	return false;
}

/* Not inlined: it has some fifty callers. Addresses in the first page are checked, since a link may be NULL. */
__attribute__((noinline)) bool csink_interp_load(struct csink_interp_walk *walk, uintptr_t at, uint64_t *value)
{
	if (CSINK_LIKELY((walk->is_settled && at >> 12) || at - walk->known < walk->known_bytes)) {
		*value = csink_load_known(at);
		return true;
	}
	return csink_interp_load_checked(walk, at, value);
}

/* The list is read from which __tls_get_addr() takes it: of this thread's modules. */
bool csink_interp_thread_local(struct csink_interp_walk *walk, uintptr_t place, uint64_t offset, uint64_t *value)
{
	uintptr_t lists = csink_load_known((uintptr_t)pthread_self() + THREAD_LISTS);
	uint64_t module = csink_load_known(place), nr, memory;

	/* Before the list is the number of its entries. A module of which the thread has no memory is marked by -1. */
	return module && csink_interp_load(walk, lists - LIST_BYTES, &nr) && module <= nr &&
	       csink_interp_load(walk, lists + module * LIST_BYTES, &memory) && memory && memory != UINTPTR_MAX &&
	       csink_interp_load(walk, memory + csink_load_known(place + sizeof(module)) + offset, value);
}

bool csink_interp_mix_text(struct csink_interp_walk *walk, uintptr_t text, uint64_t bytes, uint64_t *identity)
{
	uintptr_t end = text + bytes;
	uint64_t word;

	for (uintptr_t at = text & ~(uintptr_t)7; at < end; at += 8) {
		if (!csink_interp_load(walk, at, &word))
			return false;
		if (end - at < 8)
			word &= (1ULL << 8 * (end - at)) - 1;
		if (at < text)
			word >>= 8 * (text - at);
		*identity = csink_interp_mix(*identity, word);
	}
	return true;
}

CSINK_RARE int32_t csink_interp_text(struct csink_interp_walk *walk, uintptr_t at, uint64_t bytes, char *to,
				     uint32_t room)
{
	/* Whole words, which lie in the pages that the text lies in. */
	uintptr_t word_at = at & ~(uintptr_t)7;
	uint32_t nr = 0, skip = (uint32_t)(at - word_at);
	uint64_t word;

	for (; nr < bytes && nr < room; word_at += 8, skip = 0) {
		if (!csink_interp_load(walk, word_at, &word))
			return -1;
		for (uint32_t i = skip; i < 8 && nr < bytes && nr < room; i++) {
			char c = (char)(word >> 8 * i);

			if (!c)
				return (int32_t)nr;
			to[nr++] = c;
		}
	}
	return (int32_t)nr;
}

bool csink_interp_frame(struct csink_interp_walk *walk, uint64_t identity, uintptr_t code, uint32_t position)
{
	return csink_interp_add(walk, csink_code_id(walk, identity, code), position);
}

void csink_interp_group(struct csink_interp_walk *walk, uintptr_t record)
{
	struct csink_interp_group *last = walk->nr_groups ? &walk->room->groups[walk->nr_groups - 1] : NULL;
	uint32_t first = last ? last->first + last->nr : 0;

	if (walk->nr_frames == first || walk->nr_groups == CSINK_MAX_DEPTH)
		return;
	walk->room->groups[walk->nr_groups++] = (struct csink_interp_group){record, first, walk->nr_frames - first};
}

/* Frame @i of a native walk is the evaluator's. */
static bool is_evaluators(const struct csink_interpreter *interpreter, const struct csink_walk *native, uint32_t i)
{
	return csink_interp_is_evaluator(interpreter, (native->frames[i] & ~CSINK_FRAME_EXACT) - 1);
}

bool csink_interp_may_run(const struct csink_interp_walk *walk)
{
	if (walk->native->end != CSINK_WALK_COMPLETE ||
	    csink_interp_is_evaluator(walk->interpreter, csink_context_pc(walk->context)))
		return true;
	for (uint32_t i = 0; i < walk->native->nr_frames; i++) {
		if (is_evaluators(walk->interpreter, walk->native, i))
			return true;
	}
	return false;
}

void csink_interp_find_cfas(struct csink_interp_walk *walk)
{
	if (!walk->has_cfas)
		csink_walk_cfas(walk->native, walk->context, walk->room->cfas, walk->room->fps, walk->room->merged);
	walk->has_cfas = true;
}

void csink_interp_set_loop(const struct csink_interp_walk *walk, uintptr_t start, uintptr_t end)
{
	struct csink_interpreter *interpreter = &interpreters[walk->interpreter - interpreters];

	/* Partner: csink_interp_loop(), after which the end is read. */
	__atomic_store_n(&interpreter->loop_end, end, __ATOMIC_RELAXED);
	__atomic_store_n(&interpreter->loop, start, __ATOMIC_RELEASE);
}

void csink_interp_refuse(const struct csink_interp_walk *walk, const char *why)
{
	csink_recording_note_text(walk->rec, walk->writer, why);
	__atomic_store_n(&interpreters[walk->interpreter - interpreters].language, NULL, __ATOMIC_RELEASE);
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

struct merge {
	const struct csink_interp_walk *from;
	uint64_t *to;
	uint32_t max;
	uint32_t group; /* the next one to put */
};

/* Put a frame after @nr others. Returns how many there are, of which only the first ones have room. */
static inline uint32_t put(const struct merge *m, uint32_t nr, uint64_t frame)
{
	if (CSINK_LIKELY(nr < m->max))
		m->to[nr] = frame;
	return nr + 1;
}

/* Put the next group. @flag  CSINK_FRAME_EVALUATED if the native frame that was put last is its evaluator's, else 0. */
static inline uint32_t put_group(struct merge *m, uint32_t nr, uint64_t flag)
{
	const struct csink_interp_group *group = &m->from->room->groups[m->group++];
	const uint64_t *frames = m->from->room->frames + group->first;

	nr = put(m, nr, frames[0] | flag);
	for (uint32_t i = 1; i < group->nr; i++)
		nr = put(m, nr, frames[i]);
	return nr;
}

/* Merge in order of address. Native frame i lies between cfas[i] and cfas[i + 1], the leaf below cfas[0]. */
static void merge(const struct csink_interp_walk *from, struct csink_walk *walk, uintptr_t sp)
{
	struct merge m = {.from = from, .to = from->room->merged, .max = walk->max_frames};
	const struct csink_interp_group *groups = from->room->groups;
	uint64_t flag = mode == CSINK_INTERP_AUTO ? CSINK_FRAME_EVALUATED : 0;
	uintptr_t loop = flag ? csink_interp_loop(from->interpreter) : 0;
	uint32_t nr = 0, nr_groups = from->nr_groups, nr_native = walk->nr_frames;

	for (uint32_t i = 0;; i++) {
		/*
		 * Groups whose records lie below the upper end of the native frame that was put last; at the end, those
		 * above the point where the native walk broke off, or where its frames are not known.
		 */
		uintptr_t last = i == nr_native ? UINTPTR_MAX : from->room->cfas[i] + 1 ? from->room->cfas[i] - 1 : 0;
		bool has_group = m.group < nr_groups && groups[m.group].record <= last;

		uint64_t first = flag;

		/* At the end, a group whose record is where the last native frame begins replaces that. */
		if (i == nr_native && has_group && groups[m.group].record != (i ? from->room->cfas[i - 1] : sp))
			first = 0;
		for (; m.group < nr_groups && groups[m.group].record <= last; first = 0)
			/* A record below the stack pointer is in no native frame. */
			nr = put_group(&m, nr, groups[m.group].record >= sp ? first : 0);
		if (i == nr_native)
			break;
		/* The group replaces the loop, which was put last, and the evaluator, which called it. */
		if (!has_group || !loop || !is_evaluators(from->interpreter, walk, i))
			nr = put(&m, nr, walk->frames[i]);
	}
	walk->frames = m.to;
	walk->nr_frames = CSINK_MIN(nr, m.max);
	if (nr > m.max || from->is_full)
		walk->end = CSINK_WALK_DEPTH;
	else if (from->is_broken && walk->end == CSINK_WALK_COMPLETE)
		walk->end = CSINK_WALK_BAD_STACK;
}

/*
 * The calls of the evaluator, innermost first: an address in the native frame of each that its group replaces, which is
 * its own, or that of its loop, which it has called. Returns how many.
 */
static uint32_t find_calls(const struct csink_interp_walk *from, const struct csink_walk *walk, const ucontext_t *uc,
			   uint64_t *calls)
{
	const struct csink_interpreter *of = from->interpreter;
	uintptr_t start = of->evaluator, bytes = of->evaluator_end - start, loop = csink_interp_loop(of);
	uintptr_t loop_bytes = loop ? __atomic_load_n(&of->loop_end, __ATOMIC_RELAXED) - loop : 0;
	uintptr_t pc = csink_context_pc(uc), low = csink_context_sp(uc);
	uint32_t nr = pc - start < bytes, nr_native = walk->nr_frames;

	calls[0] = low;
	for (uint32_t i = 0; i < nr_native && nr < CSINK_MAX_DEPTH; i++) {
		bool is_in_loop = pc - loop < loop_bytes;
		uintptr_t end = from->room->cfas[i];

		/* Not branched: calls alternate with other frames in patterns that are hard to predict. */
		calls[nr] = is_in_loop ? low : end;
		pc = (walk->frames[i] & ~CSINK_FRAME_EXACT) - 1;
		nr += pc - start < bytes;
		low = end;
	}
	return nr;
}

/*
 * Groups without records: the outermost one was run by the outermost call of the evaluator, and so on inwards. The
 * innermost call may have no group: its frame is not linked yet, or not any more. Where the outer end of the groups or
 * of the native frames is missing, the innermost group was run by the innermost call, and so on outwards.
 */
static void pair_by_count(struct csink_interp_walk *from, const struct csink_walk *walk, const ucontext_t *uc)
{
	bool is_cut = walk->end != CSINK_WALK_COMPLETE || from->is_full || from->is_broken;
	uint64_t *calls = from->room->merged;
	int32_t nr = (int32_t)find_calls(from, walk, uc, calls), call = is_cut ? 0 : nr - (int32_t)from->nr_groups;

	/* One more: C code may have linked a frame itself. Where there are several, something was read wrong. */
	from->is_broken |= call < -1;
	for (uint32_t group = 0; group < from->nr_groups; group++, call++) {
		/* More groups than calls: those without one join the innermost call. */
		int32_t at = CSINK_MAX(call, 0);

		from->room->groups[group].record = at < nr ? calls[at] : UINTPTR_MAX;
	}
}

/*
 * Can functions of the object be called? It must be relocated: dlopen(3) does that after it has added the object to the
 * loader's list. And it must not be unloaded: the next refresh of modules would notice that too late. dlclose(3)
 * removes an object from the table of _dl_find_object(3) after it has unmapped the object.
 */
static bool is_loaded(const struct csink_interpreter *interpreter)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;

	if (csink_find_object && !interpreter->is_for_good)
		return !csink_modules_unloading() && csink_find_object((void *)interpreter->code, &found) == 0 &&
		       (uintptr_t)found.dlfo_eh_frame == interpreter->eh_frame;
#endif
	return interpreter->is_for_good;
}

/*
 * Can functions of the object be called without entering the dynamic linker, which binds a lazy call when it is first
 * made? A slot that is not bound leads into the object's procedure linkage table. A call of the object's own function
 * is bound here, as the linker would do it; another object's definition of the name would be a getter of the same
 * value. Other functions are bound when the interpreter calls them, as it does for its first thread state.
 */
static bool is_bound(struct csink_interpreter *interpreter)
{
	if (CSINK_LIKELY(__atomic_load_n(&interpreter->is_bound, __ATOMIC_RELAXED)))
		return true;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(interpreter->calls); i++) {
		const struct csink_interp_call *call = &interpreter->calls[i];
		uintptr_t *slot = (uintptr_t *)call->slot, now = slot ? __atomic_load_n(slot, __ATOMIC_RELAXED) : 0;

		if (now == call->own || now - interpreter->start >= interpreter->end - interpreter->start)
			continue;
		if (!call->own)
			return false;
		__atomic_compare_exchange_n(slot, &now, call->own, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&interpreter->is_bound, true, __ATOMIC_RELAXED);
	return true;
}

bool csink_interp_has_room(struct csink_interp_room **room)
{
	if (!*room)
		*room = csink_private_get(sizeof(**room));
	return *room != NULL;
}

void csink_interp_merge(struct csink_walk *walk, const ucontext_t *uc, struct csink_interp_room **room,
			struct csink_recording *rec, struct csink_writer *writer)
{
	uint32_t nr = atomic_load_explicit(&csink_interp_nr, memory_order_acquire);

	if (!csink_interp_has_room(room))
		return;
	for (uint32_t i = 0; i < nr; i++) {
		const struct csink_language *language = __atomic_load_n(&interpreters[i].language, __ATOMIC_ACQUIRE);
		struct csink_interp_walk from = {.interpreter = &interpreters[i],
						 .rec = rec,
						 .writer = writer,
						 .room = *room,
						 .native = walk,
						 .context = uc};

		if (!language || !is_loaded(&interpreters[i]) || !is_bound(&interpreters[i]))
			continue;
		(*room)->nr_walks++;
		csink_loader_init(&from.load, walk->stack, csink_context_sp(uc));
		language->walk(&from);
		if (!from.nr_groups) {
			if (from.is_broken && walk->end == CSINK_WALK_COMPLETE)
				walk->end = CSINK_WALK_BAD_STACK;
			continue;
		}
		csink_interp_find_cfas(&from);
		if (interpreters[i].evaluator)
			pair_by_count(&from, walk, uc);
		merge(&from, walk, csink_context_sp(uc));
		walk->same = 0;
		return;
	}
}
