// Work for Go's own runtime: goroutines on threads that libc does not know, signals, children.
package main

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
