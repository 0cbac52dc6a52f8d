//go:build unix && !linux

package sandbox

import (
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func hasDeathSignal(*syscall.SysProcAttr) bool { return false }

// dropCores does nothing: these systems let no process set another's limits.
func dropCores(int) error { return nil }

// inheritable looks at every descriptor that the limit allows, up to a bound
// that keeps a start affordable.
func inheritable() int {
	highest := 0
	for fd := 3; fd < 4096; fd++ {
		if !closesOnExec(fd) {
			highest = fd
		}
	}
	return highest
}

// family is the process group of the started process: all that can be found
// here without looking into other processes.
type family struct{ leader int }

func newFamily(cmd *exec.Cmd, _ inner) family { return family{cmd.Process.Pid} }

func (f family) terminate() { _ = unix.Kill(-f.leader, unix.SIGTERM) }
func (f family) kill()      { _ = unix.Kill(-f.leader, unix.SIGKILL) }

func (t *Tree) wait() (leftovers int, err error) {
	err = t.cmd.Wait()
	// A group keeps its number for as long as it has a member.
	if t.family.alive() {
		leftovers = 1
		t.family.terminate()
		for end := time.Now().Add(leftoverGrace); t.family.alive() && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		t.family.kill()
	}
	t.finish()
	return leftovers, err
}

func (f family) alive() bool { return unix.Kill(-f.leader, 0) == nil }
