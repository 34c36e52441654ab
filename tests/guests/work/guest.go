// As static.go, and C beside it, which makes the program one that libc and its loader start.
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
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func goWork(n uint64) uint64 {
	x := n
	for i := uint64(0); i < n*1000000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func work() {
	var group sync.WaitGroup
	sums := make([]uint64, 8)
	for i := range sums {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			runtime.LockOSThread()
			sums[i] = goWork(uint64(20 + i))
			waste := [][]byte{}
			for k := 0; k < 2000; k++ {
				waste = append(waste, make([]byte, k))
			}
			sums[i] += uint64(len(waste))
		}(i)
	}
	group.Wait()
	fmt.Println("sums", sums)
	out, err := exec.Command("sh", "-c", "echo below; exit 3").CombinedOutput()
	fmt.Printf("child %q %v\n", out, err)
	for i := 0; i < 20; i++ {
		if err := exec.Command("true").Run(); err != nil {
			fmt.Println("true:", err)
		}
	}
	_, err = exec.Command("/nowhere/nothing").CombinedOutput()
	fmt.Println("missing", err)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTRAP)
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTRAP} {
		syscall.Kill(os.Getpid(), s)
		select {
		case got := <-signals:
			fmt.Println("signal", got)
		case <-time.After(10 * time.Second):
			fmt.Println("no signal")
		}
	}
	func() {
		defer func() { fmt.Println("recovered", recover()) }()
		var p *int
		fmt.Println(*p)
	}()
	timer := time.NewTicker(time.Millisecond)
	for i := 0; i < 50; i++ {
		<-timer.C
	}
}

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
