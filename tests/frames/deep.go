// Works at a fixed depth: `deep DEPTH SECONDS` runs below so many functions of Go, `deep DEPTH SECONDS c` below so many of C on the
// thread's own stack.
package main

// #include <stdint.h>
// #include <stdlib.h>
// #include <time.h>
// static volatile uint64_t sum;
// static double used(void) { struct timespec now; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); return now.tv_sec + now.tv_nsec / 1e9; }
// static __attribute__((noinline)) int c_deep(int depth, double until) {
//	volatile int below = depth > 1 ? c_deep(depth - 1, until) + 1 : 0; // a call, not a loop
//	while (used() < until)
//		for (int i = 0; i < 1000000; i++) sum += i;
//	return below;
// }
// static int c_main(int depth, double seconds) { return c_deep(depth, seconds); }
import "C"

import (
	"os"
	"runtime"
	"strconv"
)

var sum uint64

//go:noinline
func deep(depth int, until float64) int {
	if depth > 1 {
		return deep(depth-1, until) + 1
	}
	for float64(C.used()) < until {
		for i := uint64(0); i < 1000000; i++ {
			sum += i
		}
	}
	return 0
}

func main() {
	runtime.LockOSThread()
	depth, _ := strconv.Atoi(os.Args[1])
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	if len(os.Args) > 3 {
		C.c_main(C.int(depth), C.double(seconds))
	} else {
		deep(depth, seconds)
	}
	C.exit(0) // with the destructors of C, which Go's own exit does not run
}
