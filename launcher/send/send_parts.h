/*
 * Parts of a profile that is too large for a server: halves, halves of halves, and so on. A part has a name of one
 * digit for each halving, the first one first: "" is the whole, "0" and "1" are its halves, "10" and "11" those of "1".
 * The halves are the same each time, so that the name of the part that comes next is all that must be remembered.
 */
#ifndef CSINK_SEND_PARTS_H
#define CSINK_SEND_PARTS_H

#include <stdbool.h>

struct csink_profile;

#define CSINK_SEND_HALVINGS 8 /* at most: 256 parts */

/**
 * Leave in a profile what is in that part of it: of several processes about half of the samples, process by process,
 * else half of the samples. Returns 0, -ENODATA (one sample cannot be halved) or -ENOMEM. Context: thread.
 */
int csink_send_part_take(struct csink_profile *p, const char *part);

/** Make a part's name that of its first half. False: there are too many halvings. Context: any. */
bool csink_send_part_halve(char part[CSINK_SEND_HALVINGS + 1]);

/** Make a part's name that of the one behind it, which is none of its own. False: it was the last. Context: any. */
bool csink_send_part_next(char part[CSINK_SEND_HALVINGS + 1]);

#endif
