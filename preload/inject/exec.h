/* What an exec by any way needs before it and after it has failed. */
#ifndef CSINK_INJECT_EXEC_H
#define CSINK_INJECT_EXEC_H

#include <stdbool.h>

/** Stop and flush what an exec would take with it. Returns what csink_exec_failed must be told. Context: thread; also
 * in a vfork child. */
bool csink_exec_prepare(void);

/** The exec returned @result: go on as before. errno is kept. Returns @result. Context: thread. */
int csink_exec_failed(bool prepared, int result);

#endif
