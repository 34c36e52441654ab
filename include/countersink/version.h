/*
 * The version of the C API: of the headers beside this one, and of libcountersink-api. It changes with the API, not
 * with each release of countersink. While MAJOR is 0, a change of MINOR may be incompatible.
 */
#ifndef COUNTERSINK_VERSION_H
#define COUNTERSINK_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Of the headers that a program was compiled with. */
#define CSINK_API_MAJOR 0
#define CSINK_API_MINOR 1
#define CSINK_API_VERSION (CSINK_API_MAJOR * 1000 + CSINK_API_MINOR)

/** Returns CSINK_API_VERSION of the library that the program runs with. Context: any; async-signal-safe. */
unsigned csink_api_version(void);

#ifdef __cplusplus
}
#endif

#endif
