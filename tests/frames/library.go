// A library for programs that are not by Go: Work() uses CPU time on the caller's goroutine and on another one.
package main

import "C"

var sum [2]uint64

//go:noinline
func deep(depth, which int) int {
	if depth > 0 {
		return deep(depth-1, which) + 1
	}
	for i := uint64(0); i < 100000000; i++ {
		sum[which] += i
	}
	return 0
}

//export Work
func Work(depth C.int) C.int {
	other := make(chan int)
	go func() { other <- deep(int(depth), 0) }()
	return C.int(deep(int(depth), 1) + <-other)
}

func main() {}
