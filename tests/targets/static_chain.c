/* chain.c, linked statically: nothing can be injected into it. */
#include "tests/targets/chain.c"
