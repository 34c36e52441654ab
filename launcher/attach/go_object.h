/* The table of Go that an object has, copied: what walks of its stacks ask. */
#ifndef CSINK_GO_OBJECT_H
#define CSINK_GO_OBJECT_H

#include "launcher/attach/object_file.h"
#include "launcher/attach/objects.h"

/* How a frame of a function of Go is left. */
struct csink_go_rule {
	int32_t offset;    /* bytes from the stack pointer to the return address */
	bool is_outermost; /* nothing called the function: a goroutine or a thread begins with it */
	bool switches;     /* the function may have gone to another stack meanwhile */
	bool schedules;    /* what ran on that stack may run on another thread by now */
	bool is_exact;     /* the return address is that of an interrupted instruction, not one behind a call */
};

/**
 * Copy the table to object->go, if there is one.
 * @room  how many bytes may be copied. Returns how many were.
 */
uint64_t csink_go_object_make(struct csink_attach_object *object, const struct csink_object_file *file, uint64_t room);

/** The rule at an object's own address. False: no function of Go is there, or its frame is not known. */
bool csink_go_object_rule(const struct csink_attach_object *object, uint64_t pc, struct csink_go_rule *rule);

#endif
