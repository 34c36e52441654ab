/*
 * Frames of Go. Its functions have no .eh_frame; Go's own table (preload/core/go_table.h) says how far the return
 * address is from the stack pointer. Goroutines have stacks of their own, which the runtime leaves for the thread's
 * stack and comes back to: those few functions are stepped over one by one. Context of everything here: signal, unless
 * it says otherwise.
 *
 *   go_module.c  where an object has the table, looked up once
 *   go_frames.c  rows, and steps from stack to stack
 */
#ifndef CSINK_GO_FRAMES_H
#define CSINK_GO_FRAMES_H

#include "preload/agent/unwind/cfi_row.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/go_table.h"

/**
 * Find the table of an object that has Go's mark, by its file if one may be opened. The object stays loaded meanwhile.
 * Some system calls.
 * @quiet  as in csink_module_scan(): no other thread uses numbers of descriptors meanwhile, either.
 */
void csink_go_module_find(struct csink_module_info *info, bool quiet);

/** Open it again. False: there is none. */
bool csink_go_module_open(const struct csink_module *module, struct csink_go_table *table);

/** The row of an address in Go's code; see csink_row_compile(). False: it is not in Go's code. */
bool csink_go_row(uintptr_t pc, bool exact, csink_row_t *row);

#endif
