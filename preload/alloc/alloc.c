/*
 * The program's allocator, counted: malloc and its family pass on to the next definition, by a tail call. Each thread
 * counts down the bytes to its next sample; what is not due costs a subtraction and an addition, a free one load.
 *
 * Any thread, at any time: before constructors run, in handlers of the program's, in children of vfork. So no lock, and
 * no call of libc's but the allocator's, the clock's and, before all else, the loader's.
 */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "include/internal/alloc_object.h"
#include "include/internal/base.h"
#include "include/internal/shared_options.h"
#include "preload/alloc/draw.h"
#include "preload/alloc/handlers.h"
#include "preload/alloc/live.h"
#include "preload/objects/block.h"
#include "preload/objects/caller.h"
#include "preload/objects/next.h"
#include "preload/objects/plain_text.h"

/* Not sampled: no allocation is as large. */
#define NEVER (1ULL << 62)

struct thread {
	struct csink_alloc_counts counts;
	uint64_t random;
};

/* In the first page of a thread's memory: no call, no test whether it is there. */
static __thread struct thread self __attribute__((tls_model("initial-exec")));

static struct csink_alloc_agent agent;
static uint64_t period; /* 0: it has not begun */
/* The program has a sanitizer, whose reports show all frames: each call is a tail call, and nothing is sampled. */
static bool is_sanitized;
static uint64_t nr_full;
static uint32_t start_ms;

/* ---- the next definitions ---- */

/* clang-format off */
#define NEXT(X) \
	X(void *, malloc, (size_t bytes), (bytes)) \
	X(void *, calloc, (size_t nr, size_t bytes), (nr, bytes)) \
	X(void *, realloc, (void *block, size_t bytes), (block, bytes)) \
	X(void, free, (void *block), (block)) \
	X(void *, memalign, (size_t alignment, size_t bytes), (alignment, bytes)) \
	X(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes)) \
	X(void *, valloc, (size_t bytes), (bytes)) \
	X(void *, pvalloc, (size_t bytes), (bytes)) \
	X(int, posix_memalign, (void **block, size_t alignment, size_t bytes), (block, alignment, bytes))
/* clang-format on */
CSINK_NEXT_TABLE(NEXT)

/* Once: each function's first call asks. */
static bool has_sanitizer(void)
{
	static const char names[][16] = {"__asan_init", "__tsan_init", "__lsan_init", "__msan_init", "__hwasan_init"};
	static bool is_known;

	if (is_known)
		return is_sanitized;
	is_known = true;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names); i++)
		if (csink_definer(_r_debug.r_map, names[i]))
			return true;
	return false;
}

/*
 * An allocator that is not libc's may call its own functions as the program does: calloc() that calls malloc(). That is
 * one allocation. Its functions that allocate; what it calls from others it needs for itself.
 */
struct code {
	uintptr_t start, bytes;
};
static struct code inner[8], inner_all; /* all within the last one; of no bytes: there are none */

static void learn_inner(void)
{
	static const char names[CSINK_ARRAY_SIZE(inner)][16] = {"malloc",        "calloc", "realloc", "memalign",
								"aligned_alloc", "valloc", "pvalloc", "posix_memalign"};
	void *next_malloc = csink_next_function("malloc");
	const struct link_map *map = _r_debug.r_map;
	uintptr_t low = UINTPTR_MAX, high = 0;
	struct csink_elf_view view;
	static bool is_known;

	if (is_known)
		return;
	is_known = true;
	while (map && (csink_is_own(map) || csink_elf_function(map, "malloc") != next_malloc))
		map = map->l_next;
	if (!map || csink_elf_function(map, "gnu_get_libc_version") ||
	    !csink_elf_open(&view, map->l_addr, map->l_ld, NULL))
		return;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(inner); i++) {
		uint64_t bytes = 0;

		inner[i].start = csink_elf_look(&view, names[i], STT_FUNC, &bytes);
		inner[i].bytes = inner[i].start ? bytes : 0;
		if (!inner[i].bytes)
			continue;
		low = CSINK_MIN(low, inner[i].start);
		high = CSINK_MAX(high, inner[i].start + inner[i].bytes);
	}
	inner_all.start = low;
	__atomic_store_n(&inner_all.bytes, high > low ? high - low : 0, __ATOMIC_RELEASE);
}

static __attribute__((noinline, cold)) bool is_of_inner(uintptr_t caller)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(inner); i++)
		if (caller - inner[i].start < inner[i].bytes)
			return true;
	return false;
}

/* Is the function that this is in called by one of the allocator's own? */
#define IS_INNER()                                                                                                     \
	(CSINK_UNLIKELY((uintptr_t)__builtin_return_address(0) - inner_all.start <                                     \
			__atomic_load_n(&inner_all.bytes, __ATOMIC_RELAXED)) &&                                        \
	 is_of_inner((uintptr_t)__builtin_return_address(0)))

/* libc has each of them. */
#define X(type, name, arguments, values)                                                                               \
	static type first_##name arguments                                                                             \
	{                                                                                                              \
		is_sanitized = has_sanitizer();                                                                        \
		learn_inner();                                                                                         \
		__atomic_store_n((void **)&next.name, csink_next_function(#name), __ATOMIC_RELAXED);                   \
		return next.name values;                                                                               \
	}
NEXT(X)
#undef X

/* ---- counting ---- */

/*
 * Take bytes from the thread's countdown. False where it has fewer, and is wrong until undo(). One instruction where
 * the machine has it: a handler of the program's that allocates comes before or after.
 */
static inline __attribute__((always_inline)) bool take(size_t bytes)
{
#if defined(__x86_64__)
	__asm__ goto("subq %1, %0\n\tjc %l[is_due]" : : "m"(self.counts.left), "r"(bytes) : "cc", "memory" : is_due);
	return true;
is_due:
	return false;
#else
	return !__builtin_sub_overflow(self.counts.left, bytes, &self.counts.left);
#endif
}

static void undo(size_t bytes)
{
	self.counts.left += bytes;
}

static uint32_t milliseconds(void)
{
	return (uint32_t)(agent.now_ns() / 1000000);
}

/* What the countdown has counted goes to more, and it begins again. */
static void count_down_from(uint64_t left)
{
	struct csink_alloc_counts *counts = &self.counts;

	counts->more += counts->drawn - counts->left;
	counts->drawn = counts->left = left;
}

static void seed(void)
{
	self.random = (agent.now_ns() ^ (uintptr_t)&self << 20) * 0x9e3779b97f4a7c15ULL;
	self.random |= !self.random;
	csink_random_next(&self.random);
}

static uint64_t draw(void)
{
	if (!period)
		return NEVER;
	if (!self.random)
		seed();
	return csink_draw_bytes(&self.random, period);
}

/* Of period bytes, one is sampled: what an allocation of so many bytes stands for. */
static void weigh(uint64_t bytes, uint64_t *all_bytes, uint64_t *all_objects)
{
	double share = csink_sampled_share((double)bytes / (double)period);

	*all_bytes = (uint64_t)((double)bytes / share + 0.5);
	*all_objects = (uint64_t)(1 / share + 0.5);
}

/* The bytes are in no countdown any more. */
static void sample(const void *block, size_t bytes, const struct csink_caller *caller)
{
	struct csink_live_item item = {.bytes = bytes};
	uint64_t all_bytes, all_objects;
	ucontext_t uc;

	weigh(bytes, &all_bytes, &all_objects);
	csink_caller_describe(&uc, caller);
	item.row = agent.sample(&uc, all_bytes, all_objects, &self.counts);
	item.made_ms = milliseconds();
	if (item.row && !csink_live_put(block, &item))
		__atomic_fetch_add(&nr_full, 1, __ATOMIC_RELAXED);
}

/* The timer engine's signal may not be lost, others come again: see csink_thread_mute(). */
static bool must_block(uint32_t seen)
{
	return seen & CSINK_HANDLERS_INTERRUPT || atomic_load_explicit(agent.timer_signo, memory_order_relaxed);
}

/*
 * No handler of the program's may run while a sample is taken, and none is taken on an alternate stack: see block.h.
 * Returns false where that cannot be. @mask  what csink_unblock() takes, if *is_blocked.
 */
static bool keep_handlers_out(uint64_t *mask, bool *is_blocked)
{
	uint32_t seen = atomic_load_explicit(&csink_handlers_seen, memory_order_relaxed);

	if (seen & CSINK_HANDLERS_ALTERNATE && csink_is_on_alternate())
		return false;
	*is_blocked = must_block(seen);
	if (*is_blocked)
		csink_block_all(mask);
	return true;
}

/* An allocation is made, and its bytes are in no countdown yet; it is sampled if it is due. */
static void count(const void *block, size_t bytes, const struct csink_caller *caller)
{
	struct csink_alloc_counts *counts = &self.counts;
	bool is_blocked;
	uint64_t mask;

	if (!counts->drawn)
		count_down_from(draw());
	if (take(bytes)) {
		/* More than was drawn: between take() and undo() a handler of the program's had allocated more. */
		if (CSINK_LIKELY(counts->left <= counts->drawn))
			return;
	}
	undo(bytes);
	counts->more += bytes;
	if (!period || !agent.may_block() || !keep_handlers_out(&mask, &is_blocked)) {
		count_down_from(draw());
		return;
	}
	count_down_from(0);
	sample(block, bytes, caller);
	/* A handler that was not seen may have allocated meanwhile. */
	count_down_from(draw());
	if (is_blocked)
		csink_unblock(&mask);
}

/* ---- slow halves ---- */

enum how { MALLOC, CALLOC, REALLOC, REALLOC_DUE, FREE, MEMALIGN, ALIGNED, VALLOC, PVALLOC, POSIX };

static void *keep(void *block, size_t bytes, const struct csink_caller *caller)
{
	if (block) {
		self.counts.objects++;
		count(block, bytes, caller);
	}
	return block;
}

/* A block that moves is freed and allocated, whatever it was. */
static void *change(void *block, size_t bytes, const struct csink_caller *caller)
{
	struct csink_live_item item;
	bool was_live;
	void *now;

	was_live = block && csink_live_may_be(block) && csink_live_take(block, &item);
	now = next.realloc(block, bytes);
	if (!now && bytes && was_live)
		csink_live_put(block, &item);
	return bytes || !block ? keep(now, bytes, caller) : now;
}

static void *align(enum how how, size_t alignment, size_t bytes)
{
	switch (how) {
	case MEMALIGN:
		return next.memalign(alignment, bytes);
	case ALIGNED:
		return next.aligned_alloc(alignment, bytes);
	case VALLOC:
		return next.valloc(bytes);
	default:
		return next.pvalloc(bytes);
	}
}

static int align_posix(void **block, size_t alignment, size_t bytes, const struct csink_caller *caller)
{
	int err = next.posix_memalign(block, alignment, bytes);

	if (!err)
		keep(*block, bytes, caller);
	return err;
}

int csink_unwound(int version, int actions, uint64_t class, void *exception, void *context)
{
	(void)version;
	(void)actions;
	(void)class;
	(void)exception;
	(void)context;
	return CSINK_CONTINUE_UNWIND;
}

void *csink_slow(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t how, const struct csink_caller *caller)
{
	struct csink_live_item item;

	switch ((enum how)how) {
	case MALLOC:
		undo(a);
		return keep(next.malloc(a), a, caller);
	case CALLOC:
		return keep(next.calloc(a, b), a * b, caller);
	case REALLOC_DUE:
		undo(b);
		return change((void *)a, b, caller);
	case REALLOC:
		return change((void *)a, b, caller);
	case FREE:
		csink_live_take((void *)a, &item);
		next.free((void *)a);
		return NULL;
	case POSIX:
		return (void *)(uintptr_t)(unsigned int)align_posix((void **)a, b, c, caller);
	default:
		return keep(align((enum how)how, a, b), b, caller);
	}
}

/* ---- what the program calls ---- */

CSINK_EXPORT void *malloc(size_t bytes)
{
	if (IS_INNER())
		return next.malloc(bytes);
	if (CSINK_UNLIKELY(!take(bytes))) {
		if (!is_sanitized)
			return csink_slow_entry(bytes, 0, 0, MALLOC);
		undo(bytes);
	}
	self.counts.objects++;
	return next.malloc(bytes);
}

CSINK_EXPORT void *calloc(size_t nr, size_t bytes)
{
	size_t all;

	if (IS_INNER())
		return next.calloc(nr, bytes);
	/* The product may not be a number; then none is allocated. */
	if (CSINK_UNLIKELY(__builtin_mul_overflow(nr, bytes, &all)))
		return next.calloc(nr, bytes);
	if (CSINK_UNLIKELY(!take(all))) {
		undo(all);
		if (!is_sanitized)
			return csink_slow_entry(nr, bytes, 0, CALLOC);
	}
	self.counts.objects++;
	return next.calloc(nr, bytes);
}

CSINK_EXPORT void *realloc(void *block, size_t bytes)
{
	if (IS_INNER())
		return next.realloc(block, bytes);
	if (CSINK_UNLIKELY(csink_live_may_be(block) || (!bytes && !is_sanitized)))
		return csink_slow_entry((uintptr_t)block, bytes, 0, REALLOC);
	if (CSINK_UNLIKELY(!take(bytes))) {
		if (!is_sanitized)
			return csink_slow_entry((uintptr_t)block, bytes, 0, REALLOC_DUE);
		undo(bytes);
	}
	self.counts.objects++;
	return next.realloc(block, bytes);
}

CSINK_EXPORT void free(void *block)
{
	if (CSINK_UNLIKELY(csink_live_may_be(block))) {
		csink_slow_entry((uintptr_t)block, 0, 0, FREE);
		return;
	}
	next.free(block);
}

CSINK_EXPORT void cfree(void *block);
CSINK_EXPORT void cfree(void *block)
{
	free(block);
}

CSINK_EXPORT void free_sized(void *block, size_t bytes);
CSINK_EXPORT void free_sized(void *block, size_t bytes)
{
	(void)bytes;
	free(block);
}

CSINK_EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes);
CSINK_EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
	(void)alignment;
	(void)bytes;
	free(block);
}

CSINK_EXPORT void *memalign(size_t alignment, size_t bytes)
{
	return is_sanitized || IS_INNER() ? next.memalign(alignment, bytes)
					  : csink_slow_entry(alignment, bytes, 0, MEMALIGN);
}

CSINK_EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
	return is_sanitized || IS_INNER() ? next.aligned_alloc(alignment, bytes)
					  : csink_slow_entry(alignment, bytes, 0, ALIGNED);
}

CSINK_EXPORT void *valloc(size_t bytes)
{
	return is_sanitized || IS_INNER() ? next.valloc(bytes) : csink_slow_entry(0, bytes, 0, VALLOC);
}

CSINK_EXPORT void *pvalloc(size_t bytes)
{
	return is_sanitized || IS_INNER() ? next.pvalloc(bytes) : csink_slow_entry(0, bytes, 0, PVALLOC);
}

CSINK_EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
	return is_sanitized || IS_INNER() ? next.posix_memalign(block, alignment, bytes)
					  : csink_slow_entry_int((uintptr_t)block, alignment, bytes, POSIX);
}

/* ---- what the agent calls ---- */

/* "BYTES", with ",first" and ",leaks" behind it; as it is when the process starts. */
static struct {
	uint64_t period;
	bool is_read, is_first, finds_leaks;
} asked;

static void read_asked(void)
{
	const char *value = csink_plain_variable(CSINK_ENV_PREFIX "ALLOC=");

	if (asked.is_read)
		return;
	asked.is_read = true;
	asked.period = csink_plain_bytes(value);
	if (asked.period < CSINK_ALLOC_MIN_PERIOD || asked.period > CSINK_ALLOC_MAX_PERIOD)
		asked.period = CSINK_ALLOC_PERIOD;
	asked.finds_leaks = csink_plain_has(value, ",leaks");
	asked.is_first = csink_plain_has(value, ",first");
}

static void event(uint32_t i, struct csink_rec_event *out)
{
	static const char *const names[CSINK_ALLOC_NR_EVENTS] = {"alloc_space", "alloc_objects", "inuse_space",
								 "inuse_objects"};
	static const char *const leak_names[] = {"leak_space", "leak_objects"};
	bool is_in_use = i >= CSINK_ALLOC_IN_USE, is_bytes = i == CSINK_ALLOC_SPACE || i == CSINK_ALLOC_IN_USE;
	const char *name = names[i];

	read_asked();
	if (is_in_use && asked.finds_leaks)
		name = leak_names[i - CSINK_ALLOC_IN_USE];
	memset(out, 0, sizeof(*out));
	csink_plain_append(out->name, out->name + sizeof(out->name), name);
	csink_plain_append(out->unit, out->unit + sizeof(out->unit), is_bytes ? "bytes" : "count");
	out->flags = is_in_use ? CSINK_EVENT_IN_USE : CSINK_EVENT_ALLOCATED;
	if (asked.finds_leaks ? i == CSINK_ALLOC_IN_USE : i == CSINK_ALLOC_SPACE && asked.is_first)
		out->flags |= CSINK_EVENT_FIRST;
	out->period = asked.period;
}

static void start(const struct csink_alloc_agent *from)
{
	csink_live_begin();
	agent = *from;
	read_asked();
	period = asked.period;
	start_ms = milliseconds();
	count_down_from(draw());
}

static struct csink_alloc_counts *counts(void)
{
	return &self.counts;
}

/* Is it of the last tenth of the process's time, in which what is kept for a while is not freed yet? */
static bool is_young(uint32_t now_ms, uint32_t made_ms)
{
	return now_ms - made_ms < (now_ms - start_ms) / 10;
}

static void in_use(void)
{
	uint32_t at = 0, now_ms = milliseconds();
	struct csink_live_item item;
	uint64_t bytes, objects;

	while (csink_live_next(&at, &item)) {
		struct csink_rec_wait *entry;

		if (asked.finds_leaks && is_young(now_ms, item.made_ms))
			continue;
		entry = agent.entry(item.row, CSINK_WAIT_IN_USE, 0);
		if (!entry) {
			nr_full++;
			continue;
		}
		weigh(item.bytes, &bytes, &objects);
		entry->delay_ns = bytes;
		entry->contentions = objects;
	}
}

static void forked(void)
{
	csink_live_forked();
	self.counts.more = 0;
	self.counts.seen = self.counts.objects;
	self.counts.drawn = self.counts.left;
	self.random = 0; /* not the parent's numbers */
	nr_full = 0;
	start_ms = milliseconds();
}

static const char *name_of(const struct link_map *map)
{
	const char *name = map->l_name;

	for (const char *at = name; *at; at++)
		if (*at == '/')
			name = at + 1;
	return *name ? name : "the program";
}

/* All that the program allocates. */
static void describe_unseen(char *text, const char *end)
{
	const struct link_map *allocator = csink_definer(_r_debug.r_map, "malloc");

	if (is_sanitized) {
		csink_plain_append(text, end, "allocations are not seen: a program with a sanitizer is left alone");
	} else if (allocator && !csink_is_own(allocator)) {
		text = csink_plain_append(text, end, "allocations are not seen: ");
		text = csink_plain_append(text, end, name_of(allocator));
		csink_plain_append(text, end, " has a malloc of its own");
	}
}

/* What C++ allocates: an allocator's own operators do not call malloc. */
static void describe_unseen_new(char *text, const char *end)
{
	const struct link_map *news = csink_definer(_r_debug.r_map, "_Znwm");

	if (!news || is_sanitized || !csink_elf_function(news, "malloc"))
		return;
	text = csink_plain_append(text, end, "what C++ allocates by new is not seen: ");
	text = csink_plain_append(text, end, name_of(news));
	csink_plain_append(text, end, " has operators of its own");
}

static bool unseen(uint32_t i, char *text, size_t size)
{
	*text = '\0';
	if (i == 0)
		describe_unseen(text, text + size);
	else if (i == 1)
		describe_unseen_new(text, text + size);
	return i < 2;
}

CSINK_EXPORT const struct csink_alloc_object csink_alloc_object = {event,  start,  counts,  in_use,
								   forked, unseen, &nr_full};
