package sandbox

import (
	goruntime "runtime"
	"sync"
)

// onStayingThread runs f on a thread that lives as long as this process. A
// death signal follows the thread that forked, and the Go runtime ends threads
// as it likes.
func onStayingThread(f func() error) error {
	done := make(chan error, 1)
	stayingThread() <- func() { done <- f() }
	return <-done
}

var stayingThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		goruntime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})
