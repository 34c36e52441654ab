/* Names of methods that compilers of Scala, Clojure and Kotlin made, as their users write them: see jvm_name.c. */
#ifndef CSINK_JVM_NAME_H
#define CSINK_JVM_NAME_H

#include <stddef.h>

/**
 * The readable name of a method of a class file.
 * @name  the class, a dot, and the method, as HotSpot has them.
 * @file  of its source: its ending is the language.
 * @out   room for a name that differs.
 * Returns @out, or @name: it is one of Java, has nothing to decode, or does not fit. Context: any.
 */
const char *csink_jvm_name(const char *name, const char *file, char *out, size_t size);

#endif
