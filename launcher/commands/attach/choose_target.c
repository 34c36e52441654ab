/* The targets of an attach: see choose_target.h. */
#include "launcher/commands/attach/choose_target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/attach/select_targets.h"
#include "launcher/base/message.h"
#include "launcher/commands/attach/attach_options.h"

int csink_attach_choose(const struct csink_options *options, int nr_operands, char **operands, bool is_command,
			struct csink_attach_target *target, struct csink_attach_counters *counters)
{
	const char *pids = csink_options_text(options, CSINK_ATTACH_OPT_PID);
	const char *cgroup = csink_options_text(options, CSINK_ATTACH_OPT_CGROUP);
	int32_t tid = (int32_t)csink_options_number(options, CSINK_ATTACH_OPT_TID), pid;
	char why[CSINK_WHY_BYTES] = "";
	int err = 0;

	if (!!*pids + !!tid + !!*cgroup + (nr_operands > 0) != 1 || (nr_operands > 1 && !is_command))
		return csink_fail(-EINVAL,
				  "give exactly one target: -p PID, -t TID, --cgroup PATH, a PATTERN for names, or -- "
				  "COMMAND (see countersink help attach)");
	counters->inherit = true;
	if (*pids) {
		err = csink_attach_choose_pids(pids, &target->choice, why, sizeof(why));
	} else if (tid) {
		pid = csink_attach_process_of(tid, why, sizeof(why));
		target->choice = (struct csink_pids){malloc(sizeof(pid)), 1, 1};
		counters->inherit = false;
		target->tid = tid;
		if (target->choice.at)
			target->choice.at[0] = pid;
		err = pid < 0 ? pid : target->choice.at ? 0 : -ENOMEM;
	} else if (*cgroup) {
		target->cgroup_fd = csink_attach_open_cgroup(cgroup, why, sizeof(why));
		counters->inherit = false;
		err = target->cgroup_fd < 0 ? target->cgroup_fd
					    : csink_attach_choose_cgroup(target->cgroup_fd, &target->choice);
	} else if (is_command) {
		counters->at_exec = true;
	} else {
		err = csink_attach_choose_pattern(operands[0], &target->choice, why, sizeof(why));
	}
	counters->cgroup_fd = target->cgroup_fd;
	if (err)
		csink_say("%s", *why ? why : strerror(-err));
	csink_attach_name(target);
	return err;
}
