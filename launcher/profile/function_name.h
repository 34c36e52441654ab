/* Readable names of functions from the symbols of the linker: see function_name.c. */
#ifndef CSINK_FUNCTION_NAME_H
#define CSINK_FUNCTION_NAME_H

#include "launcher/profile/profile.h"

/**
 * Fill in name and system_name from a symbol as the linker knows it: demangled, without parameters, without version and
 * without what compilers append to parts of a function (.cold, .constprop.0).
 * @suffix  appended to the name ("@plt"), or "".
 */
void csink_symbol_name(struct csink_profile *p, const char *symbol, const char *suffix,
		       struct csink_profile_function *function);

/**
 * A symbol's name with its parameters, to distinguish overloads; the symbol itself where that costs too much
 * (demangle.h).
 * Returns a malloc'ed string, or NULL if the symbol is not mangled.
 */
char *csink_symbol_signature(const char *symbol);

#endif
