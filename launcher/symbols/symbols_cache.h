/*
 * Names that were found before, kept in $XDG_CACHE_HOME/countersink (or ~/.cache) for objects whose debug information
 * takes long to read, and for removed objects. The directory must be the user's alone (another one is not used),
 * has 256 MB at most, and may be removed at any time; what is damaged in it is ignored.
 *
 * A file holds answers: ranges of addresses, as the object's headers count them, each with the lines that all of its
 * addresses share. One sample in a unit therefore answers for the whole unit the next time. A file is named after the
 * object's build-id and its source, which says what the answers were made from: if one of the files has changed since,
 * or countersink itself, there is another file.
 */
#ifndef CSINK_SYMBOLS_CACHE_H
#define CSINK_SYMBOLS_CACHE_H

#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"

struct csink_answers;
struct csink_symbols_file;

struct csink_symbols_cache {
	char path[4096]; /* of the file; "": there is no directory for it, or any file will do */
	char source[512];
	bool in_memory; /* what is put is known to this cache at once, whether or not there is a directory */
	struct csink_symbols_file *known; /* NULL: nothing is known */
};

/**
 * Open what is known of an object. @source  says which files the names come from; NULL: any will do.
 * Nothing is known, and nothing will be kept, if the object has no build-id or there is no directory.
 * csink_symbols_cache_close it in any case. in_memory stays as it is.
 */
void csink_symbols_cache_open(struct csink_symbols_cache *cache, const struct csink_object *object, const char *source);

/**
 * Name the wants that are known. They are moved behind the others.
 * @flags  enum csink_symbols_found of those are added.
 * Returns how many are left.
 */
uint32_t csink_symbols_cache_take(const struct csink_symbols_cache *cache, struct csink_profile *p,
				  struct csink_want *wants, uint32_t nr_wants, int *flags);

/**
 * Write new answers, together with the known ones, to a new file that replaces the old one by rename: a reader has the
 * old file or the new one. If two runs write at once, one file is kept. A directory that cannot be written is no error.
 * @answers   nr arrays of them, each sorted; no address is in two
 * @is_whole  no address that has no answer is in the object's debug information
 */
void csink_symbols_cache_put(struct csink_symbols_cache *cache, const struct csink_answers *answers, uint32_t nr,
			     bool is_whole);

/** Whether what has no answer is not in the object's debug information either: only symbol tables can name it. */
bool csink_symbols_cache_is_whole(const struct csink_symbols_cache *cache);

void csink_symbols_cache_close(struct csink_symbols_cache *cache);

#endif
