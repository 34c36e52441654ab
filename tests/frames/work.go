// Work of all kinds for samples that are taken at any moment: recursion, goroutines, channels, locks, panics, maps, cgo and
// callbacks from C, system calls, timers, growing stacks, garbage. Prints "done".
//
//	usage: work SECONDS [GOROUTINES]
package main

// #include <stdint.h>
// #include <stdlib.h>
// extern int goCompare(void *, void *);
// static int compare(const void *a, const void *b) { return goCompare((void *)a, (void *)b); }
// static void c_sorts(int *numbers, int nr) { qsort(numbers, nr, sizeof(int), compare); }
// static uint64_t c_spins(int n) { uint64_t x = 1; while (n--) x = x * 6364136223846793005u + 1; return x; }
import "C"

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

type tree struct {
	left, right *tree
	room        [3]int
}

func grow(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{left: grow(depth - 1), right: grow(depth - 1)}
}

func (t *tree) count() int {
	if t == nil {
		return 0
	}
	return t.left.count() + t.right.count() + 1
}

// Its stack is moved now and again.
func deep(n int) int {
	var room [64]int
	if n == 0 {
		return 0
	}
	room[n%64] = n
	return deep(n-1) + room[n%64]
}

//export goCompare
func goCompare(a, b unsafe.Pointer) C.int {
	return *(*C.int)(a) - *(*C.int)(b)
}

func calls() {
	var numbers [50]C.int
	for i := range numbers {
		numbers[i] = C.int(i * 7919 % 50)
	}
	C.c_sorts(&numbers[0], 50)
	C.c_spins(2000)
}

func panics(n int) (caught any) {
	defer func() { caught = recover() }()
	defer func() { _ = fmt.Sprint(n) }()
	if n%2 == 0 {
		var nothing *tree
		return nothing.room[0]
	}
	panic(n)
}

func channels() {
	in, out := make(chan int), make(chan int, 4)
	for i := 0; i < 4; i++ {
		go func() {
			for n := range in {
				out <- n * n
			}
		}()
	}
	go func() {
		for i := 0; i < 100; i++ {
			in <- i
		}
		close(in)
	}()
	timeout := time.After(time.Minute)
	for i := 0; i < 100; i++ {
		select {
		case <-out:
		case <-timeout:
		}
	}
}

var (
	lock   sync.RWMutex
	shared = map[string]int{}
)

func locks(n int) {
	key := strconv.Itoa(n % 1000)
	lock.Lock()
	shared[key]++
	lock.Unlock()
	lock.RLock()
	defer lock.RUnlock()
	for range shared {
		break
	}
}

var pattern = regexp.MustCompile(`(\w+)=(\d+|"[^"]*")`)

func text(n int) {
	value := map[string]any{"name": strings.Repeat("x", n%100), "list": []int{1, 2, n}, "time": time.Now()}
	encoded, _ := json.Marshal(value)
	var decoded map[string]any
	json.Unmarshal(encoded, &decoded)
	pattern.FindAllString(`a=1 b="two" c=345 `+string(encoded), -1)
	sha256.Sum256(encoded)
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, 1)
	w.Write(encoded)
	w.Close()
	reflect.ValueOf(strings.ToUpper).Call([]reflect.Value{reflect.ValueOf(string(encoded))})
	list := strings.Fields(`the quick brown fox jumps over the lazy dog`)
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
}

func used() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	goroutines := 4
	if len(os.Args) > 2 {
		goroutines, _ = strconv.Atoi(os.Args[2])
	}
	var running sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		running.Add(1)
		go func(i int) {
			defer running.Done()
			for n := i; used() < seconds; n++ {
				switch n % 8 {
				case 0:
					grow(12).count()
				case 1:
					deep(200)
				case 2:
					calls()
				case 3:
					panics(n)
				case 4:
					channels()
				case 5:
					locks(n)
				case 6:
					text(n)
				case 7:
					time.Sleep(time.Microsecond)
					runtime.Gosched()
				}
			}
		}(i)
	}
	running.Wait()
	fmt.Println("done")
}
