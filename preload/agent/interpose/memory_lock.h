/* mlockall(2): see memory_lock.c. */
#ifndef CSINK_MEMORY_LOCK_H
#define CSINK_MEMORY_LOCK_H

/** mlockall(2) by its number, without what is the library's own. Returns 0, or -1 with errno. Context: thread. */
long csink_memory_lock(int flags);

#endif
