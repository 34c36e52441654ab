/*
 * Walks of copied stacks, by our own rules and by libunwind: the same copies of real programs' stacks, which a ptrace
 * stop gives; functions of this program whose rules are hard or made to do harm; tables with random bytes changed.
 * Stacks of Go: the joined walk of a small copy beside the tables' own of all of the stack. Threads in the system call
 * that returns from a signal.
 */
#include "launcher/attach/images.h"
#include "launcher/attach/walk_libunwind.h"
#include "tests/unit/tap.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "preload/core/sysfs.h"

#define NR_STOPS 400
#define NR_MUTATIONS 20000
#define STACK_BYTES 16384
#define DEADLINE_NS (120 * CSINK_NS_PER_S)       /* then the test has failed */
#define GO_SOURCE "tests/targets/outside.go.txt" /* unit tests run in the source tree */

static struct csink_attach_images images;
static char stack[STACK_BYTES];
static uint64_t frames[2][CSINK_MAX_DEPTH];

static bool locate(void *arg, uint64_t pc, const struct csink_attach_object **object, uint64_t *bias)
{
	const struct csink_attach_mapping *mapping = csink_attach_image_find(arg, pc);

	if (!mapping)
		return false;
	*object = mapping->object;
	*bias = mapping->bias;
	return true;
}

static void print_walk(const char *who, uint32_t nr, const uint64_t *at, enum csink_walk_copy_end end)
{
	printf("# %s: %u frames, end %d\n", who, nr, end);
	for (uint32_t i = 0; i < nr; i++)
		printf("#   0x%lx\n", (long)at[i]);
}

/* ---- real programs ---- */

/* As the kernel's samples have them. */
static uint32_t sampled_regs(pid_t pid, uint64_t *regs)
{
	struct user_regs_struct now;
	struct iovec io = {&now, sizeof(now)};

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io))
		return 0;
#if defined(__x86_64__)
	memcpy(regs,
	       (uint64_t[]){now.rax, now.rbx, now.rcx, now.rdx, now.rsi, now.rdi, now.rbp, now.rsp, now.rip, now.r8,
			    now.r9, now.r10, now.r11, now.r12, now.r13, now.r14, now.r15},
	       17 * sizeof(*regs));
	return 17;
#else
	memcpy(regs, now.regs, 31 * sizeof(*regs));
	regs[31] = now.sp;
	regs[32] = now.pc;
	return 33;
#endif
}

static pid_t start_program(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 1);
		dup2(null, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static struct {
	uint32_t stops, same, shorter, differ, incomplete;
} seen;

static void compare(const struct csink_walk_copy *copy)
{
	enum csink_walk_copy_end end[2];
	uint32_t nr[2], common;

	nr[0] = csink_walk_copy(copy, frames[0], CSINK_MAX_DEPTH, &end[0]);
	nr[1] = csink_walk_libunwind(copy, frames[1], CSINK_MAX_DEPTH, &end[1]);
	common = CSINK_MIN(nr[0], nr[1]);
	seen.stops++;
	seen.incomplete += end[0] != CSINK_COPY_COMPLETE && end[0] != CSINK_COPY_CUT;
	if (!memcmp(frames[0], frames[1], common * sizeof(**frames)) && nr[0] == nr[1] &&
	    (end[0] == end[1] || (end[0] != CSINK_COPY_COMPLETE && end[1] != CSINK_COPY_COMPLETE))) {
		seen.same++;
	} else if (!memcmp(frames[0], frames[1], common * sizeof(**frames)) && nr[1] <= nr[0] &&
		   end[1] == CSINK_COPY_NO_CFI) {
		seen.shorter++; /* code without tables, which ours passes by the frame pointer */
	} else if (!seen.differ++) {
		printf("# pc 0x%lx\n", (long)csink_walk_copy_pc(copy->regs));
		print_walk("ours", nr[0], frames[0], end[0]);
		print_walk("libunwind", nr[1], frames[1], end[1]);
	}
}

/* ---- the same stacks without tables ---- */

#if defined(__x86_64__)
/* The same objects, as if they had no tables. They stay: the walker's cache knows them by their addresses. */
static bool locate_bare(void *arg, uint64_t pc, const struct csink_attach_object **object, uint64_t *bias)
{
	static struct {
		const struct csink_attach_object *of;
		struct csink_attach_object bare;
	} known[64];
	const struct csink_attach_object *of;
	uint32_t i = 0;

	if (!locate(arg, pc, &of, bias))
		return false;
	while (i < CSINK_ARRAY_SIZE(known) && known[i].of && known[i].of != of)
		i++;
	if (i == CSINK_ARRAY_SIZE(known))
		return false;
	if (!known[i].of) {
		known[i].of = of;
		known[i].bare = *of;
		known[i].bare.table = (struct csink_cfi_table){0};
	}
	*object = &known[i].bare;
	return true;
}

static struct {
	uint64_t stacks, same, first_same, guessed, frames, right_frames;
	uint32_t shown;
} bare_seen;

/* A stack that tables have whole, beside what the code alone gives. */
static void compare_bare(const struct csink_walk_copy *copy)
{
	struct csink_walk_trust trust;
	struct csink_walk_copy bare = *copy;
	enum csink_walk_copy_end end[2];
	uint32_t nr[2], common, right = 0;

	nr[0] = csink_walk_copy(copy, frames[0], CSINK_MAX_DEPTH, &end[0]);
	if (end[0] != CSINK_COPY_COMPLETE)
		return;
	bare.locate = locate_bare;
	bare.trust = &trust;
	nr[1] = csink_walk_copy(&bare, frames[1], CSINK_MAX_DEPTH, &end[1]);
	common = CSINK_MIN(nr[0], nr[1]);
	while (right < common && frames[0][right] == frames[1][right])
		right++;
	bare_seen.stacks++;
	bare_seen.frames += nr[0];
	bare_seen.right_frames += right;
	bare_seen.first_same += !nr[0] || right > 0;
	bare_seen.guessed += trust.by_guess;
	if (right == nr[0] && nr[1] == nr[0] && end[1] == CSINK_COPY_COMPLETE) {
		bare_seen.same++;
	} else if (getenv("CSINK_SHOW") && bare_seen.shown++ < (uint32_t)atoi(getenv("CSINK_SHOW"))) {
		const struct csink_attach_object *object = NULL;
		uint64_t bias = 0, pc = right ? frames[0][right - 1] : csink_walk_copy_pc(copy->regs);

		locate(copy->arg, pc, &object, &bias);
		printf("# parts behind %u frames at %s %lx (sp %lx), to be %lx\n", right, object ? object->path : "?",
		       (long)(pc - bias), (long)csink_walk_copy_reg(copy->regs, CSINK_REG_SP), (long)frames[0][right]);
		print_walk("tables", nr[0], frames[0], end[0]);
		print_walk("code", nr[1], frames[1], end[1]);
	}
}

static void judge_bare(const char *name)
{
	printf("# without tables: of %llu stacks %llu the same, %llu with the same caller, %llu guessed; of %llu "
	       "frames %llu "
	       "right\n",
	       (unsigned long long)bare_seen.stacks, (unsigned long long)bare_seen.same,
	       (unsigned long long)bare_seen.first_same, (unsigned long long)bare_seen.guessed,
	       (unsigned long long)bare_seen.frames, (unsigned long long)bare_seen.right_frames);
	ok(bare_seen.same * 100 >= bare_seen.stacks * 98, "%s: without tables 98 of 100 stacks are those of the tables",
	   name);
	memset(&bare_seen, 0, sizeof(bare_seen));
}
#else
static void compare_bare(const struct csink_walk_copy *copy)
{
	(void)copy;
}

static void judge_bare(const char *name)
{
	skip(name, "code is followed on x86");
}
#endif

static void look_at(pid_t pid, struct csink_attach_image *image)
{
	uint64_t regs[64];
	struct csink_walk_copy copy = {.regs = regs, .stack = stack, .locate = locate, .arg = image};
	struct iovec local = {stack, sizeof(stack)}, remote;
	ssize_t n;

	if (!sampled_regs(pid, regs))
		return;
	remote = (struct iovec){(void *)(uintptr_t)csink_walk_copy_reg(regs, CSINK_REG_SP), sizeof(stack)};
	for (n = -1; n < 0 && remote.iov_len >= 512; remote.iov_len /= 2) /* the stack may end before */
		n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	if (n <= 0)
		return;
	copy.stack_bytes = (uint64_t)n;
	compare(&copy);
	compare_bare(&copy);
}

/* Until it has used so much CPU time that it has loaded what it needs. */
static void wait_until_it_works(pid_t pid)
{
	uint64_t deadline_ns = csink_monotonic_ns() + DEADLINE_NS;

	while (csink_monotonic_ns() < deadline_ns) {
		unsigned long ticks = 0;
		char path[64];
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		file = fopen(path, "r");
		if (file && fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", &ticks) != 1)
			ticks = 0;
		if (file)
			fclose(file);
		if (ticks >= (unsigned long)sysconf(_SC_CLK_TCK) / 2)
			return;
		usleep(20000);
	}
}

static void check_program(const char *name, char **argv, int nr_stops)
{
	pid_t pid = start_program(argv);
	int status = 0;

	memset(&seen, 0, sizeof(seen));
	wait_until_it_works(pid);
	/* Objects are freed at the end of the test only: our walker's cache knows them by their addresses. */
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || !csink_attach_images_take(&images, pid, csink_monotonic_ns())) {
		skip(name, "it cannot be traced");
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return;
	}
	for (int i = 0; i < nr_stops; i++) {
		usleep((useconds_t)(500 + i * 7 % 1000));
		if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		look_at(pid, images.at[images.nr - 1]);
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	kill(pid, SIGKILL);
	if (!WIFEXITED(status) && !WIFSIGNALED(status))
		waitpid(pid, &status, 0);
	printf("# %u stacks: %u the same, %u libunwind's shorter, %u differ; %u of ours incomplete\n", seen.stops,
	       seen.same, seen.shorter, seen.differ, seen.incomplete);
	ok(seen.stops > (uint32_t)nr_stops / 2, "%s: its stacks were copied", name);
	ok(seen.differ <= seen.stops / 100, "%s: libunwind's stacks are ours, or end in code without tables", name);
	ok(seen.same >= seen.stops * 9 / 10, "%s: nine of ten are the same to the end", name);
	judge_bare(name);
}

static void check_programs(void)
{
	char *python[] = {"/usr/bin/python3", "-c",
			  "import json, re\nwhile True:\n json.loads(json.dumps({str(i): [i, 'x' * i] for i"
			  " in range(99)}))\n re.findall('(a+)+b', 'aaaaaaaab' * 9)\n sorted(map(str, range(999)))",
			  NULL};
	char mix[4096], *cxx[] = {mix, "2000000", NULL}, unindexed[4096], *c[] = {unindexed, "1000", NULL};

	snprintf(mix, sizeof(mix), "%s/tests/targets/unwind_mix", getenv("BUILD") ? getenv("BUILD") : "build");
	/* libunwind gives up in 0.4 % of its stacks: enough stops to distinguish that from the bound. */
	check_program("a C++ program that throws", cxx, 6 * NR_STOPS);
	snprintf(unindexed, sizeof(unindexed), "%s/tests/targets/static_stacks",
		 getenv("BUILD") ? getenv("BUILD") : "build");
	check_program("a static program without .eh_frame_hdr", c, NR_STOPS);
	if (access("/usr/bin/python3", X_OK))
		skip("python3", "it is not installed");
	else
		check_program("python3", python, NR_STOPS);
}

/* ---- threads in the system call that returns from a signal ---- */

#if defined(__x86_64__)
/* As the kernel walks by frame pointers, on whatever stack: the instruction, then return addresses. */
static uint64_t kernel_walk(pid_t tid, const uint64_t *regs, uint64_t *chain, uint64_t max)
{
	uint64_t nr = 0, frame[2] = {csink_walk_copy_reg(regs, CSINK_REG_FP)};
	struct iovec local = {frame, sizeof(frame)}, remote = {.iov_len = sizeof(frame)};

	chain[nr++] = (uint64_t)-512; /* PERF_CONTEXT_USER */
	chain[nr++] = csink_walk_copy_pc(regs);
	while (nr < max) {
		remote.iov_base = (void *)(uintptr_t)frame[0];
		if (process_vm_readv(tid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(frame))
			break;
		chain[nr++] = frame[1];
	}
	return nr;
}

enum { NR_RETURNS = 400, SYSCALL_STOP = SIGTRAP | 0x80 };

static struct {
	uint32_t stops, first, bare, complete;
} returns;

static void on_signal(int sig)
{
	(void)sig;
}

static void signals_itself(void)
{
	signal(SIGUSR1, on_signal);
	for (;;)
		raise(SIGUSR1);
}

/* The stack pointer is at the kernel's ucontext_t, which has where the signal came. */
static void look_at_return(pid_t tid, struct csink_attach_image *image)
{
	static uint64_t chain[129];
	uint64_t regs[64];
	struct csink_walk_copy copy = {.regs = regs, .stack = stack, .chain = chain, .locate = locate, .arg = image};
	enum csink_walk_copy_end end;
	struct iovec local = {stack, sizeof(stack)}, remote;
	ucontext_t context;
	uint64_t interrupted;
	ssize_t n;

	if (!sampled_regs(tid, regs))
		return;
	remote = (struct iovec){(void *)(uintptr_t)csink_walk_copy_reg(regs, CSINK_REG_SP), sizeof(stack)};
	for (n = -1; n < 0 && remote.iov_len >= sizeof(context); remote.iov_len /= 2)
		n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	if (n < (ssize_t)sizeof(context))
		return;
	memcpy(&context, stack, sizeof(context));
	interrupted = (uint64_t)context.uc_mcontext.gregs[REG_RIP] | CSINK_FRAME_EXACT;
	copy.stack_bytes = (uint64_t)n;
	copy.nr_chain = kernel_walk(tid, regs, chain, CSINK_ARRAY_SIZE(chain));
	returns.stops++;
	returns.first += csink_walk_copy(&copy, frames[0], CSINK_MAX_DEPTH, &end) && frames[0][0] == interrupted;
	returns.complete += end == CSINK_COPY_COMPLETE;
	copy.locate = locate_bare;
	returns.bare += csink_walk_copy(&copy, frames[0], CSINK_MAX_DEPTH, &end) && frames[0][0] == interrupted;
}

/* From one system call of any thread to the next one. */
static void look_at_returns(pid_t pid)
{
	uint64_t deadline_ns = csink_monotonic_ns() + DEADLINE_NS;
	struct user_regs_struct regs;
	const char *tid;
	pid_t task;
	int status;

	memset(&returns, 0, sizeof(returns));
	CSINK_SYSFS_EACH(tid, "/proc/%d/task", pid) {
		task = atoi(tid);
		if (!ptrace(PTRACE_SEIZE, task, 0, PTRACE_O_TRACESYSGOOD))
			ptrace(PTRACE_INTERRUPT, task, 0, 0);
	}
	if (!csink_attach_images_take(&images, pid, csink_monotonic_ns()))
		return;
	while (returns.stops < NR_RETURNS && csink_monotonic_ns() < deadline_ns) {
		task = waitpid(-1, &status, __WALL);
		if (task < 0)
			break;
		if (!WIFSTOPPED(status))
			continue;
		if (WSTOPSIG(status) == SYSCALL_STOP && !ptrace(PTRACE_GETREGS, task, 0, &regs) &&
		    regs.orig_rax == SYS_rt_sigreturn)
			look_at_return(task, images.at[images.nr - 1]);
		ptrace(PTRACE_SYSCALL, task, 0,
		       status >> 16 == PTRACE_EVENT_STOP || WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status));
	}
}

static void end_program(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0) /* the first thread's end is reported when those of the others were */
		;
}

static void check_returns(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		signals_itself();
		_exit(1);
	}
	look_at_returns(pid);
	end_program(pid);
	is_num(returns.stops, NR_RETURNS, "threads were stopped in the system call that returns from a signal");
	is_num(returns.first, returns.stops, "what the signal interrupted is the first caller");
	is_num(returns.complete, returns.stops, "and the stack is whole");
	is_num(returns.bare, returns.stops, "without tables, what the signal interrupted is the first caller");
}

static void check_returns_of_go(char *program)
{
	char *argv[] = {program, "3600s", NULL};
	pid_t pid = start_program(argv);

	wait_until_it_works(pid);
	look_at_returns(pid);
	end_program(pid);
	is_num(returns.stops, NR_RETURNS, "Go: threads were stopped in the system call that returns from a signal");
	is_num(returns.first, returns.stops, "Go: what the signal interrupted is the first caller");
	ok(returns.complete * 10 >= returns.stops * 9, "Go: %u of %u of these stacks reach their root",
	   returns.complete, returns.stops);
}
#endif

/* ---- Go ---- */

#if defined(__x86_64__)
#define WHOLE_BYTES (1 << 20)
#define COPY_BYTES 8192
#define MAX_TASKS 64

static struct {
	uint32_t stops, complete, exact, whole, differ;
} go_seen;

/* What the tables say of all of the stack; what a walk of its top, joined with the kernel's, says. */
static void compare_go(pid_t tid, struct csink_walk_copy *copy)
{
	static uint64_t chain[129];
	enum csink_walk_copy_end end[2];
	uint32_t nr[2], common;

	nr[0] = csink_walk_copy(copy, frames[0], CSINK_MAX_DEPTH, &end[0]);
	copy->nr_chain = kernel_walk(tid, copy->regs, chain, CSINK_ARRAY_SIZE(chain));
	copy->chain = chain;
	copy->stack_bytes = CSINK_MIN(copy->stack_bytes, (uint64_t)COPY_BYTES);
	nr[1] = csink_walk_copy(copy, frames[1], CSINK_MAX_DEPTH, &end[1]);
	common = CSINK_MIN(nr[0], nr[1]);
	go_seen.stops++;
	go_seen.whole += end[0] == CSINK_COPY_COMPLETE;
	go_seen.complete += end[1] == CSINK_COPY_COMPLETE;
	/* Where the thread went to another stack, the tables end. */
	if (!memcmp(frames[0], frames[1], common * sizeof(**frames)) &&
	    (nr[0] == nr[1] || (end[0] != CSINK_COPY_COMPLETE && nr[1] > nr[0]))) {
		go_seen.exact++;
	} else if (go_seen.differ++ < 3) {
		printf("# pc 0x%lx\n", (long)csink_walk_copy_pc(copy->regs));
		print_walk("tables", nr[0], frames[0], end[0]);
		print_walk("joined", nr[1], frames[1], end[1]);
	}
}

static void look_at_go(pid_t tid, struct csink_attach_image *image)
{
	static char whole[WHOLE_BYTES];
	uint64_t regs[64];
	struct csink_walk_copy copy = {.regs = regs, .stack = whole, .locate = locate, .arg = image};
	struct iovec local = {whole, sizeof(whole)}, remote;
	ssize_t n;

	if (!sampled_regs(tid, regs))
		return;
	remote = (struct iovec){(void *)(uintptr_t)csink_walk_copy_reg(regs, CSINK_REG_SP), sizeof(whole)};
	for (n = -1; n < 0 && remote.iov_len >= 512; remote.iov_len /= 2)
		n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	if (n <= 0)
		return;
	copy.stack_bytes = (uint64_t)n;
	compare_go(tid, &copy);
}

/* Stop each of its threads again and again. */
static void stop_threads(pid_t pid)
{
	pid_t tasks[MAX_TASKS];
	uint32_t nr = 0;
	const char *tid;
	int status = 0;

	CSINK_SYSFS_EACH(tid, "/proc/%d/task", pid) {
		if (nr < MAX_TASKS && !ptrace(PTRACE_SEIZE, atoi(tid), 0, 0))
			tasks[nr++] = atoi(tid);
	}
	if (!nr || !csink_attach_images_take(&images, pid, csink_monotonic_ns()))
		return;
	for (int i = 0; i < NR_STOPS * 2; i++) {
		pid_t task = tasks[(uint32_t)i % nr];

		usleep((useconds_t)(300 + i * 7 % 500));
		if (ptrace(PTRACE_INTERRUPT, task, 0, 0) || waitpid(task, &status, __WALL) != task ||
		    !WIFSTOPPED(status))
			continue;
		if (status >> 16 == PTRACE_EVENT_STOP)
			look_at_go(task, images.at[images.nr - 1]);
		ptrace(PTRACE_CONT, task, 0, status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status));
	}
}

static void check_go(char *program)
{
	char *argv[] = {program, "3600s", NULL};
	pid_t pid = start_program(argv);

	wait_until_it_works(pid);
	stop_threads(pid);
	end_program(pid);
	printf("# %u stacks of Go: the tables' %u whole; joined, by %u bytes: %u whole, %u as the tables have them\n",
	       go_seen.stops, go_seen.whole, COPY_BYTES, go_seen.complete, go_seen.exact);
	ok(go_seen.stops > NR_STOPS, "Go: its stacks were copied");
	ok(go_seen.complete * 100 >= go_seen.stops * 98, "Go: 98 of 100 joined stacks reach their root");
	ok(go_seen.exact * 100 >= go_seen.stops * 98, "Go: 98 of 100 joined stacks are the tables'");
	check_returns_of_go(program);
}

static void check_go_program(void)
{
	char directory[] = "/tmp/csink-go.XXXXXX", command[8192], program[64];

	if (!mkdtemp(directory))
		return;
	snprintf(program, sizeof(program), "%s/outside", directory);
	snprintf(command, sizeof(command),
		 "cache=${BUILD:-%s}/go-cache; mkdir -p \"$cache\" 2>/dev/null && [ -w \"$cache\" ] || "
		 "cache=%s/go-cache; "
		 "cp %s %s/outside.go && cd %s && GOCACHE=\"$cache\" GO111MODULE=off go build -o %s outside.go",
		 directory, directory, GO_SOURCE, directory, directory, program);
	if (getenv("CSINK_GO_PROGRAM"))
		check_go(getenv("CSINK_GO_PROGRAM"));
	else if (system("go version >/dev/null 2>&1") || system(command))
		skip("stacks of Go", "no go here that builds a program");
	else
		check_go(program);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	if (system(command))
		printf("# %s is left\n", directory);
}
#endif

/* ---- rules that are hard, or made to do harm ---- */

#if defined(__x86_64__)
/* Each is called by nothing; a stack that is made up for it has the return address where its rules say. */
void rule_sum(void);
void rule_register(void);
void rule_division(void);
void rule_branch(void);
void rule_end(void);
__asm__(".text\n"
	".type rule_sum, @function\nrule_sum: .cfi_startproc\n"
	"	.cfi_escape 0x0f, 8, 0x77, 4, 0x77, 4, 0x22, 0x77, 0, 0x1c\n" /* rsp + 4 + rsp + 4 - rsp */
	"	nop\n	nop\n	.cfi_endproc\n.size rule_sum, .-rule_sum\n"

	".type rule_register, @function\nrule_register: .cfi_startproc\n"
	"	.cfi_escape 0x09, 0, 0xff, 0xff, 0xff, 0xff, 0x0f\n" /* rax is in register 2^32 - 1 */
	"	.cfi_escape 0x0f, 8, 0x77, 4, 0x77, 4, 0x22, 0x77, 0, 0x1c\n"
	"	nop\n	nop\n	.cfi_endproc\n.size rule_register, .-rule_register\n"

	".type rule_division, @function\nrule_division: .cfi_startproc\n" /* INT64_MIN / -1 */
	"	.cfi_escape 0x0f, 14, 0x77, 8, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b\n"
	"	nop\n	nop\n	.cfi_endproc\n.size rule_division, .-rule_division\n"

	".type rule_branch, @function\nrule_branch: .cfi_startproc\n" /* it branches back for ever */
	"	.cfi_escape 0x0f, 5, 0x77, 8, 0x2f, 0xfd, 0xff\n"
	"	nop\n	nop\n	.cfi_endproc\n.size rule_branch, .-rule_branch\n"

	".type rule_end, @function\nrule_end: .cfi_startproc\n"
	"	.cfi_undefined rip\n	nop\n	nop\n	.cfi_endproc\n.size rule_end, .-rule_end\n");

static struct csink_walk_copy copy_in(void (*function)(void), uint64_t *regs)
{
	static uint64_t words[64];

	memset(regs, 0, 17 * sizeof(*regs));
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(words); i++)
		words[i] = (uintptr_t)rule_end + 1;
	regs[7] = (uintptr_t)words;
	regs[8] = (uintptr_t)function + 1;
	return (struct csink_walk_copy){
		regs, (const char *)words, sizeof(words), locate, images.at[images.nr - 1], NULL, NULL, 0, false, NULL};
}

static void check_refused(void (*function)(void), const char *what)
{
	uint64_t regs[17];
	struct csink_walk_copy copy = copy_in(function, regs);
	enum csink_walk_copy_end end;
	bool helped;

	ok(csink_walk_libunwind(&copy, frames[0], CSINK_MAX_DEPTH, &end) == 0 && end == CSINK_COPY_RULES,
	   "%s: libunwind does not see it", what);
	csink_walk_chosen(CSINK_WALK_BY_EITHER, &copy, frames[0], CSINK_MAX_DEPTH, &end, &helped);
	ok(!helped && end != CSINK_COPY_COMPLETE, "%s: nor does libunwind help our walk", what);
}

static void check_rules(void)
{
	uint64_t regs[17];
	struct csink_walk_copy copy = copy_in(rule_sum, regs);
	enum csink_walk_copy_end end;
	bool helped;

	is_num(csink_walk_chosen(CSINK_WALK_BY_OURS, &copy, frames[0], CSINK_MAX_DEPTH, &end, &helped), 0,
	       "an expression that ours does not follow: no caller");
	ok(end == CSINK_COPY_RULES && !helped, "an expression that ours does not follow: reported as such");
	is_num(csink_walk_chosen(CSINK_WALK_BY_EITHER, &copy, frames[0], CSINK_MAX_DEPTH, &end, &helped), 1,
	       "libunwind takes over and finds the caller");
	ok(end == CSINK_COPY_COMPLETE && helped && frames[0][0] == (uintptr_t)rule_end + 1,
	   "libunwind takes over to the stack's end");
	check_refused(rule_register, "a register that does not exist");
	check_refused(rule_division, "a division that would trap");
	check_refused(rule_branch, "an expression without end");
}
#endif

/* ---- damaged tables ---- */

/* Walk this program's own stack again and again, while bytes of its copied tables change. */
static void check_damaged(void)
{
	static uint64_t regs[64];
	struct csink_attach_image *image = images.at[images.nr - 1];
	struct csink_walk_copy copy = {regs, stack, sizeof(stack), locate, image, NULL, NULL, 0, false, NULL};
	enum csink_walk_copy_end end;
	uint64_t from = csink_monotonic_ns(), nr_frames = 0;
	bool helped;

	srandom(17);
	for (uint32_t i = 0; i < NR_MUTATIONS; i++) {
		const struct csink_attach_mapping *mapping = &image->mappings[(size_t)random() % image->nr_mappings];
		const struct csink_cfi_table *table = &mapping->object->table;
		struct csink_cfi_fde fde;
		uint64_t pc = mapping->start + (uint64_t)random() % (mapping->end - mapping->start);
		uint8_t *byte, old;

		if (!table->hdr ||
		    !csink_cfi_find(table, (uintptr_t)(pc - mapping->bias) + mapping->object->table_bias, &fde))
			continue;
		for (uint32_t k = 0; k < sizeof(stack) / 8; k++) {
			uint64_t word =
				random() % 3 ? pc : (uint64_t)(uintptr_t)stack + (uint64_t)random() % sizeof(stack);

			memcpy(stack + 8 * k, &word, sizeof(word));
		}
		for (uint32_t k = 0; k < CSINK_ARRAY_SIZE(regs); k++)
			regs[k] = (uint64_t)(uintptr_t)stack + (uint64_t)random() % 64 * 8;
#if defined(__x86_64__)
		regs[7] = (uintptr_t)stack;
		regs[8] = pc;
#else
		regs[31] = (uintptr_t)stack;
		regs[32] = pc;
#endif
		byte = (uint8_t *)(uintptr_t)(random() % 4 ? fde.code : fde.initial) +
		       random() % CSINK_MAX(fde.code_end - fde.code, 1L);
		old = *byte;
		*byte = (uint8_t)random();
		nr_frames += csink_walk_libunwind(&copy, frames[0], CSINK_MAX_DEPTH, &end);
		csink_walk_chosen(CSINK_WALK_BY_EITHER, &copy, frames[0], CSINK_MAX_DEPTH, &end, &helped);
		if (i % 2) /* half of the damage stays */
			*byte = old;
	}
	ok(nr_frames > 0, "damaged tables: %llu frames in %u walks, and no crash", (unsigned long long)nr_frames,
	   NR_MUTATIONS);
	printf("# %.2f s\n", (double)(csink_monotonic_ns() - from) / 1e9);
}

int main(void)
{
	check_programs();
#if defined(__x86_64__)
	check_returns();
	check_go_program();
#endif
	if (!ok(csink_attach_images_take(&images, getpid(), csink_monotonic_ns()), "this program is looked at"))
		return done();
#if defined(__x86_64__)
	check_rules();
#endif
	check_damaged();
	csink_attach_images_free(&images);
	return done();
}
