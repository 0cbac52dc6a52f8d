package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal is the command with a terminal of its own, and a person at it.
type onTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	stdout strings.Builder
	stderr strings.Builder
	exited chan struct{}

	mu    sync.Mutex
	shown strings.Builder
	more  chan struct{}
	seen  int // of shown
}

// patience is how long a test waits for what must come.
const patience = time.Minute

// atTerminal starts dsh-run in dir.
func atTerminal(t *testing.T, dir string, env []string, args ...string) *onTerminal {
	t.Helper()
	master, slave := openPTY(t, 100, 30)
	o := &onTerminal{t: t, master: master, exited: make(chan struct{}), more: make(chan struct{}, 1)}
	o.cmd = exec.Command("dsh-run", args...)
	o.cmd.Dir, o.cmd.Stdout, o.cmd.Stderr = dir, &o.stdout, &o.stderr
	o.cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(dir), "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "TERM=dumb", "NO_COLOR=1")
	o.cmd.Env = append(o.cmd.Env, env...)
	o.cmd.ExtraFiles = []*os.File{slave}
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	go o.watch()
	go func() {
		_ = o.cmd.Wait() // the exit code is asked for later
		close(o.exited)
	}()
	t.Cleanup(func() {
		_ = o.cmd.Process.Kill()
		<-o.exited
		master.Close()
	})
	return o
}

func openPTY(t *testing.T, columns, rows uint16) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	resize(t, master, columns, rows)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func resize(t *testing.T, master *os.File, columns, rows uint16) {
	t.Helper()
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	})
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

func (o *onTerminal) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := o.master.Read(buf)
		o.mu.Lock()
		o.shown.Write(buf[:n])
		o.mu.Unlock()
		select {
		case o.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// sees waits until the terminal shows a text, behind all that was waited for
// before, and returns what came up to it.
func (o *onTerminal) sees(text string) string {
	o.t.Helper()
	limit := time.After(patience)
	for {
		o.mu.Lock()
		fresh := o.shown.String()[o.seen:]
		if i := strings.Index(fresh, text); i >= 0 {
			o.seen += i + len(text)
			o.mu.Unlock()
			return fresh[:i+len(text)]
		}
		o.mu.Unlock()
		select {
		case <-o.more:
		case <-limit:
			o.t.Fatalf("the terminal does not show %q but\n%q\nstderr: %s", text, fresh, o.stderr.String())
		}
	}
}

func (o *onTerminal) types(keys string) {
	o.t.Helper()
	if _, err := o.master.WriteString(keys); err != nil {
		o.t.Fatal(err)
	}
}

// code waits for the end of the command.
func (o *onTerminal) code() int {
	o.t.Helper()
	select {
	case <-o.exited:
	case <-time.After(patience):
		o.t.Fatalf("the command does not end; the terminal shows %q", o.all())
	}
	return o.cmd.ProcessState.ExitCode()
}

func (o *onTerminal) exits(want int) {
	o.t.Helper()
	if got := o.code(); got != want {
		o.t.Fatalf("exit code %d, want %d\nterminal: %s\nstdout: %s\nstderr: %s", got, want, o.all(), o.stdout.String(), o.stderr.String())
	}
}

func (o *onTerminal) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shown.String()
}

// newPlace returns a workspace that only a wider mode opens.
func newPlace(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp(outsideOfTemp, "dsh-run-tty-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	dir := filepath.Join(home, "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}
