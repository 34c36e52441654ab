# shellcheck shell=bash
# slurm_start DIRECTORY: Slurm with this machine as its one node, of processes of ours alone, until slurm_stop. Sourced.

slurm_start() {
	slurm_pids=
	node=$(hostname -s)
	port=$((20000 + $$ % 20000))
	mkdir -p "$1/state" "$1/spool"
	dd if=/dev/urandom of="$1/munge.key" bs=1024 count=1 2>/dev/null
	chmod 400 "$1/munge.key"
	cat >"$1/slurm.conf" <<-END
		ClusterName=one
		SlurmctldHost=$node(127.0.0.1)
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		AuthType=auth/munge
		AuthInfo=socket=$1/munge.socket
		StateSaveLocation=$1/state
		SlurmdSpoolDir=$1/spool
		SlurmctldPidFile=$1/slurmctld.pid
		SlurmdPidFile=$1/slurmd.pid
		SlurmctldPort=$port
		SlurmdPort=$((port + 1))
		SlurmctldLogFile=$1/slurmctld.log
		SlurmdLogFile=$1/slurmd.log
		SlurmdParameters=config_overrides
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/cons_tres
		SchedulerType=sched/builtin
		ReturnToService=2
		MpiDefault=none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		NodeName=$node NodeAddr=127.0.0.1 CPUs=8 RealMemory=500 State=UNKNOWN
		PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
	END
	SLURM_CONF=$1/slurm.conf
	export SLURM_CONF
	munged --force --foreground --num-threads=1 --key-file="$1/munge.key" --socket="$1/munge.socket" \
		--pid-file="$1/munged.pid" --log-file="$1/munged.log" --seed-file="$1/munge.seed" >"$1/munged.out" 2>&1 &
	slurm_pids=$!
	slurm_until test -S "$1/munge.socket" || return
	slurmctld -D >"$1/slurmctld.out" 2>&1 &
	slurm_pids="$! $slurm_pids"
	slurm_until sinfo -h || return
	slurmd -D -N "$node" >"$1/slurmd.out" 2>&1 &
	slurm_pids="$! $slurm_pids"
	slurm_until sh -c 'sinfo -h -o %t | grep -qx idle'
}

# Wait until a command succeeds, for a minute at most.
slurm_until() {
	slurm_tries=0
	until "$@" >/dev/null 2>&1; do
		slurm_tries=$((slurm_tries + 1))
		[ "$slurm_tries" -le 600 ] || return 1
		sleep 0.1
	done
}

slurm_stop() {
	for pid in $slurm_pids; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	slurm_pids=
}
