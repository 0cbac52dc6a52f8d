package session_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// childEnv makes the test binary one of the children instead of a test run.
const childEnv = "DSH_SESSION_TEST_CHILD"

// children are what other processes do with the log whose path they get.
var children = map[string]func(path string){}

func TestMain(m *testing.M) {
	if child, ok := children[os.Getenv(childEnv)]; ok {
		time.AfterFunc(time.Minute, func() { os.Exit(1) }) // nobody is left to kill it
		child(os.Args[1])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// die ends a child that cannot go on.
func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is a running child.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	errors bytes.Buffer
}

func startChild(t *testing.T, name, path string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], path)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+name)
	p.cmd.Stderr = &p.errors
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, out
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	return p
}
