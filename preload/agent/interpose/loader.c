/*
 * Objects that the program loads past us. With RTLD_DEEPBIND an object's own dependencies come before what was
 * preloaded, so that it calls libc's execve and not ours: its calls are rerouted once it is loaded. With dlmopen(3) it
 * has a C library of its own, of another state, which cannot be exchanged: the recording gets a warning.
 *
 * The loader takes $ORIGIN, RUNPATH and the namespace from the object that calls it, by the return address. So dlopen
 * is passed on by a jump, with its caller's address in place, and called only where nothing depends on the caller.
 *
 * Any thread of the program, in its own call; not in our handlers.
 */
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/got_patch.h"

/* Entered from the assembly below. */
__attribute__((visibility("hidden"))) void *csink_loader_dlopen(const char *file, int mode, const void *caller);
__attribute__((visibility("hidden"))) void *csink_loader_dlmopen(Lmid_t where, const char *file);

#if defined(__x86_64__)
/* NAME: the address to jump to comes from FINDER(first, second, return address); all else stays as it is. */
#define PASS_ON(name, finder)                                                                                          \
	__asm__(".text\n"                                                                                              \
		".p2align 4\n"                                                                                         \
		".globl " name "\n"                                                                                    \
		".type " name ", @function\n" name ":\n"                                                               \
		"	.cfi_startproc\n"                                                                                    \
		"	endbr64\n"                                                                                           \
		"	pushq %rdi\n"                                                                                        \
		"	.cfi_adjust_cfa_offset 8\n"                                                                          \
		"	pushq %rsi\n"                                                                                        \
		"	.cfi_adjust_cfa_offset 8\n"                                                                          \
		"	pushq %rdx\n"                                                                                        \
		"	.cfi_adjust_cfa_offset 8\n"                                                                          \
		"	movq 24(%rsp), %rdx\n"                                                                               \
		"	callq " finder "\n"                                                                            \
		"	popq %rdx\n"                                                                                         \
		"	.cfi_adjust_cfa_offset -8\n"                                                                         \
		"	popq %rsi\n"                                                                                         \
		"	.cfi_adjust_cfa_offset -8\n"                                                                         \
		"	popq %rdi\n"                                                                                         \
		"	.cfi_adjust_cfa_offset -8\n"                                                                         \
		"	jmpq *%rax\n"                                                                                        \
		"	.cfi_endproc\n"                                                                                      \
		".size " name ", . - " name "\n")
#elif defined(__aarch64__)
#define PASS_ON(name, finder)                                                                                          \
	__asm__(".text\n"                                                                                              \
		".p2align 2\n"                                                                                         \
		".globl " name "\n"                                                                                    \
		".type " name ", %function\n" name ":\n"                                                               \
		"	.cfi_startproc\n"                                                                                    \
		"	hint #34\n" /* bti c */                                                                        \
		"	stp x29, x30, [sp, -48]!\n"                                                                          \
		"	.cfi_adjust_cfa_offset 48\n"                                                                         \
		"	.cfi_offset x29, -48\n"                                                                              \
		"	.cfi_offset x30, -40\n"                                                                              \
		"	stp x0, x1, [sp, 16]\n"                                                                              \
		"	str x2, [sp, 32]\n"                                                                                  \
		"	mov x2, x30\n"                                                                                       \
		"	bl " finder "\n"                                                                               \
		"	mov x16, x0\n"                                                                                       \
		"	ldp x0, x1, [sp, 16]\n"                                                                              \
		"	ldr x2, [sp, 32]\n"                                                                                  \
		"	ldp x29, x30, [sp], 48\n"                                                                            \
		"	.cfi_adjust_cfa_offset -48\n"                                                                        \
		"	.cfi_restore x29\n"                                                                                  \
		"	.cfi_restore x30\n"                                                                                  \
		"	br x16\n"                                                                                            \
		"	.cfi_endproc\n"                                                                                      \
		".size " name ", . - " name "\n")
#else
#error "unsupported architecture"
#endif

PASS_ON("dlopen", "csink_loader_dlopen");
PASS_ON("dlmopen", "csink_loader_dlmopen");

/* ---- rerouting ----------------------------------------------------------------------------------------------------
 */

/* What we interpose, and is not among REALS because nothing calls the next one. */
static const char others[][8] = {"execl", "execle", "execlp", "execv", "execvp", "syscall"};

enum { MAX_CHANGES = CSINK_NR_INTERPOSED + CSINK_ARRAY_SIZE(others) };

/* The functions from here on run inside the program's own dlopen(3): they may enter the loader (CSINK_ALLOW). */
static pthread_mutex_t rerouting = PTHREAD_MUTEX_INITIALIZER;
static CSINK_COLD struct csink_got_change changes[MAX_CHANGES];
static uint32_t nr_changes;
/* How many objects have been rerouted. They are listed in the order in which they were loaded, as long as none is
 * unloaded: only what comes after them is looked at, since a program can load a hundred objects one by one. */
static struct {
	uint32_t nr;
	unsigned long long unloaded;
} rerouted;

static void add_change(void *libc, const char *name)
{
	struct csink_got_change change = {name, CSINK_ALLOW(dlsym)(libc, name), CSINK_ALLOW(dlsym)(RTLD_DEFAULT, name)};

	if (change.from && change.to && change.from != change.to)
		changes[nr_changes++] = change;
}

static void find_changes(void)
{
	void *libc = CSINK_ALLOW(dlopen)(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);

	if (!libc)
		return;
	for (int which = 0; which < CSINK_NR_INTERPOSED; which++)
		add_change(libc, csink_real_name((enum csink_real)which));
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(others); i++)
		add_change(libc, others[i]);
	CSINK_ALLOW(dlclose)(libc);
	dlerror(); /* of names that this libc lacks */
}

/*
 * Only objects that are bound past what was preloaded have libc's own addresses, so none but these is changed. Ours is
 * bound as it should be: the next definition after ours is asked for by name.
 */
static int reroute_one(struct dl_phdr_info *info, size_t size, void *data)
{
	uint32_t *at = data;

	(void)size;
	if (info->dlpi_subs != rerouted.unloaded)
		rerouted.nr = 0;
	rerouted.unloaded = info->dlpi_subs;
	if ((*at)++ < rerouted.nr)
		return 0;
	if (info->dlpi_name && *info->dlpi_name && !strstr(info->dlpi_name, "/" LIBC_SO) &&
	    !strstr(info->dlpi_name, "/ld-linux"))
		csink_got_exchange(info, changes, nr_changes);
	return 0;
}

/* Bound at once, so that there is something to reroute; if that is impossible, as it was asked for. */
static void *open_and_reroute(const char *file, int mode)
{
	void *object = REAL(dlopen)(file, (mode & ~RTLD_LAZY) | RTLD_NOW);
	bool is_lazy = !object && mode & RTLD_LAZY;
	uint32_t nr = 0;

	if (is_lazy)
		object = REAL(dlopen)(file, mode);
	if (!object)
		return NULL;
	pthread_mutex_lock(&rerouting);
	if (!nr_changes)
		find_changes();
	CSINK_ALLOW(dl_iterate_phdr)(reroute_one, &nr);
	/* What the loader binds later is rerouted by the next of these calls. */
	rerouted.nr = is_lazy ? 0 : nr;
	pthread_mutex_unlock(&rerouting);
	return object;
}

/* ---- which function is called
 * --------------------------------------------------------------------------------------------------
 */

static bool is_active(void)
{
	return atomic_load_explicit(&csink_process.active, memory_order_relaxed) && !csink_in_vfork_child();
}

/* The object calls another libc directly: its signal handlers and execs bypass our interposed calls. */
static void note_bypass(const char *file, const char *how)
{
	struct csink_writer writer = {0, 0};
	char why[128];

	csink_recording_note(&csink_own_recording, &writer, 1,
			     "%.200s is loaded %s, and its calls bypass the library: its threads and "
			     "children may lack samples",
			     file, how);
	snprintf(why, sizeof(why), "not with a module that is loaded %s", how);
	if (csink_self) {
		csink_engine_leave_sigtrap(csink_self, why);
		csink_signal_uninstall(SIGTRAP);
	}
}

/* Does the loader's result depend on the caller? */
static bool is_callers_own(const char *file, const void *caller)
{
	const ElfW(Dyn) * dyn;
	struct link_map *map;
	Dl_info info;

	if (strchr(file, '$'))
		return true;
	if (strchr(file, '/'))
		return false;
	if (!CSINK_ALLOW(dladdr1)(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return true;
	for (dyn = map->l_ld; dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_RPATH || dyn->d_tag == DT_RUNPATH)
			return true;
	return false;
}

void *csink_loader_dlopen(const char *file, int mode, const void *caller)
{
	if (!(mode & RTLD_DEEPBIND) || !file || !is_active() || !CSINK_ALLOW(dlsym))
		return (void *)REAL(dlopen);
	if (!is_callers_own(file, caller))
		return (void *)open_and_reroute;
	note_bypass(file, "with RTLD_DEEPBIND and a RUNPATH");
	return (void *)REAL(dlopen);
}

void *csink_loader_dlmopen(Lmid_t where, const char *file)
{
	if (where != LM_ID_BASE && file && is_active())
		note_bypass(file, "by dlmopen with a C library of its own");
	return (void *)REAL(dlmopen);
}
