/* This library's own memcpy(3), mmap(2), clock_gettime(3) and so on: see plain.c. No other object sees them. */
#ifndef CSINK_PLAIN_H
#define CSINK_PLAIN_H

/** Find what needs finding. Until then a clock takes a system call. Context: init. */
void csink_plain_init(void);

#endif
