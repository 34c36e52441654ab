// The work of work.go, and C beside it, which makes the program one that libc and its loader start.
package main

/*
#include <pthread.h>
#include <stdint.h>

static __attribute__((noinline)) uint64_t c_work(uint64_t n)
{
	uint64_t x = n;

	for (uint64_t i = 0; i < n * 1000000; i++)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return x;
}

static void *c_thread(void *arg)
{
	*(uint64_t *)arg = c_work(40);
	return 0;
}

static uint64_t c_threads(void)
{
	uint64_t sum = 0;
	pthread_t id;

	pthread_create(&id, 0, c_thread, &sum);
	pthread_join(id, 0);
	return sum;
}
*/
import "C"

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	fmt.Println("C", uint64(C.c_work(60)), uint64(C.c_threads()))
	work()
	if len(os.Args) < 2 {
		// In the same process, another time.
		self, _ := os.Executable()
		err := syscall.Exec(self, []string{self, "again"}, os.Environ())
		fmt.Println(err)
	}
	os.Exit(5)
}
