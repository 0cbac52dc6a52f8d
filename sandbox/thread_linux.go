//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// onOwnThread runs enter and then f on a thread of their own, which ends with
// them: what enter does to the thread, nobody else ever sees. A *setupError is
// enter's, and f did not run.
func onOwnThread(enter, f func() error) error {
	done := make(chan error, 1)
	go offMain(func() {
		err := errEnded
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic on the restricted thread: %v", p)
			}
			done <- err
		}()
		if failed := enter(); failed != nil {
			err = failed
			return
		}
		err = f()
	})
	return <-done
}

var errEnded = errors.New("the function ended its goroutine on the restricted thread")

// offMain runs run on a thread that is thrown away. The main thread cannot be:
// it is held until another goroutine has got a thread of its own, which is
// then certainly another one.
func offMain(run func()) {
	goruntime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		run()
		return // still locked: the thread ends with the goroutine
	}
	elsewhere := make(chan struct{})
	go func() {
		goruntime.LockOSThread()
		close(elsewhere)
		run()
	}()
	<-elsewhere
	goruntime.UnlockOSThread()
}

// enterDomain restricts the calling thread by a Landlock ruleset for ever.
func enterDomain(ruleset *os.File) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &setupError{"set no_new_privs", err}
	}
	err := ll.LandlockRestrictSelf(int(ruleset.Fd()), 0)
	goruntime.KeepAlive(ruleset)
	switch {
	case errors.Is(err, unix.E2BIG):
		return &setupError{"landlock: this process is already inside as many domains as the kernel allows", err}
	case err != nil:
		return &setupError{"landlock_restrict_self", err}
	}
	return nil
}

// learnPidfd lets package os find out, on an unrestricted thread, whether
// process descriptors work: it asks once per process, and on a restricted
// thread it might find that they do not.
var learnPidfd = sync.OnceFunc(func() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Release()
	}
})
