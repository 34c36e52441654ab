// Writes down stacks of goroutines, as Go's runtime reports them, and causes page faults there, which are sampled.
//
//	usage: truth FILE ROUNDS
//
// FILE receives a list of stacks, each a list of [function, file, line], innermost first. Between the functions of a
// stack are those of the runtime and of C, which are not judged.
package main

// #include <stdint.h>
// extern void goStep(uintptr_t);
// static void c_calls_back(uintptr_t handle) { volatile char room[200]; room[7] = 1; goStep(handle); room[8] = room[7]; }
import "C"

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"runtime"
	"runtime/cgo"
	"runtime/debug"
	"sort"
	"strconv"
	"sync"
	"syscall"
)

const (
	faults   = 24
	pageSize = 4096

	madvNoHugepage = 15
)

var (
	mutex  sync.Mutex
	stacks = [][][3]any{}
	sink   int
)

// A walk takes one step after the other, each in a frame of its own kind, and ends in here().
type walk struct {
	steps []int
	pages []byte
}

//go:noinline
func note(_ []byte) {
	pcs := make([]uintptr, 1000)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var stack [][3]any
	for {
		frame, more := frames.Next()
		stack = append(stack, [3]any{frame.Function, frame.File, frame.Line})
		if !more {
			break
		}
	}
	mutex.Lock()
	defer mutex.Unlock()
	stacks = append(stacks, stack)
}

// Calls nothing, and has no frame.
//
//go:noinline
func here(pages []byte) {
	for at := 0; at < len(pages); at += pageSize {
		pages[at] = 1
	}
}

//go:noinline
func (w *walk) end() {
	runtime.LockOSThread() // each thread counts its own page faults
	defer runtime.UnlockOSThread()
	for _, call := range []func([]byte){note, here} {
		call(w.pages) // the same line for both
	}
	sink++
}

func (w *walk) next() {
	if len(w.steps) == 0 {
		w.end()
		return
	}
	step := w.steps[0]
	w.steps = w.steps[1:]
	kinds[step](w)
	sink++
}

var kinds []func(*walk)

func init() {
	kinds = []func(*walk){plain, large, huge, deferred, panics, faulting, closure, (*walk).method, byInterface, byReflect,
		callback, recursive, variadic, byC, byGoroutine, inlined}
}

//go:noinline
func plain(w *walk) { w.next(); sink++ }

//go:noinline
func large(w *walk) {
	var room [1000]int
	room[w.len()] = 1
	w.next()
	sink += room[3]
}

// Larger than most stacks: the runtime moves it.
//
//go:noinline
func huge(w *walk) {
	var room [4000]int
	room[w.len()] = 1
	w.next()
	sink += room[3]
}

func (w *walk) len() int { return len(w.steps) }

//go:noinline
func deferred(w *walk) {
	defer func() {
		w.next()
		sink++
	}()
	sink++
}

//go:noinline
func panics(w *walk) {
	defer func() {
		w.next()
		recover()
	}()
	panic("expected")
}

// The runtime makes a call of sigpanic of the signal.
//
//go:noinline
func faulting(w *walk) {
	defer func() {
		w.next()
		recover()
	}()
	var nothing *walk
	sink += nothing.len()
}

//go:noinline
func closure(w *walk) {
	add := len(w.steps)
	func() {
		w.next()
		sink += add
	}()
}

//go:noinline
func (w *walk) method() { w.next(); sink++ }

type stepper interface{ method() }

//go:noinline
func byInterface(w *walk) {
	var s stepper = w
	s.method()
	sink++
}

//go:noinline
func byReflect(w *walk) {
	reflect.ValueOf(plain).Call([]reflect.Value{reflect.ValueOf(w)})
	sink++
}

//go:noinline
func callback(w *walk) {
	list, done := []int{2, 1}, false
	sort.Slice(list, func(i, j int) bool {
		if !done {
			done = true
			w.next()
		}
		return list[i] < list[j]
	})
}

//go:noinline
func recursive(w *walk) { recurse(w, 3) }

//go:noinline
func recurse(w *walk, n int) {
	if n == 0 {
		w.next()
	} else {
		recurse(w, n-1)
	}
	sink++
}

//go:noinline
func variadic(w *walk) { many(w, 1, 2.0, "three", 4, 5, 6, 7, 8, 9, 10) }

//go:noinline
func many(w *walk, args ...any) {
	w.next()
	sink += len(args)
}

//go:noinline
func byC(w *walk) {
	handle := cgo.NewHandle(w)
	C.c_calls_back(C.uintptr_t(handle))
	handle.Delete()
}

//export goStep
func goStep(handle C.uintptr_t) {
	cgo.Handle(handle).Value().(*walk).next()
	sink++
}

//go:noinline
func byGoroutine(w *walk) {
	done := make(chan bool)
	go func() {
		w.next()
		done <- true
	}()
	<-done
}

func inlined(w *walk) { small(w); sink++ }

func small(w *walk) { smaller(w); sink++ }

func smaller(w *walk) { plain(w); sink++ }

func main() {
	debug.SetPanicOnFault(true)
	rounds, _ := strconv.Atoi(os.Args[2])
	random := rand.New(rand.NewSource(1))
	var running sync.WaitGroup
	for i := 0; i < rounds; i++ {
		w := &walk{}
		for n := random.Intn(8); n >= 0; n-- {
			w.steps = append(w.steps, random.Intn(len(kinds)))
		}
		w.pages, _ = syscall.Mmap(-1, 0, faults*pageSize, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_ANON|syscall.MAP_PRIVATE)
		syscall.Madvise(w.pages, madvNoHugepage) // neighbours may be one area: a page fault for each page
		running.Add(1)
		step := func() {
			pages := w.pages
			defer running.Done()
			w.next()
			syscall.Munmap(pages)
		}
		if i%2 == 0 {
			go step()
		} else {
			step()
		}
		if i%4 == 0 {
			runtime.GC()
		}
	}
	running.Wait()
	text, _ := json.Marshal(stacks)
	if err := os.WriteFile(os.Args[1], text, 0o666); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("done")
}
