/*
 * libunwind inside the handler: the oracle in tests, and the fallback for what our own rows cannot express.
 *
 * The library is loaded as a private copy, from a memfd whose soname is taken out, so that
 *  - the program, which may use libunwind itself, never meets our copy, and our walk never meets a lock, a cache or a
 *    pipe that the interrupted program was just using;
 *  - its global offset table can be rerouted without asking who calls: each caller is us.
 * What it would do that a handler must not is answered here: memory is read by our checked loads, modules come from our
 * snapshot, no fd is opened, the signal mask stays (our handler runs with all signals blocked), nothing is allocated
 * but by mmap. Its own locks are left out, since one lock of ours, which is tried and never waited for without end,
 * lets one walk at a time in: this engine is exact, not fast.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/agent/unwind/got_patch.h"
#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/safe_load.h"

#define LIBUNWIND_NAME "libunwind.so.8"
#define REASON_BYTES 160
#define DT_IGNORED 0x60000000 /* above DT_LOOS, known to nobody */

/* Facts of the library's binary interface (libunwind.h of 1.2 to 1.8); the build does not need its headers. */
enum { UNW_FROM_SIGNAL = 1 };
enum { UNW_CACHE_NONE = 0, UNW_CACHE_GLOBAL = 1 };
#if defined(__x86_64__)
#define PREFIX "_ULx86_64_"
#define GENERIC_PREFIX "_Ux86_64_"
enum { REG_NR_IP = 16, REG_NR_SP = 7 };
#elif defined(__aarch64__)
#define PREFIX "_ULaarch64_"
#define GENERIC_PREFIX "_Uaarch64_"
enum { REG_NR_IP = 30, REG_NR_SP = 31 };
#endif

struct unw_accessors {
	void *find_proc_info, *put_unwind_info, *get_dyn_info_list_addr;
	int (*access_mem)(void *space, uint64_t addr, uint64_t *value, int write, void *arg);
};

static struct {
	int (*init_local2)(void *cursor, void *context, int flag);
	int (*step)(void *cursor);
	int (*get_reg)(void *cursor, int reg, uint64_t *value);
	int (*is_signal_frame)(void *cursor);
	int (*get_proc_info_by_ip)(void *space, uint64_t ip, void *info, void *arg);
	void (*flush_cache)(void *space, uint64_t low, uint64_t high);
	int (*set_caching_policy)(void *space, int policy);
	struct unw_accessors *(*get_accessors)(void *space);
	void **local_space;
} unw;

/* One walk at a time; all of this belongs to whoever holds `busy`. */
static atomic_int busy;
static struct {
	struct csink_loader loader;
	const char *context; /* the registers that the cursor points into */
	uint32_t modules_generation;
	bool warming;          /* csink_libunwind_init's own walk */
	uint64_t cursor[4096]; /* 127 words on x86-64, up to 4096 on aarch64 */
	uint64_t proc_info[64];
	void *escape[5];
} state CSINK_SELDOM;

/* ---- what its libc calls are answered with ----------------------------------------------------------------------- */

static int answer_zero(void)
{
	return 0;
}

/* No file, no pipe, no fd; what asks has a way without. */
static int answer_failure(void)
{
	return -1;
}

static void *answer_null(void)
{
	return NULL;
}

static int iterate_modules(int (*callback)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	if (state.warming) /* no handler, and the snapshot may not have been taken yet */
		return dl_iterate_phdr(callback, data);
	return csink_modules_iterate(callback, data);
}

/* Its assertions must end our walk, not the program. */
static void answer_abort(void)
{
	__builtin_longjmp(state.escape, 1);
}

#define ROUTE(name, function)                                                                                          \
	{                                                                                                              \
		name, (void *)(function)                                                                               \
	}
static const struct csink_got_route routes[] = {
	ROUTE("dl_iterate_phdr", iterate_modules),
	ROUTE("sigprocmask", answer_zero),
	ROUTE("pthread_sigmask", answer_zero),
	ROUTE("pthread_mutex_lock", answer_zero),
	ROUTE("pthread_mutex_unlock", answer_zero),
	ROUTE("pipe", answer_failure),
	ROUTE("pipe2", answer_failure),
	ROUTE("open", answer_failure),
	ROUTE("open64", answer_failure),
	ROUTE("stat", answer_failure),
	ROUTE("fstat", answer_failure),
	ROUTE("read", answer_failure),
	ROUTE("write", answer_failure),
	ROUTE("close", answer_failure),
	ROUTE("syscall", answer_failure),
	ROUTE("mincore", answer_failure),
	ROUTE("msync", answer_failure),
	ROUTE("malloc", answer_null),
	ROUTE("calloc", answer_null),
	ROUTE("free", answer_zero),
	ROUTE("abort", answer_abort),
};

static int access_mem(void *space, uint64_t addr, uint64_t *value, int write, void *arg)
{
	(void)space;
	(void)arg;
	if (write)
		return -1;
	if (addr - (uintptr_t)state.context < sizeof(ucontext_t)) {
		memcpy(value, (const void *)addr, sizeof(*value));
		return 0;
	}
	return csink_load_word(&state.loader, addr, value) ? 0 : -1;
}

/* ---- the private copy -------------------------------------------------------------------------------------------- */

/* Without a soname the dynamic linker matches this object by no name that the program may ask for. */
static int hide_soname(char *image, size_t bytes)
{
	const Elf64_Ehdr *ehdr = (const Elf64_Ehdr *)image;
	const Elf64_Phdr *phdr = (const Elf64_Phdr *)(image + ehdr->e_phoff);

	if (bytes < sizeof(*ehdr) || memcmp(image, ELFMAG, SELFMAG) || ehdr->e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr->e_phoff > bytes || ehdr->e_phnum > (bytes - ehdr->e_phoff) / sizeof(*phdr))
		return -ELIBBAD;
	for (int i = 0; i < ehdr->e_phnum; i++) {
		if (phdr[i].p_type != PT_DYNAMIC || phdr[i].p_offset > bytes ||
		    phdr[i].p_filesz > bytes - phdr[i].p_offset)
			continue;
		for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= phdr[i].p_filesz; at += sizeof(Elf64_Dyn)) {
			Elf64_Dyn *dyn = (Elf64_Dyn *)(image + phdr[i].p_offset + at);

			if (dyn->d_tag == DT_SONAME)
				dyn->d_tag = DT_IGNORED;
		}
		return 0;
	}
	return -ELIBBAD;
}

static int write_all(int fd, const char *bytes, size_t left)
{
	while (left) {
		ssize_t n = write(fd, bytes, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Returns a memfd that holds the changed copy, or -errno. */
static int copy_library(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), copy = -1, err;
	char *image = MAP_FAILED;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		err = fd < 0 ? -errno : -ELIBBAD;
		goto out;
	}
	image = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED) {
		err = -errno;
		goto out;
	}
	err = hide_soname(image, (size_t)st.st_size);
	if (err)
		goto out;
	copy = memfd_create("countersink-libunwind", MFD_CLOEXEC);
	err = copy < 0 ? -errno : write_all(copy, image, (size_t)st.st_size);
out:
	if (image != MAP_FAILED)
		munmap(image, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
	if (err && copy >= 0)
		close(copy);
	return err ? err : copy;
}

static void set_reason(char *reason, const char *what, const char *why)
{
	snprintf(reason, REASON_BYTES, "%s: %s", what, why);
}

/* Returns the handle of the private copy, NULL and *err. */
static void *load_private(char *reason, int *err)
{
	void *shared = dlopen(LIBUNWIND_NAME, RTLD_LAZY | RTLD_LOCAL), *private = NULL;
	struct link_map *map;
	char path[64];
	int fd;

	if (!shared) {
		set_reason(reason, "libunwind is not installed", dlerror());
		*err = -ENOENT;
		return NULL;
	}
	*err = -ELIBBAD;
	if (dlinfo(shared, RTLD_DI_LINKMAP, &map)) {
		set_reason(reason, "libunwind is not usable", dlerror());
		goto out;
	}
	fd = copy_library(map->l_name);
	if (fd < 0) {
		set_reason(reason, "libunwind cannot be copied for private use", strerror(-fd));
		goto out;
	}
	/* Spelled as nobody else does, since the dynamic linker would hand this object to whoever asks for the same
	 * name. */
	snprintf(path, sizeof(path), "/proc/self/task/../fd/./%d", fd);
	private = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!private)
		set_reason(reason, "a private copy of libunwind cannot be loaded", dlerror());
	close(fd);
out:
	dlclose(shared);
	return private;
}

static bool find_functions(void *handle)
{
	const struct {
		void *slot;
		const char *name;
	} wanted[] = {
		{&unw.init_local2, PREFIX "init_local2"},
		{&unw.step, PREFIX "step"},
		{&unw.get_reg, PREFIX "get_reg"},
		{&unw.is_signal_frame, PREFIX "is_signal_frame"},
		{&unw.get_proc_info_by_ip, PREFIX "get_proc_info_by_ip"},
		{&unw.flush_cache, GENERIC_PREFIX "flush_cache"},
		{&unw.set_caching_policy, PREFIX "set_caching_policy"},
		{&unw.get_accessors, GENERIC_PREFIX "get_accessors"},
		{&unw.local_space, PREFIX "local_addr_space"},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(wanted); i++) {
		void *found = dlsym(handle, wanted[i].name);

		if (!found)
			return false;
		memcpy(wanted[i].slot, &found, sizeof(found));
	}
	return true;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static bool enter(void)
{
	/* A walk takes microseconds; whoever holds this for longer was preempted, or did not survive a fork. */
	for (int spins = 0; spins < 4096; spins++) {
		int idle = 0;

		if (atomic_compare_exchange_weak_explicit(&busy, &idle, 1, memory_order_acquire, memory_order_relaxed))
			return true;
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		__asm__ volatile("yield");
#endif
	}
	return false;
}

static void leave(void)
{
	atomic_store_explicit(&busy, 0, memory_order_release); /* pairs with the acquire in enter() */
}

/* A step that gave no frame: was that the outermost one, or did the library run out of information? */
static enum csink_walk_end end_of(int step, uint64_t last_ip)
{
	if (step < 0)
		return CSINK_WALK_BAD_STACK;
	memset(state.proc_info, 0, sizeof(state.proc_info));
	return unw.get_proc_info_by_ip(*unw.local_space, last_ip, state.proc_info, state.cursor) < 0
		       ? CSINK_WALK_NO_CFI
		       : CSINK_WALK_COMPLETE;
}

static void step_all(struct csink_walk *walk, uint64_t ip)
{
	uint64_t sp = 0, last_sp = 0;
	bool exact = true; /* ip is an instruction's own address, not one to return to */

	unw.get_reg(state.cursor, REG_NR_SP, &last_sp);
	for (;;) {
		int step = unw.step(state.cursor);
		uint64_t caller = 0;
		bool interrupted;

		if (step > 0)
			unw.get_reg(state.cursor, REG_NR_IP, &caller);
		if (step <= 0 || !caller) {
			walk->end = end_of(step, exact ? ip : ip - 1);
			return;
		}
		unw.get_reg(state.cursor, REG_NR_SP, &sp);
		/* said of the frame that a signal interrupted, once the step over the trampoline's frame has led there
		 */
		interrupted = unw.is_signal_frame(state.cursor) > 0;
		if (sp <= last_sp && !interrupted) { /* only a signal may have come from another stack */
			walk->end = CSINK_WALK_BAD_STACK;
			return;
		}
		if (walk->nr_frames == walk->max_frames) {
			walk->end = CSINK_WALK_DEPTH;
			return;
		}
		if (interrupted && walk->nr_frames) /* nobody called the trampoline */
			walk->frames[walk->nr_frames - 1] |= CSINK_FRAME_EXACT;
		exact = interrupted;
		walk->frames[walk->nr_frames++] = caller | (exact ? CSINK_FRAME_EXACT : 0);
		ip = caller;
		last_sp = sp;
	}
}

void csink_walk_libunwind(struct csink_walk *walk, const ucontext_t *uc)
{
	int kept_errno = errno;
	uint32_t generation = csink_modules_generation();
	uintptr_t sp;

	walk->nr_frames = 0;
	walk->end = CSINK_WALK_BUSY;
	if (!enter())
		return;
#if defined(__x86_64__)
	sp = (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];
#else
	sp = uc->uc_mcontext.sp;
#endif
	csink_loader_init(&state.loader, walk->stack, sp - CSINK_RED_ZONE_BYTES);
	state.context = (const char *)uc;
	if (generation != state.modules_generation) { /* its cache knows addresses, not what is mapped there */
		unw.flush_cache(*unw.local_space, 0, 0);
		state.modules_generation = generation;
	}
	walk->end = CSINK_WALK_NO_CFI;
	if (!__builtin_setjmp(state.escape) && !unw.init_local2(state.cursor, (void *)uc, UNW_FROM_SIGNAL))
		step_all(walk, csink_context_pc(uc));
	leave();
	errno = kept_errno;
}

bool csink_libunwind_ready(void)
{
	return unw.step != NULL;
}

void csink_libunwind_use_cache(bool use)
{
	unw.set_caching_policy(*unw.local_space, use ? UNW_CACHE_GLOBAL : UNW_CACHE_NONE);
}

void csink_libunwind_forked(void)
{
	/* The thread that was walking in the parent may not exist here; what it held, it may have left half changed. */
	if (atomic_load_explicit(&busy, memory_order_relaxed)) {
		unw.flush_cache(*unw.local_space, 0, 0);
		leave();
	}
}

/* A first walk, from here: the library sets up its tables, and shows that it works. */
__attribute__((noinline)) static bool warm_up(void)
{
	static const struct csink_stack_bounds unknown;
	uint64_t frames[8];
	struct csink_walk walk = {.stack = &unknown, .frames = frames, .max_frames = CSINK_ARRAY_SIZE(frames)};
	ucontext_t uc;

	if (getcontext(&uc))
		return false;
	state.warming = true;
	csink_walk_libunwind(&walk, &uc);
	state.warming = false;
	return walk.nr_frames > 0;
}

int csink_libunwind_init(char *reason)
{
	struct link_map *map;
	int err;
	void *handle;

	if (unw.step)
		return 0;
	handle = load_private(reason, &err);
	if (!handle)
		return err;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !find_functions(handle)) {
		set_reason(reason, "libunwind is not usable", "it lacks a function that walks need");
		goto fail;
	}
	err = csink_got_patch(map, routes, CSINK_ARRAY_SIZE(routes));
	if (err <= 0) {
		set_reason(reason, "libunwind is not usable", err ? strerror(-err) : "its calls cannot be rerouted");
		goto fail;
	}
	unw.get_accessors(*unw.local_space)->access_mem = access_mem;
	if (!warm_up()) {
		set_reason(reason, "libunwind is not usable", "it cannot walk this process");
		goto fail;
	}
	return 0;
fail:
	unw.step = NULL;
	dlclose(handle);
	return -ELIBBAD;
}
