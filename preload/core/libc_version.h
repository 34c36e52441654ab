/*
 * The C library of a program that is about to be started, by the program's loader. A glibc that is older than the one
 * that our library was linked with refuses it ("version `GLIBC_2.34' not found"), and with it the program: such a
 * program must not be given our entry in LD_PRELOAD. It occurs in a chroot or container, or with a loader of another
 * place.
 */
#ifndef CSINK_LIBC_VERSION_H
#define CSINK_LIBC_VERSION_H

#include <stdbool.h>

/**
 * Name our library, whose needs are compared; until then every loader suits.
 * @file    its path, which stays; NULL: not known.
 * @loader  path of a loader that suits, which costs no more than a stat(2) later; NULL: none is known.
 * Context: init.
 */
void csink_libc_version_init(const char *file, const char *loader);

/**
 * Does the glibc of a loader define all versions that our library needs? True if that cannot be determined. What was
 * found of a file is remembered.
 * @path  of the loader, as the kernel opens it.
 * Context: thread; also in a vfork child.
 */
bool csink_libc_suits(const char *path);

/** The same for a loader that is open. Context: thread; also in a vfork child. */
bool csink_libc_suits_fd(int fd);

#endif
