package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

// programNamesAreExact is false: an extension may be added to a program's name.
const programNamesAreExact = false

func checkAttributes(*syscall.SysProcAttr) error { return nil }

// prepareCommand gives cmd a process group of its own. Handles are inherited
// only when a start names them.
func prepareCommand(cmd *exec.Cmd) {
	attr := syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.CreationFlags |= syscall.CREATE_NEW_PROCESS_GROUP
	cmd.SysProcAttr = &attr
}

// dropCores does nothing: there are no core files.
func dropCores(int) error { return nil }

// family is the started process alone: what it starts is found through a job
// object, which belongs to the backend for this system.
type family struct{ process *os.Process }

func newFamily(cmd *exec.Cmd, _ inner) family { return family{cmd.Process} }

// terminate does nothing: a process without a console has no gentle end.
func (f family) terminate() {}
func (f family) kill()      { _ = f.process.Kill() }

func (t *Tree) wait() (leftovers int, err error) {
	err = t.cmd.Wait()
	t.finish()
	return 0, err
}
