// Work(n): n goroutines, one after the other in each of four, that go down to different depths of their new stacks.
package main

import "C"

func descend(depth int, values [16]int) int {
	if depth == 0 {
		return values[3]
	}
	values[depth%16] += depth
	return descend(depth-1, values) + 1
}

//export Work
func Work(n int) int {
	sums := make(chan int)
	for lane := 0; lane < 4; lane++ {
		go func() {
			sum := 0
			for i := 0; i < n/4; i++ {
				depth := make(chan int)
				go func(i int) {
					descend(i%40, [16]int{})
					depth <- 1
				}(i)
				sum += <-depth
			}
			sums <- sum
		}()
	}
	return <-sums + <-sums + <-sums + <-sums
}

func main() {}
