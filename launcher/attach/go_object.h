/* The table of Go that an object has, copied: what walks of its stacks ask. */
#ifndef CSINK_GO_OBJECT_H
#define CSINK_GO_OBJECT_H

#include "launcher/attach/object_file.h"
#include "launcher/attach/objects.h"
#include "preload/core/go_table.h"

/**
 * Copy the table to object->go, if there is one.
 * @room  how many bytes may be copied. Returns how many were.
 */
uint64_t csink_go_object_make(struct csink_attach_object *object, const struct csink_object_file *file, uint64_t room);

#endif
