# What every tests/reserve/*.t begins with: tests/cli/lib.sh, and PCP's own daemons in private directories.
# shellcheck shell=bash
. "$(dirname "$0")/../cli/lib.sh"

AGENT=$SRC/tests/reserve/agent
PCP=${PCP:-$BUILD/pcp}
if [ ! -x "$PCP/usr/lib/pcp/bin/pmcd" ]; then
	echo "Bail out! $PCP has no PCP: make check-reserve fetches it (scripts/install-deps agent --unpack $PCP)"
	exit 1
fi
# As lib.sh has it for the build: others must be able to run pmprobe.
if [ "$(id -u)" = 0 ] && have setpriv && ! unprivileged test -x "$PCP/usr/bin/pmprobe"; then
	cp -r "$PCP" "$TMP/pcp"
	PCP=$TMP/pcp
fi
if [ "$(id -u)" != 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 0 ]; then
	skip_all "the agent counts on whole CPUs, which kernel.perf_event_paranoid leaves to root here"
fi
STATE=$TMP/agent
agents=
LOCK= # of the agent that is in use
export LOCK
unset PMCD_PORT PCP_CONF PCP_DIR PCP_RUN_DIR

stop_agents() {
	for agent_state in $agents; do
		"$AGENT" kill "$agent_state"
	done
}
trap 'stop_agents; remove_tmp' EXIT

# start_agent STATE [EVENT]...: and lead PCP's clients, and countersink, to it.
start_agent() {
	agents="$agents $1"
	"$AGENT" start "$PCP" "$@" || {
		echo "Bail out! PCP's agent does not start"
		exit 1
	}
	use_agent "$1"
}
use_agent() {
	. "$1/env"
	LOCK=$PCP_PMDAS_DIR/perfevent/perflock
}

# What the agent counts; nothing without an answer.
active() {
	timeout -s KILL 10 pmprobe -v perfevent.active 2>/dev/null | sed -n 's/^perfevent.active 1 //p'
}
is_active() {
	[ "$(active)" -gt 0 ]
}
# The process of the agent of $STATE.
agent_pid() {
	pgrep -f "pmdaperfevent -d 127 -U $(id -un) -l $STATE/perfevent.log" | head -1
}
