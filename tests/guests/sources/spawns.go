// Starts 1,000 programs, and is itself replaced 1,000 times, by system calls of Go's own.
package main

// #include <stdint.h>
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

func main() {
	links := 0
	if len(os.Args) > 1 {
		links, _ = strconv.Atoi(os.Args[1])
	} else {
		ended := map[string]int{}
		for i := 0; i < 1000; i++ {
			ended[fmt.Sprint(exec.Command("true").Run())]++
		}
		fmt.Println(ended)
	}
	if links == 1000 {
		fmt.Println("end of the chain")
		os.Exit(5)
	}
	self, _ := os.Executable()
	fmt.Println(syscall.Exec(self, []string{self, strconv.Itoa(links + 1)}, os.Environ()))
}
