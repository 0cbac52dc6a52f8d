//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"os/exec"
	"slices"

	"golang.org/x/sys/unix"
)

// terminal is a terminal that a command was given as a stream.
type terminal struct {
	file *os.File
	is   identity
}

// terminalsOf returns the terminals among cmd's streams, each once.
func terminalsOf(cmd *exec.Cmd) []terminal {
	var terminals []terminal
	for _, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		t, ok := terminalOf(stream)
		if ok && !slices.ContainsFunc(terminals, func(have terminal) bool { return have.is == t.is }) {
			terminals = append(terminals, t)
		}
	}
	return terminals
}

func terminalOf(stream any) (terminal, bool) {
	file, ok := stream.(*os.File)
	if !ok || file == nil {
		return terminal{}, false
	}
	var st unix.Stat_t
	tty := false
	if err := control(file, func(fd int) {
		if unix.Fstat(fd, &st) == nil && isCharacterDevice(st.Mode) {
			_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
			tty = err == nil
		}
	}); err != nil || !tty {
		return terminal{}, false
	}
	return terminal{file, identityOf(&st)}, true
}

// control runs f with the descriptor of file, which stays in its mode.
func control(file *os.File, f func(fd int)) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) { f(int(fd)) })
}
