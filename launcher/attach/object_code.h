/*
 * The instructions of an object, for walks through code that no table covers. They are read from the file when they are
 * first asked for, as long as it is the file that was mapped.
 */
#ifndef CSINK_OBJECT_CODE_H
#define CSINK_OBJECT_CODE_H

#include <stddef.h>
#include <sys/stat.h>

#include "launcher/attach/objects.h"

struct csink_object_code;

/**
 * Begin: nothing is read yet.
 * @file    of the object, as it is now; NULL: the object's bytes are in memory, for good
 * @memory  where, if they are; bytes: how many
 * Returns NULL without memory.
 */
struct csink_object_code *csink_object_code_new(const struct stat *file, const void *memory, uint64_t bytes);

/**
 * Copy instructions at an object's own address. Returns how many bytes: fewer where the code ends, none where there is
 * no code or it cannot be read. Context: thread; one thread only.
 */
size_t csink_object_code_read(const struct csink_attach_object *object, uint64_t vaddr, void *to, size_t bytes);

void csink_object_code_free(struct csink_object_code *code);

#endif
