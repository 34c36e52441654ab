/*
 * The recording: what a profiled process leaves behind, and the contract between the library (the only writer) and the
 * launcher (the only reader).
 *
 * One file for each process image, PID.SEQ.rec in the run directory (SEQ counts the images a pid went through by exec),
 * mapped MAP_SHARED, so that it outlives _exit and SIGKILL. It grows only as blocks are handed out.
 *
 * Layout: the header fills the first CSINK_REC_HEADER_BYTES; after it come blocks of CSINK_REC_BLOCK bytes, handed out
 * in order (nr_blocks says how many, the header's own included). An extent is one or more blocks and begins with a
 * csink_rec_extent. A DATA extent holds entries, back to back, each written by one thread at a time: size and type are
 * stored last, with one release store of the entry's first eight bytes. So a reader walks an extent until the first
 * entry whose head is zero, then goes on to the next extent.
 *
 * References between entries are offsets from the file's start in units of 8 bytes (csink_ref_t); 0 is "none".
 * All integers are the machine's own byte order. The reader checks every size, count and reference.
 */
#ifndef CSINK_RECORDING_FORMAT_H
#define CSINK_RECORDING_FORMAT_H

#include <stdint.h>

#include "include/internal/base.h"

#define CSINK_REC_MAGIC 0x31636572736b6e63ULL /* "cnksrec1" */
#define CSINK_REC_VERSION 12
#define CSINK_REC_SUFFIX ".rec"
#define CSINK_REC_COLLECTED 0x746c6c63 /* no value that a file has which was overwritten by chance */
#define CSINK_REC_COLLECTED_WHOLE 0x6c6c6177

#define CSINK_REC_BLOCK 4096
#define CSINK_REC_HEADER_BYTES CSINK_REC_BLOCK
#define CSINK_REC_MAX_BYTES (1ULL << 30)

#define CSINK_MAX_EVENTS 8
/* Of the environment of a rank of a parallel job: its number, and then how many ranks there are. */
#define CSINK_RANK_NUMBERS(X) X(OMPI_COMM_WORLD_RANK) X(PMI_RANK) X(PMIX_RANK) X(SLURM_PROCID)
#define CSINK_RANK_SIZES(X) X(OMPI_COMM_WORLD_SIZE) X(PMI_SIZE) X(SLURM_STEP_NUM_TASKS)
#define CSINK_RANK_INDEX(name) CSINK_##name,
enum {
	CSINK_RANK_NUMBERS(CSINK_RANK_INDEX) CSINK_NR_RANK_NUMBERS,
	CSINK_RANK_LAST_NUMBER = CSINK_NR_RANK_NUMBERS - 1, /* the next one's place */
	CSINK_RANK_SIZES(CSINK_RANK_INDEX) CSINK_NR_RANK_VARIABLES
};
#define CSINK_RANK_VALUE_BYTES 16 /* longer values are cut: no number of a process has as many digits */
#define CSINK_MAX_DEPTH 512

typedef uint32_t csink_ref_t; /* byte offset / 8 */

/* A thread whose samples take more of its time than this, in per cent, is sampled less often from then on. */
#define CSINK_MAX_SHARE 90

enum csink_engine {
	CSINK_ENGINE_NONE,    /* nothing is sampled */
	CSINK_ENGINE_SIGTRAP, /* perf event, attr.sigtrap */
	CSINK_ENGINE_SIGNAL,  /* perf event, F_SETSIG on a real-time signal */
	CSINK_ENGINE_TIMER,   /* timer_create on the thread's CPU clock */
	CSINK_NR_ENGINES,
	CSINK_ENGINE_OUTSIDE = CSINK_NR_ENGINES, /* none of the library's: the kernel's ring, read by attach */
};

enum csink_unwind {
	CSINK_UNWIND_NONE, /* leaf only */
	CSINK_UNWIND_FP,
	CSINK_UNWIND_LIBUNWIND, /* from outside only */
	CSINK_UNWIND_DWARF,     /* our own walker */
	CSINK_NR_UNWINDS
};

enum csink_event_flags {
	CSINK_EVENT_LEADER = 1 << 0,     /* this one samples */
	CSINK_EVENT_CPU_NS = 1 << 1,     /* counts nanoseconds of CPU time: the profile's time */
	CSINK_EVENT_USER_ONLY = 1 << 2,  /* exclude_kernel was forced or asked for (see USER_ASKED) */
	CSINK_EVENT_SCALED = 1 << 3,     /* was multiplexed at least once; counts are scaled */
	CSINK_EVENT_IMPLIED = 1 << 4,    /* added by us (CPU time beside a hardware leader), not asked for */
	CSINK_EVENT_OFF_CPU = 1 << 6,    /* ns in which a thread was not on a CPU: sampled by its own switches */
	CSINK_EVENT_USER_ASKED = 1 << 7, /* USER_ONLY, by the event's own modifier */
	CSINK_EVENT_BY_PERIOD = 1 << 8,  /* samples from outside weigh a period, in which the kernel takes none */
	CSINK_EVENT_BY_CPU = 1 << 9, /* CPU time by samples of CPUs: a share of what the kernel counted of the program's
					processes without samples */
	CSINK_EVENT_NOT_FOLLOWED =
		1 << 10,                 /* CPU time of a program that is not to be shown (--follow): only its sum is */
	CSINK_EVENT_ALLOCATED = 1 << 11, /* counted by the library: bytes or objects that the program allocates */
	CSINK_EVENT_IN_USE = 1 << 12, /* the same, of what was not freed: in WAIT entries that are added at the end */
	CSINK_EVENT_FIRST = 1 << 13,  /* of these: what the report shows first */
	CSINK_EVENT_WAITED = 1 << 14, /* of waits for locks: in WAIT entries */
	CSINK_EVENT_REFUSED = 1 << 5, /* asked for, could not be opened: its weights mean nothing; see the NOTE */
};

struct csink_rec_event {
	char name[64];   /* as asked for, canonical */
	char unit[16];   /* "nanoseconds" or "count" */
	uint32_t type;   /* perf_event_attr.type */
	uint32_t flags;  /* enum csink_event_flags */
	uint64_t config; /* perf_event_attr.config */
	uint64_t period; /* of the leader: events between samples; 0 for the others */
};

/* Why samples have no whole stack, or no sample was kept. Indexes csink_rec_header.losses. */
enum csink_loss {
	CSINK_LOSS_RECORDING_FULL, /* samples whose stack could not be stored (their weight is in unstored[]) */
	CSINK_LOSS_RING,           /* overflow records the kernel dropped */
	CSINK_LOSS_THROTTLED,      /* PERF_RECORD_THROTTLE seen */
	CSINK_LOSS_DEPTH,          /* stacks cut at the depth limit */
	/* stacks that ended before the thread's first frame: */
	CSINK_LOSS_NO_CFI,    /* in code that no table covers, and whose frame pointer is none */
	CSINK_LOSS_BAD_STACK, /* at memory that cannot be read, or a frame that does not lie above the last */
	CSINK_LOSS_RULES,     /* at rules that the walker does not follow */
	CSINK_LOSS_THREADS,   /* threads that could not be sampled (see their flags) */
	CSINK_LOSS_MOMENTS,   /* samples that the timeline has no room for */
	CSINK_LOSS_STUCK,     /* threads that were not sampled on, since nothing else was done in them */
	CSINK_LOSS_SWITCHED,  /* stacks from outside that end where the thread came from another stack, of which there
				 is no copy */
	CSINK_NR_LOSSES
};

/* Of samples of allocations. */
enum csink_alloc_loss {
	CSINK_ALLOC_LOSS_FULL,   /* not in what is in use: no place in the table of live ones */
	CSINK_ALLOC_LOSS_THREAD, /* not taken: in a thread that is not known, or before and after a thread's life */
	CSINK_NR_ALLOC_LOSSES
};

enum csink_rec_state {
	CSINK_REC_LIVE = 1, /* process running, or killed: what was committed counts */
	CSINK_REC_EXITED,   /* last flush done at exit */
	CSINK_REC_EXECED,   /* last flush done before exec; the next image of this pid follows */
};

struct csink_rec_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* CSINK_REC_HEADER_BYTES */
	uint32_t nr_blocks;    /* handed out so far, header included; atomic */
	uint32_t nr_events;

	uint32_t state; /* enum csink_rec_state; atomic */
	uint32_t seq;   /* image number of this pid within the run, from 0 */
	int32_t pid;    /* in the process's own pid namespace */
	int32_t ppid;
	uint32_t engine;         /* enum csink_engine in use for the main thread */
	uint32_t unwind;         /* enum csink_unwind */
	char engine_reason[160]; /* why this engine and not a better one; "" if it is the best */
	char unwind_reason[160];

	uint64_t start_realtime_ns;  /* CLOCK_REALTIME at our constructor (or fork) */
	uint64_t start_monotonic_ns; /* CLOCK_MONOTONIC there */
	uint64_t end_monotonic_ns;   /* at the last flush; while live: stored every 100 ms of activity */
	/*
	 * CLOCK_PROCESS_CPUTIME_ID. start: CPU time the kernel had accounted to this process before we were there (exec
	 * and the dynamic loader; after exec it includes the former images of the pid, 0 after fork). end: at the last
	 * flush. end - start - (the sum of all weights) is CPU time that no sample covers (our own set-up, thread start
	 * and exit).
	 */
	uint64_t cpu_start_ns;
	uint64_t cpu_end_ns;

	uint64_t losses[CSINK_NR_LOSSES];    /* atomic counts */
	uint64_t unstored[CSINK_MAX_EVENTS]; /* weight of samples that could not be stored */
	struct csink_rec_event events[CSINK_MAX_EVENTS];

	char comm[16];
	char exe[512];      /* readlink /proc/self/exe; "" unknown */
	char cmdline[1024]; /* arguments, each ended by NUL, cut to size */
	/* What the environment had of the variables of CSINK_RANK_NUMBERS and _SIZES; "": not set. */
	char rank_values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES];

	/* CSINK_REC_COLLECTED (_WHOLE: the process had ended before), set by the process that collects and removes the
	 * file while the writer goes on, which then keeps what it adds (finish.c). */
	uint32_t collected;
	/* Of the header's rest, how much forked children without a recording asked for; atomic. Blocks are handed out
	 * by one process alone: what its children add is here, as SPAWN entries, up to the header's end. */
	uint32_t children_bytes;

	/*
	 * Of each event, how often it was to be sampled, where that was more than a thread or the kernel tolerates, so
	 * that it came to be sampled less often: a period, or (event.period is 0) a frequency; and what it is now.
	 * asked 0: as asked.
	 */
	struct csink_rec_rate {
		uint64_t asked, now;
		uint64_t why; /* enum csink_rate_why */
	} rates[CSINK_MAX_EVENTS];

	/*
	 * What was collected of a process that goes on: a copy of the recording as it was then, which the collecting
	 * process has put behind all that the writer maps. Set before the mark in collected. A recording that has both
	 * is read as it was then. At its end the writer copies both and sets is_continued in its copy, which is read
	 * without what was in the recording at the cut.
	 */
	struct csink_rec_cut {
		uint64_t at, bytes;    /* of the file; bytes 0: there is none */
		uint64_t time_ns;      /* CLOCK_MONOTONIC */
		uint64_t is_continued; /* 1: a copy of the writer's; where it has no cut, the profile has all again */
	} cut;

	/* Of each event that is ALLOCATED, what was counted of it, of which the rows are an estimate; of IN_USE, 1 once
	 * its rows are there. Atomic. */
	uint64_t counted[CSINK_MAX_EVENTS];
	uint64_t alloc_losses[CSINK_NR_ALLOC_LOSSES];

	/* CLOCK_MONOTONIC: slices have all until then. Set by the process that writes them; atomic. */
	uint64_t saved_ns;
};

enum csink_rate_why {
	CSINK_RATE_NO_TIME,   /* samples took more than CSINK_MAX_SHARE of a thread's time */
	CSINK_RATE_THROTTLED, /* the kernel stopped it again and again */
	CSINK_RATE_MEASURED,  /* it was counted before the program began */
	CSINK_RATE_BUDGET,    /* samples took more than --budget of the CPU time; asked == now: it stays as it is */
	CSINK_RATE_REGAINED,  /* they did for some time; it is again as asked for */
};

enum csink_extent_kind { CSINK_EXTENT_DATA = 0xda7a };

struct csink_rec_extent {
	uint32_t kind;      /* enum csink_extent_kind; 0: handed out, never used */
	uint32_t nr_blocks; /* length of the extent */
};

enum csink_entry_type {
	CSINK_ENTRY_MODULE = 1,
	CSINK_ENTRY_THREAD,
	CSINK_ENTRY_NODES,
	CSINK_ENTRY_ROW,
	CSINK_ENTRY_NOTE,
	CSINK_ENTRY_SPAWN,
	CSINK_ENTRY_TIMELINE,
	CSINK_ENTRY_PHASE,
	CSINK_ENTRY_CELLS,
	CSINK_ENTRY_CODE,
	CSINK_ENTRY_IMAGE,
	CSINK_ENTRY_WAIT,
};

struct csink_entry {
	uint32_t bytes; /* with this head; a multiple of 8 */
	uint16_t type;  /* enum csink_entry_type; 0: not committed */
	uint16_t aux;   /* by type */
};

/* A mapped object. Several may share addresses at different times: the one with the larger load_ns that is not later
 * than the root of a stack applies. */
struct csink_rec_module {
	struct csink_entry head;
	uint64_t bias;  /* link_map's l_addr: run-time address = bias + the file's p_vaddr */
	uint64_t start; /* first and last + 1 run-time address of the executable segments */
	uint64_t end;
	uint64_t file_offset; /* of start's segment: p_offset (page aligned as mapped) */
	uint64_t load_ns;     /* CLOCK_MONOTONIC of first sighting */
	uint64_t unload_ns;   /* 0: still there when last looked */
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0: none */
	uint8_t is_vdso;
	uint16_t path_len;
	char path[]; /* NUL-ended; "[vdso]" */
};

enum csink_thread_flags {
	CSINK_THREAD_MAIN = 1 << 0,
	CSINK_THREAD_ENDED = 1 << 1,
	CSINK_THREAD_NOT_SAMPLED = 1 << 2, /* nothing could be opened for it */
	CSINK_THREAD_RENAMED = 1 << 3,     /* a thread that had the entry before had another name */
	CSINK_THREAD_STOPPED = 1 << 4,     /* it is not sampled any more: it is traced, or its calls are dispatched */
};

/*
 * Once this part of the recording is used, a thread goes on with the entry of one that has ended, and with its rows:
 * name, TID and flags are those of the latest thread, numbers are sums.
 */
#define CSINK_THREAD_SHARED_FROM 4 /* a quarter */

struct csink_rec_thread {
	struct csink_entry head;
	int32_t tid;
	uint32_t flags;     /* enum csink_thread_flags */
	uint32_t engine;    /* enum csink_engine */
	uint32_t nr_former; /* threads that had the entry before */
	char name[16];
	uint64_t nr_samples;
	uint64_t cpu_ns;    /* CPU time since the start by their own clocks, at the last flush; 0 unknown */
	uint64_t former_ns; /* of it, those of the threads that had the entry before */
	uint64_t stolen_ns; /* of former threads: by how much totals[] of CPU time are more than their clocks */
	uint64_t totals[CSINK_MAX_EVENTS]; /* counts at the last sample or flush: equal to the sum of its rows */
};

/*
 * The callers of a leaf, as a tree: a node is one caller's address, and below it lie those that it called. A stack of
 * callers is its innermost node; stacks that begin alike share what they have in common. At the top of each is a root,
 * which has no address and says since when its nodes' addresses mean what they mean. A node is never changed or
 * removed.
 */
#define CSINK_FRAME_EXACT                                                                                              \
	(1ULL << 63) /* the address is of the instruction itself (a frame that a signal interrupted) */
/*
 * A frame of an interpreter: bits 32 to 61 are the reference of its function's CSINK_ENTRY_CODE, bits 0 to 31 the
 * position in the function, or CSINK_CODE_NOT_BEGUN. With EVALUATED the next frame inwards (or the leaf) is the native
 * code that ran it, and is not shown.
 */
#define CSINK_FRAME_CODE (1ULL << 62)
#define CSINK_FRAME_EVALUATED CSINK_FRAME_EXACT
#define CSINK_CODE_NOT_BEGUN UINT32_MAX
enum csink_chain_flags {
	CSINK_CHAIN_TRUNCATED = 1 << 0, /* cut at the depth limit */
	CSINK_CHAIN_BROKEN = 1 << 1,    /* the unwinder gave up before the first frame */
};

struct csink_rec_node {
	uint64_t pc;        /* a return address; of a root, CLOCK_MONOTONIC: since then no object has left its place */
	csink_ref_t parent; /* its caller's node; 0: a root */
	uint32_t flags;     /* of a root: enum csink_chain_flags */
};

/* Nodes that one thread was the first to meet. */
struct csink_rec_nodes {
	struct csink_entry head;
	uint32_t nr; /* written so far; atomic; the entry's size says how many there is room for */
	uint32_t reserved;
	struct csink_rec_node nodes[];
};

/* From outside: in the kernel, between an exec and the program's first instruction. No instruction is there. */
#define CSINK_LEAF_IN_EXEC 1

/* What one thread spent at one leaf address under one stack of callers. Written by that thread alone, with relaxed
 * stores. */
struct csink_rec_row {
	struct csink_entry head; /* aux: phase */
	csink_ref_t thread;
	csink_ref_t node; /* 0: no callers are known */
	uint64_t leaf;    /* exact address of the interrupted instruction, CSINK_LEAF_IN_EXEC, or 0: none (see below)
			   */
	uint64_t nr_samples;
	uint64_t weights[]; /* header.nr_events of them */
};
/*
 * Leaf 0 is a thread's remainder that no sample can show: its last, partial period when nothing was sampled before it;
 * from outside also a sample that came without registers.
 * Its callers are none, or the function that the thread was started with. Later remainders are added to the thread's
 * latest row.
 */

/*
 * The same for less room, since most stacks are met a few times only: rows of one thread in one phase, whose numbers
 * are small. What outgrows its cell goes on in a row or cell of its own; the sum is what counts.
 */
struct csink_rec_cell {
	csink_ref_t node;
	uint32_t leaf_low;
	uint16_t leaf_high; /* bits 32 to 47; other leaves have rows */
	uint16_t nr_samples;
	uint32_t weights[]; /* header.nr_events of them */
};

struct csink_rec_cells {
	struct csink_entry head; /* aux: phase */
	csink_ref_t thread;
	uint32_t nr;  /* cells written so far; atomic */
	char cells[]; /* csink_cell_bytes() each */
};

/* A multiple of 8: cells have references, too. */
static inline uint32_t csink_cell_bytes(uint32_t nr_events)
{
	return (uint32_t)(sizeof(struct csink_rec_cell) + nr_events * sizeof(uint32_t) + 7) & ~7u;
}

/*
 * How long one stack waited for a lock while another one held it (`-e lock`). Both are rows or cells, whose stacks
 * alone count here. Atomic sums; there may be several of the same. Also what is in use at the end (`-e alloc`): bytes
 * and objects are in the place of time and number.
 *
 * With --timeline, a longer wait that ended when its last holder released the lock has an entry of its own beside the
 * sums: its contentions are CSINK_WAIT_DATED, its delay_ns is the time of the release.
 */
struct csink_rec_wait {
	struct csink_entry head;
	uint32_t waiter;      /* twice the reference, and 1 for a row */
	uint32_t holder;      /* the same, of the stack that released the lock; or one of enum csink_wait_holder */
	uint64_t lock;        /* its address */
	uint64_t delay_ns;    /* CLOCK_MONOTONIC */
	uint64_t contentions; /* waits that began with this holder */
	/*
	 * Waits that have not ended: how many in the lower CSINK_WAIT_OPEN_BITS, in the others the sum of when they
	 * began, us of CLOCK_MONOTONIC, of which the upper bits are lost: of the difference to a later time, none is.
	 * One number, so that both are right whenever the process ends. Atomic.
	 */
	uint64_t open;
};
#define CSINK_WAIT_OPEN_BITS 14
#define CSINK_WAIT_DATED (1ULL << 63)
/* Shorter waits are not dated; nor are any less than twice as long, once there are so many, and so on. */
#define CSINK_WAIT_DATED_NS 50000
#define CSINK_WAIT_DATED_BITS 14
#define CSINK_WAIT_DATED_LEAST_NS(nr_dated)                                                                            \
	((uint64_t)CSINK_WAIT_DATED_NS << CSINK_MIN((nr_dated) >> CSINK_WAIT_DATED_BITS, 30))
#define CSINK_WAIT_MAX_APART 32768 /* of a process: sums for a waiter, holder and lock of their own */
#define CSINK_WAIT_OTHER_LOCKS 0   /* in place of an address: all for which there was no more room */
enum csink_wait_holder {
	CSINK_WAIT_UNKNOWN,   /* it released the lock in a way that was not seen */
	CSINK_WAIT_HAND_OFF,  /* the lock was free, the waiter not on a CPU yet */
	CSINK_WAIT_CONDITION, /* a thread that went on to wait for a condition */
	CSINK_WAIT_IN_USE, /* no wait: what is in use at the end of an allocation by this stack, in bytes and objects */
	CSINK_WAIT_MADE, /* no wait: open is the address behind the call that initialised the lock, waiter its stack or
			    0 */
	CSINK_WAIT_OTHERS, /* another process: of a lock that processes share */
	/* Waits for locks that have not ended; the sums are of those whose lock was not released since they ended. */
	CSINK_WAIT_NOT_ENDED,
	/* No holder ends the wait; the lock is the object that was waited for, but of JOIN. */
	CSINK_WAIT_SEMAPHORE,
	CSINK_WAIT_JOIN, /* for a thread's end */
	CSINK_WAIT_BARRIER,
	CSINK_WAIT_FUTEX,     /* in syscall(2) */
	CSINK_WAIT_SIGNALLED, /* for a condition */
	CSINK_WAIT_NR_HOLDERS
};

/* When samples were taken (--timeline): a chunk of one thread's, in order. The rows hold these weights, too. */
#define CSINK_MOMENT_WEIGHT_BITS 56
struct csink_rec_moment {
	csink_ref_t row;       /* or a cell */
	uint32_t delta_us;     /* since the moment before it; of the first one, since base_ns */
	uint64_t event_weight; /* index of the event in the upper 8 bits, what the sample weighed in the others */
};
struct csink_rec_timeline {
	struct csink_entry head;
	csink_ref_t thread;
	csink_ref_t next; /* of the thread's, the one after this; 0: none yet */
	uint64_t base_ns; /* CLOCK_MONOTONIC; another one: the thread has begun it anew, since slices have all of it */
	uint32_t nr;      /* moments written so far; atomic; there is room for more */
	uint32_t reserved;
	struct csink_rec_moment moments[];
};
/* A moment may be stored so much later than it was, at most: slices until then have those from before. */
#define CSINK_MOMENT_LATE_NS 1000000000ULL

#define CSINK_CODE_MAX_TABLE (64U << 10) /* bytes of a function's line table; longer ones are not recorded */

/*
 * A function of an interpreter, as it was at its first sample. aux: enum csink_code_kind. The name of a file that a
 * program loads by a relative name is relative to the directory that the process was in then, which is not known. Up to
 * two directories, each ended by NUL, follow such a name: that in which the process's first interpreter was found (of a
 * forked process, its parent's), and that in which the process was at the function's first sample.
 */
struct csink_rec_code {
	struct csink_entry head;
	uint32_t first_line;
	uint32_t nr_table;    /* bytes of the line table; 0: there is none, or none here */
	uint16_t nr_names;    /* bytes of text before the line table */
	uint16_t lacks_table; /* 1: there is one, but it was too long, or could not be read */
	char text[]; /* the function's name, NUL, its file, NUL; a relative file's directories; then the line table */
};

/* The language, and how it counts positions and writes its line table. */
enum csink_code_kind {
	CSINK_CODE_PYTHON_LNOTAB,    /* to 3.9: pairs of bytes: increments of the position and of the line */
	CSINK_CODE_PYTHON_LINES,     /* 3.10: pairs of bytes; a line increment of -128 means code without a line */
	CSINK_CODE_PYTHON_LOCATIONS, /* from 3.11: entries of one or more bytes */
	CSINK_CODE_PHP,              /* the position is the line, 0 if it is not known; there is no table */
	CSINK_CODE_PERL,             /* likewise */
	CSINK_CODE_RUBY,             /* likewise */
	CSINK_CODE_V8,         /* the table is a struct csink_rec_v8_lines, or its first two numbers: then there are no
				  positions */
	CSINK_CODE_HOTSPOT,    /* positions are of bytecodes; increments of position and line, ending with 0 */
	CSINK_CODE_HOTSPOT_20, /* from JDK 20: the same, with numbers of bytes that are never 0 */
	CSINK_NR_CODE_KINDS
};

/*
 * An ELF image that a just-in-time compiler registered with debuggers, which describes its code. A frame in that code
 * has the reference of the image in place of a CSINK_ENTRY_CODE's, and as its position twice the distance of its
 * address from the base, plus 1 if the address is exact.
 */
struct csink_rec_image {
	struct csink_entry head;
	uint64_t base;     /* the lowest run-time address of its code */
	uint32_t nr_image; /* bytes */
	uint32_t reserved;
	uint8_t image[];
};
#define CSINK_IMAGE_MAX_SPAN (1U << 31) /* addresses farther from the base have no position */

/*
 * The line table of a function of JavaScript, as V8 has it: bytes that are numbers of seven bits each, the lowest
 * first, and another one follows if bit 7 is set. Behind this: nr_positions bytes, pairs of signed increments (bit 0 is
 * the sign, and then the others are those of -1 - n): of the offset in the bytecodes, from -1, where the sign is a
 * flag, and of twice the place in the script (and 2). If nr_bytecodes is not 0, the bytecodes follow, and then the
 * bytes of unsigned numbers: how much code the function's entry became, and then each bytecode; positions are in that
 * code, at the end of an instruction. Otherwise they are in the bytecodes.
 */
struct csink_rec_v8_lines {
	uint32_t start, length; /* of the function in its script, and the script's length, in UTF-16 code units */
	uint32_t version;       /* of V8: major << 16 | minor */
	uint32_t nr_positions, nr_bytecodes;
};

/* Something the user must know, once. aux: enum csink_note_kind. */
enum csink_note_kind {
	CSINK_NOTE_INFORMATION,
	CSINK_NOTE_WARNING,
	CSINK_NOTE_OUTPUT, /* for no user: without a launcher, where the run's first process has its profile made */
};
struct csink_rec_note {
	struct csink_entry head;
	char text[]; /* NUL-ended, one line */
};

/* The name of a phase, which rows have as a number. aux: the number; two may have one name. */
struct csink_rec_phase {
	struct csink_entry head;
	char name[]; /* NUL-ended */
};
#define CSINK_PHASE_OFF 1 /* no phase, but what the program did not want to be profiled: time without stacks */
#define CSINK_PHASE_INJECTED                                                                                           \
	UINT16_MAX          /* no phase: sampled from outside while the library was there, which may have recorded it */
#define CSINK_PHASE_FIRST 2 /* that a program can name; 0: none */

/* The process started a program that cannot be injected, or became one by exec. */
struct csink_rec_spawn {
	struct csink_entry head; /* aux: enum csink_spawn_reason; 0: withdrawn, it could not be started */
	int32_t pid;
	uint32_t reserved;
	char path[]; /* NUL-ended */
};
enum csink_spawn_reason {
	CSINK_SPAWN_STATIC = 1,
	CSINK_SPAWN_SETUID,
	CSINK_SPAWN_OTHER_ABI,
	CSINK_SPAWN_NO_REACH,     /* our library or the run directory is out of its reach: chroot, other credentials */
	CSINK_SPAWN_NOT_FOLLOWED, /* --follow */
	CSINK_SPAWN_OWN,          /* a child of ours, not the program's */
	CSINK_SPAWN_OLDER_LIBC,   /* its glibc lacks versions that our library needs */
	CSINK_SPAWN_UNREADABLE,   /* its file may be executed and not read: the kernel ends its events at exec. It may
				     have been injected all the same: then it has a recording */
	CSINK_SPAWN_EVENTS_ENDED  /* not recorded: the kernel ended its events at exec, for one of these reasons */
};

_Static_assert(sizeof(struct csink_rec_header) <= CSINK_REC_HEADER_BYTES, "the header must fit its blocks");
_Static_assert(sizeof(struct csink_rec_header) % 8 == 0, "entries follow the header");
_Static_assert(sizeof(struct csink_entry) == 8, "an entry's head is committed with one store");

#endif
