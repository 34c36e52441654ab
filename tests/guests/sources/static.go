// The work of work.go alone: a program that no libc starts.
package main

import "os"

func main() {
	work()
	os.Exit(5)
}
