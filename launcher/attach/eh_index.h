/*
 * An index of .eh_frame for objects that have none: .eh_frame_hdr is missing where the linker was not asked for it, as
 * `gcc -static` does not ask. The index has the form of .eh_frame_hdr, so that one search serves both.
 */
#ifndef CSINK_EH_INDEX_H
#define CSINK_EH_INDEX_H

#include "launcher/attach/object_file.h"
#include "launcher/attach/objects.h"

/**
 * Find .eh_frame, by its section's header, or else by looking through the segments for what has its form; copy it, and
 * make the index: object->table, table_bias and copy. The object's code segments are known.
 * @room  how many bytes may be copied. Returns how many were; 0: there is no such table.
 */
uint64_t csink_eh_index_make(struct csink_attach_object *object, const struct csink_object_file *file, uint64_t room);

/**
 * The same for an object for 32-bit mode, whose entries are rewritten (eh_frame_32.h).
 * @hdr  segment of .eh_frame_hdr, which says where .eh_frame is if no section does; NULL: none
 */
uint64_t csink_eh_index_make_32(struct csink_attach_object *object, const struct csink_object_file *file,
				const ElfW(Phdr) * hdr, uint64_t room);

#endif
