/*
 * Calls by which a process gives up its rights. Its own recording is mapped already; what it forks and starts
 * afterwards cannot enter the run directory, and gets one beside it (run_dir.h). The process that makes the profile
 * without a launcher hands its run over (handover.h), if it gives its rights up for good. Any thread of the program, in
 * its own call; not in our handlers.
 */
#include <sys/types.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/handover.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/sampler/process.h"
#include "preload/core/calls_off.h"
#include "preload/core/perf_system.h"
#include "preload/core/record/run_dir.h"

/* User IDs, as a call will leave them. */
struct ids {
	uid_t real, effective, saved;
};

static bool is_root(const struct ids *ids)
{
	return !ids->real || !ids->effective || !ids->saved;
}

/* Returns true if the run was handed over: to be taken back if the call fails. @next: -1 leaves an ID as it is. */
static bool before_change(struct ids next)
{
	CSINK_KEEP_ERRNO;
	struct ids now;
	bool done = false;

	if (csink_calls_are_off(CSINK_CALLS_LIFE | CSINK_CALLS_RIGHTS) ||
	    !atomic_load_explicit(&csink_process.active, memory_order_relaxed) ||
	    csink_rawcall(SYS_getresuid, &now.real, &now.effective, &now.saved) || !is_root(&now))
		return false;
	next.real = next.real == (uid_t)-1 ? now.real : next.real;
	next.effective = next.effective == (uid_t)-1 ? now.effective : next.effective;
	next.saved = next.saved == (uid_t)-1 ? now.saved : next.saved;
	/* A process that has set another effective user ID cannot do this: setting it back would be visible
	 * (capabilities, PR_GET_DUMPABLE). */
	if (now.effective || !next.effective)
		done = false;
	else if (!is_root(&next) && csink_handover_is_owner())
		done = !csink_handover_begin(next.effective);
	/* In another user namespace the directory would belong to a user over which the launcher has no rights: it
	 * could not be removed. */
	else if (!csink_is_in_user_ns())
		csink_run_dir_share(csink_config.run_dir, next.effective);
	return done;
}

static int after_change(bool handed_over, int result)
{
	if (result && handed_over)
		csink_handover_undo();
	if (handed_over)
		csink_handover_end();
	return result;
}

CSINK_EXPORT int setuid(uid_t uid)
{
	/* Else the effective one alone is set. */
	bool all = !csink_calls_are_off(CSINK_CALLS_RIGHTS) && geteuid() == 0;
	bool done = before_change((struct ids){all ? uid : (uid_t)-1, uid, all ? uid : (uid_t)-1});

	return after_change(done, REAL(setuid)(uid));
}

CSINK_EXPORT int seteuid(uid_t uid)
{
	bool done = before_change((struct ids){(uid_t)-1, uid, (uid_t)-1});

	return after_change(done, REAL(seteuid)(uid));
}

CSINK_EXPORT int setreuid(uid_t real, uid_t effective)
{
	/* As setreuid(2) has it. */
	bool is_off = csink_calls_are_off(CSINK_CALLS_RIGHTS);
	bool sets_saved = real != (uid_t)-1 || (effective != (uid_t)-1 && effective != (is_off ? real : getuid()));
	uid_t saved = effective == (uid_t)-1 && !is_off ? geteuid() : effective;
	bool done = before_change((struct ids){real, effective, sets_saved ? saved : (uid_t)-1});

	return after_change(done, REAL(setreuid)(real, effective));
}

CSINK_EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	bool done = before_change((struct ids){real, effective, saved});

	return after_change(done, REAL(setresuid)(real, effective, saved));
}
