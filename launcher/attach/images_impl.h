/* What the images*.c files share; no other file includes this. */
#ifndef CSINK_IMAGES_IMPL_H
#define CSINK_IMAGES_IMPL_H

#include <stdio.h>

#include "launcher/attach/images.h"

/** Add an image, with no names yet. NULL: no memory, which is remembered. @number  its place in images->at. */
struct csink_attach_image *csink_attach_image_new(struct csink_attach_images *images, int32_t pid, uint64_t time_ns,
						  uint32_t *number);

/** Add a thread of an image; the former owner of its TID, if any, has ended. NULL: no memory. */
struct csink_attach_living *csink_attach_thread_new(struct csink_attach_images *images, uint32_t number, int32_t tid,
						    const char *name, uint64_t time_ns);

/** Read an image's executable, arguments and rank from /proc. What cannot be read stays as it is. */
void csink_attach_image_read_names(struct csink_attach_image *image);

/** Read an image's parent and root from /proc, where its process is there still. */
void csink_attach_image_read_place(struct csink_attach_image *image);

/** Whether what is mapped under that name is an object, which may have symbols. */
bool csink_attach_is_object(const char *path);

/** As the kernel cuts names, to 15 characters. */
static inline void csink_attach_copy_comm(char *to, const char *from)
{
	snprintf(to, 16, "%.15s", from);
}

#endif
