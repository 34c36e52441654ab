/*
 * Code of an object that is mapped a second time. V8 (of node from version 20 on) maps the pages of its builtin
 * functions again, next to the code that it compiles: a call between them then needs no far jump. The dynamic linker
 * does not know that mapping, so it is in no list of objects. It is found in /proc/self/maps, and becomes a module of
 * the recording with the object's path: the launcher names the addresses in it by the object's symbols.
 */
#ifndef CSINK_CODE_COPIES_H
#define CSINK_CODE_COPIES_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/agent/unwind/modules.h"

/** Start in a process or a forked child: no copy is known, and none is looked for. Context: init. */
void csink_code_copies_begin(void);

/**
 * What is called before a descriptor is opened in the program's table, and after it was closed: those of fd_guard.h, a
 * room above this one. If the first returns false, nothing is opened now. Context: init.
 */
void csink_code_copies_set_guard(bool (*may_open)(void), void (*have_closed)(void));

/** Call them, around a descriptor for another purpose. Context: signal. */
bool csink_code_copies_may_open(void);
void csink_code_copies_have_closed(void);

/** Look for copies of this object's code from now on. Context: signal. */
void csink_code_copies_want(const struct csink_module *module);

/** The object was unloaded. Context: signal. */
void csink_code_copies_leave(const struct csink_module *module);

/**
 * Look, if copies are wanted and none has been found yet: more and more rarely, and once more at the program's end.
 * Context: signal; makes system calls.
 */
void csink_code_copies_poll(struct csink_recording *rec, struct csink_writer *writer, bool is_last);

/** Look now: a thread has begun to run code of the object, and may have a copy of its own. Context: as poll. */
void csink_code_copies_look(struct csink_recording *rec, struct csink_writer *writer);

/** Is the address in a copy? Context: signal. */
bool csink_code_copies_have(uintptr_t pc);

#endif
