/*
 * What a profile's comments say, as "key: text". Collect writes them, report prints them; other tools may read them. A
 * number stands there bare; ns and bytes are in the key's name. A key that is missing was not measured.
 */
#ifndef CSINK_FACTS_H
#define CSINK_FACTS_H

#define CSINK_FACT_VERSION "countersink" /* the version that made the profile */
#define CSINK_FACT_COMMAND "command"
#define CSINK_FACT_EXIT "exit" /* "status 7", "signal 9 (Killed)" */
#define CSINK_FACT_HOST "host"
#define CSINK_FACT_KERNEL "kernel"
#define CSINK_FACT_CPU "cpu"
#define CSINK_FACT_CPUS "cpus" /* "2 online of 4" */
#define CSINK_FACT_WALL "wall_ns"
#define CSINK_FACT_USER "user_ns" /* user, sys, maxrss: of the command and all its waited-for children */
#define CSINK_FACT_SYS "sys_ns"
#define CSINK_FACT_UNWAITED "unwaited_ns" /* CPU time beside user and sys: of processes that were not waited for */
#define CSINK_FACT_MAXRSS "maxrss_bytes"
#define CSINK_FACT_RUNS "runs" /* how many profiles were merged */
#define CSINK_FACT_PROCESSES "processes"
#define CSINK_FACT_THREADS "threads"
#define CSINK_FACT_RANK "rank"                 /* of a parallel job, where the whole profile is of one */
#define CSINK_FACT_RANKS "ranks"               /* how many the job has, at least 2 */
#define CSINK_FACT_RANKED_BY "ranked_by"       /* the variable that has the rank; several */
#define CSINK_FACT_JOB "job"                   /* "Slurm 1234.0": the batch job, and the step; several */
#define CSINK_FACT_LEADER "sampled_by"         /* an event that samples: a sample type's name; several */
#define CSINK_FACT_EVERY "sampled_every"       /* "NAME PERIOD UNIT" of one that has a fixed period; several */
#define CSINK_FACT_EVENT_REASON "event_chosen" /* why it was chosen, if it was not asked for */
#define CSINK_FACT_CPU_TYPE "cpu_time"         /* the sample type that is CPU time */
#define CSINK_FACT_OFF_CPU "off_cpu"           /* the sample type that is time off the CPU */
#define CSINK_FACT_ALLOCATIONS "allocations"   /* "NAME PERIOD": a sample type that is of allocations; several */
#define CSINK_FACT_LOCKS "locks"               /* a sample type that is of waits for locks; several */
#define CSINK_FACT_ENGINE "engine"             /* "sigtrap", "timer (2 processes): why"; a line for each in use */
#define CSINK_FACT_UNWIND "unwind"             /* the same */
#define CSINK_FACT_USER_ONLY "user_only"       /* an event that does not count the kernel; several */
#define CSINK_FACT_SCALED "scaled"             /* an event that was multiplexed; several */
#define CSINK_FACT_REFUSED "refused"           /* an event that was asked for and could not be had; several */
#define CSINK_FACT_COUNTER "counter"         /* "NAME VALUE UNIT" of the whole tree, and how long it counted; several */
#define CSINK_FACT_UNCOUNTED "counters_lack" /* why there are no counters */
#define CSINK_FACT_LOSS "loss"               /* "12 stacks cut at the depth limit"; several */
#define CSINK_FACT_OUTSIDE "outside" /* a program that cannot be injected, and was sampled from outside; several */
#define CSINK_FACT_UNPROFILED "unprofiled" /* "NAME (static)": a program that could not be profiled; several */
#define CSINK_FACT_WARNING "warning"       /* a line; several */
#define CSINK_FACT_NOTE "note"             /* a line; several */
#define CSINK_FACT_SLICE "slice"           /* of a run whose profile is written in slices: which one this is, from 1 */
#define CSINK_FACT_SLICE_START "slice_start" /* "2026-11-22T08:15:00.000Z" */
#define CSINK_FACT_RUN_START "run_start"     /* the same of the run */
#define CSINK_FACT_CONTINUED "continued"     /* "RUN SLICE PROCESSES THREADS": how many slices before have, too */
#define CSINK_FACT_RUN_STATE "run"           /* "goes on" or, in the last slice, "ended" */
#define CSINK_FACT_FILTER "filter"           /* what samples were taken out by, and how much is left; several */

/*
 * Labels of samples: pid, tid and rank (numbers), process, thread and phase (names). A sample that no sample took, but
 * the accounting, has CSINK_LABEL_PSEUDO; its text is one of the words below.
 */
#define CSINK_LABEL_PID "pid"
#define CSINK_LABEL_TID "tid"
#define CSINK_LABEL_PROCESS "process"
#define CSINK_LABEL_THREAD "thread"
#define CSINK_LABEL_PHASE "phase" /* a name that the program gave: csink_phase_begin() */
#define CSINK_LABEL_PSEUDO "pseudo"
#define CSINK_LABEL_RUN "run"           /* in a profile that holds several runs: a number from 0 */
#define CSINK_LABEL_RANK "rank"         /* of a parallel job: a number from 0 */
#define CSINK_LABEL_LOCK "lock"         /* that was waited for: its symbol, or its address */
#define CSINK_LABEL_HOLDER "holder"     /* who released it: functions, the innermost first */
#define CSINK_LABEL_RELEASER "releaser" /* tid of it, where the one wait has a time, that of the release */
#define CSINK_LABEL_TIME "timestamp"    /* ns since 1970, of the one sample that it stands for (--timeline) */

#endif
