/* Images of code made at run time, as their makers registered them with debuggers, are made readable as files are. */
#ifndef CSINK_JIT_IMAGES_H
#define CSINK_JIT_IMAGES_H

#include <stddef.h>
#include <stdint.h>

/**
 * Link an image in place: run-time addresses are put into its symbols and its debug information, and it becomes one of
 * type ET_EXEC. Debug information that cannot be relocated is left out.
 * @image  may have any content; aligned to 8.
 * Returns 0, or -ENOEXEC: it is none. Context: any.
 */
int csink_jit_image_link(uint8_t *image, size_t bytes);

#endif
