/*
 * What the plugin for qemu-user (preload/qemu/count_blocks.c) writes and the gate reads (launcher/gate/qemu_read.c):
 * how often each block of a simulated program was executed.
 *
 * A directory holds a run. "blocks" is shared by the command and what it forks: what was translated, in order of
 * translation. "counts.PID" is one process's: a number of executions for each block. Both are mapped, so they are whole
 * whatever ends the process; both are sparse and of the machine's own byte order. The gate reads after the
 * command has ended.
 */
#ifndef CSINK_SIMULATED_COUNTS_H
#define CSINK_SIMULATED_COUNTS_H

#include <stdint.h>

#define CSINK_SIM_BLOCKS "blocks"
#define CSINK_SIM_COUNTS "counts." /* followed by the process's number */
#define CSINK_SIM_MAGIC 0x31636b6c42736e43ULL
#define CSINK_SIM_VERSION 1

#define CSINK_SIM_MAX_TEXT (1U << 20)
#define CSINK_SIM_MAX_BLOCKS (1U << 21)
#define CSINK_SIM_MAX_SIZES (1U << 25)

enum csink_sim_text {
	CSINK_SIM_FILE = 'f',    /* a file that blocks are in */
	CSINK_SIM_PROGRAM = 'x', /* a program that was executed in place of a simulated process: not simulated */
	CSINK_SIM_NOTHING = '-', /* a program that could not be executed */
};

/*
 * Written by several processes at once. Numbers only grow; they are taken with atomic additions, and may exceed what
 * there is room for: what has no room is counted as lost.
 */
struct csink_sim_head {
	uint64_t magic;
	uint32_t version, reserved;
	uint32_t nr_text, nr_blocks, nr_sizes;
	uint32_t nr_lost_blocks;    /* translated, and not counted */
	uint32_t nr_lost_processes; /* forked, and not counted */
	uint32_t nr_lost_programs;  /* executed, and not named */
	uint32_t has_threads;       /* a process had several: counters are not atomic */
	uint64_t nr_calls;          /* system calls that were begun, of all processes */
};

struct csink_sim_block {
	uint64_t offset; /* of its first instruction, in the file */
	uint64_t target; /* likewise, of the code that it calls or jumps to at its end; 0: none, or unknown */
	uint32_t file;   /* where its text is (kind, path, NUL); UINT32_MAX: no file is mapped there */
	uint32_t sizes;  /* where those of its instructions are, a byte each */
	uint32_t nr;     /* instructions; 0: not written yet */
	uint32_t reserved;
};

/* The places in "blocks". */
#define CSINK_SIM_TEXT_AT 4096U
#define CSINK_SIM_BLOCKS_AT (CSINK_SIM_TEXT_AT + CSINK_SIM_MAX_TEXT)
#define CSINK_SIM_SIZES_AT (CSINK_SIM_BLOCKS_AT + CSINK_SIM_MAX_BLOCKS * (uint64_t)sizeof(struct csink_sim_block))
#define CSINK_SIM_BYTES (CSINK_SIM_SIZES_AT + CSINK_SIM_MAX_SIZES)

#define CSINK_SIM_COUNTS_BYTES (CSINK_SIM_MAX_BLOCKS * (uint64_t)sizeof(uint64_t))

_Static_assert(sizeof(struct csink_sim_block) == 32, "the layout is the same for both sides");

#endif
