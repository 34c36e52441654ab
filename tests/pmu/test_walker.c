/*
 * The walker of this machine against a known truth: stacks of 10, 30 and 100 frames without frame pointers, interrupted
 * at any instruction by the counter of cycles. For the machine of tests/pmu/boot.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "preload/agent/sampler/group.h"
#include "preload/agent/unwind/unwind.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_setup.h"
#include "tests/unit/walk_truth.h"

#define NR_SAMPLES 1000
#define MAX_CALLS 200000
#define PERIOD 80021 /* cycles: no loop keeps step with it; and the handler of a deep stack takes far less */

static struct {
	struct csink_group group;
	struct csink_stack_bounds stack;
	uint64_t frames[CSINK_MAX_DEPTH];
	unsigned int exact, wrong, elsewhere, errno_changed;
	uintptr_t first_wrong_pc;
	int first_wrong_end;
} run;

static void on_overflow(int signo, siginfo_t *info, void *context)
{
	struct csink_walk walk = {.stack = &run.stack, .frames = run.frames, .max_frames = CSINK_MAX_DEPTH};
	const ucontext_t *uc = context;
	struct csink_group_read read;
	int verdict;

	(void)signo;
	(void)info;
	csink_group_drain(&run.group, &read);
	errno = 4711;
	csink_walk_dwarf(&walk, uc);
	run.errno_changed += errno != 4711;
	verdict = truth_judge(&walk, csink_context_pc(uc));
	run.exact += verdict == 1;
	run.elsewhere += verdict == -1;
	if (!verdict && !run.wrong++) {
		run.first_wrong_pc = csink_context_pc(uc);
		run.first_wrong_end = walk.end;
	}
}

static void check(unsigned int depth, unsigned int work)
{
	struct csink_event_spec event;
	struct csink_group_open open = {.events = &event, .members = 1, .how = CSINK_GROUP_SIGTRAP, .tid = gettid()};
	struct csink_event_error error;
	unsigned long sum = 0;
	uint32_t failed;

	run.exact = run.wrong = run.elsewhere = 0;
	csink_events_parse("cycles:u", &event, 1, &error);
	event.attr.sample_period = PERIOD;
	if (!is_num(csink_group_open(&run.group, &open, &failed), 0, "cycles sample"))
		return;
	for (int i = 0; i < MAX_CALLS && run.exact + run.wrong < NR_SAMPLES; i++)
		sum += deep_call(depth, work, sum);
	prctl(PR_TASK_PERF_EVENTS_DISABLE);
	csink_group_close(&run.group);
	printf("# %u frames, work %u: %u exact, %u wrong, %u elsewhere\n", depth, work, run.exact, run.wrong,
	       run.elsewhere);
	ok(run.exact >= NR_SAMPLES && !run.wrong, "stacks of %u frames are exact (work %u)", depth, work);
	if (run.wrong)
		printf("# pc 0x%lx, in function %d: end %d\n", (long)run.first_wrong_pc, truth_nr(run.first_wrong_pc),
		       run.first_wrong_end);
}

int main(void)
{
	static const unsigned int depths[] = {10, 30, 100}, works[] = {16, 2000};
	struct sigaction action = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGTRAP, &action, NULL);
	run.stack = setup_stack();
	is_num(setup_modules(), 0, "a module snapshot is there");
	truth_init();
	is_num(csink_walk_dwarf_init(), 0, "the walker is ready");
	for (int w = 0; w < 2; w++)
		for (int d = 0; d < 3; d++)
			check(depths[d], works[w]);
	is_num(run.errno_changed, 0, "errno is kept");
	return done();
}
