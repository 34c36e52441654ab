/*
 * The interpreters among the objects that attached processes have mapped: recognized by the names that their files
 * define, once a file, whatever process has it. Runs in the attach command's one thread.
 */
#ifndef CSINK_INTERPRETERS_H
#define CSINK_INTERPRETERS_H

#include "launcher/attach/images.h"
#include "launcher/attach/object_file.h"
#include "launcher/collect/collect.h"

/** Set object->python or object->unread, if the file is an interpreter's. */
void csink_attach_interpreter_find(struct csink_attach_object *object, const struct csink_object_file *file);

/** The same for one whose file cannot be opened, as far as its name says. */
void csink_attach_interpreter_guess(struct csink_attach_object *object);

/** At the end, one note for each reason why frames of processes that were sampled are not read. */
void csink_attach_interpreters_note(const struct csink_attach_images *images, bool in_run,
				    struct csink_outside *outside);

#endif
