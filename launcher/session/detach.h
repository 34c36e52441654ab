/* A process that goes on in the background of the program whose library started it. */
#ifndef CSINK_DETACH_H
#define CSINK_DETACH_H

/**
 * Leave the session, files and directory of that program, which must wait neither for our end nor for ours of its
 * pipes; and neither its urgency nor its protection from a lack of memory is ours.
 * @nr_kept  how many descriptors behind the standard streams stay open. Context: init.
 */
void csink_detach(int nr_kept);

#endif
