//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
)

// sandboxCase is one row of the table of escapes and false denials, by its id.
// A script that exits 0 has done what the row is about.
type sandboxCase struct {
	id, what string
	script   string
	// readOnly and workspaceWrite say what becomes of it; reported needs reason.
	readOnly, workspaceWrite string
	// reason is what the confinement must name where the row is reported.
	reason string
	// needs are programs; user says who it is for, both by default.
	needs []string
	user  string
	// before makes something outside of the sandbox.
	before func(t *testing.T, p place)
	// byBackend replaces what becomes of it with one backend.
	byBackend map[string][2]string
	// anyChange: what it leaves outside is not compared.
	anyChange bool
}

const (
	asRoot = "root"
	asUser = "user"
)

var sandboxCases = []sandboxCase{
	{id: "E1", what: "a new file outside", script: `echo x > $OUT/new`, readOnly: refused, workspaceWrite: refused},
	{id: "E2", what: "through a link", script: `ln -s $OUT l; echo x > l/new`, readOnly: refused, workspaceWrite: refused},
	{id: "E3b", what: "a hard link that was there before", script: `echo p >> h`, readOnly: refused, workspaceWrite: reported, reason: policy.PreexistingHardlinks, anyChange: true,
		before: func(t *testing.T, p place) { must(t, os.Link(p.out+"/victim", p.root+"/h")) }},
	{id: "E4", what: "moves over the border", script: `mv $OUT/victim $WS/ && [ ! -e $OUT/victim ] || mv f $OUT/`, readOnly: refused, workspaceWrite: refused},
	{id: "E5", what: "truncation by name and by opening", needs: []string{"python3"}, readOnly: refused, workspaceWrite: refused,
		script: `python3 -c "import os;os.truncate('$OUT/victim',0)" || python3 -c "import os;os.open('$OUT/victim',os.O_RDONLY|os.O_TRUNC)"`},
	{id: "E7", what: "metadata outside", script: `chmod 777 $OUT/victim || touch -d 2001-01-01 $OUT/victim || chown $(id -u) $OUT/victim`, readOnly: refused, workspaceWrite: reported, reason: policy.MetadataWrites, anyChange: true},
	{id: "E9", what: "a namespace of its own", needs: []string{"unshare"}, script: `unshare -Urm sh -c 'mount -o remount,rw,bind /; echo x>$OUT/new'; test -e $OUT/new`, readOnly: refused, workspaceWrite: refused},
	{id: "E10", what: "a remount", user: asRoot, script: `mount -o remount,rw,bind / && echo x > $OUT/new`, readOnly: refused, workspaceWrite: refused},
	{id: "E12", what: "a device node", user: asRoot, script: `mknod $WS/k c 1 11; echo x > $WS/k && test -c $WS/k`, readOnly: refused, workspaceWrite: refused},
	{id: "E15", what: "inherited descriptors", script: `for n in 3 4 5 6 7 8 9 10 11 12; do echo p >&$n && exit 0; ls /proc/self/fd/$n/ && exit 0; done; exit 1`, readOnly: refused, workspaceWrite: refused},
	{id: "E17", what: "a server of tmux on the host", needs: []string{"tmux"}, readOnly: reported, workspaceWrite: reported, reason: policy.UnixSockets, anyChange: true,
		byBackend: map[string][2]string{"bwrap": {refused, refused}}, before: startTmux, user: asRoot,
		script: `tmux -S /tmp/tmux-0/dsh-$(basename $(dirname $OUT)) new-session -d "echo e > $OUT/new"; for i in $(seq 50); do test -e $OUT/new && exit 0; sleep 0.02; done; exit 1`},
	{id: "E18", what: "a socket of the host", needs: []string{"python3"}, readOnly: reported, workspaceWrite: reported, reason: policy.UnixSockets, before: listenOutside,
		script: `python3 -c "import socket;s=socket.socket(socket.AF_UNIX);s.connect('$OUT/socket')"`, anyChange: true},
	{id: "E18b", what: "an abstract socket of the host", needs: []string{"python3"}, readOnly: refused, workspaceWrite: refused, before: listenAbstract,
		byBackend: map[string][2]string{"bwrap": {reported, reported}}, reason: policy.UnixSockets,
		script: `python3 -c "import socket;s=socket.socket(socket.AF_UNIX);s.connect('\0dsh-$(basename $(dirname $OUT))')"`},
	{id: "E21", what: "input for a terminal", needs: []string{"python3"}, readOnly: refused, workspaceWrite: refused,
		script: `python3 -c "import pty,fcntl,termios,os
m,s=pty.openpty()
os.setsid() if os.getpid()!=os.getsid(0) else 0
fcntl.ioctl(s,termios.TIOCSTI,b'i')"`},
	{id: "E21b", what: "calls of a foreign table", needs: []string{"python3"}, readOnly: refused, workspaceWrite: refused, script: int80},
	{id: "E21c", what: "rings", needs: []string{"python3"}, readOnly: refused, workspaceWrite: refused,
		script: `python3 -c "import ctypes,sys
b=ctypes.create_string_buffer(256)
sys.exit(ctypes.CDLL(None).syscall(425,4,b)<0)"`},
	{id: "E24", what: "a hook in a copied repository", needs: []string{"git"}, readOnly: refused, workspaceWrite: works, before: gitInit,
		script:    `mv .git .g; cp -r .g .git && printf '#!/bin/sh\necho x > %s/new\n' $OUT > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout`,
		byBackend: map[string][2]string{"bwrap": {refused, refused}}},
	{id: "E25", what: "another common directory", needs: []string{"git"}, readOnly: refused, workspaceWrite: works, before: gitInit,
		script: `mkdir evil && cp -r .git/. evil && printf '#!/bin/sh\necho x > %s/new\n' $OUT > evil/hooks/post-checkout && chmod +x evil/hooks/post-checkout && echo ../evil > .git/commondir`},
	{id: "E29", what: "a protocol beside TCP", needs: []string{"python3"}, readOnly: reported, workspaceWrite: reported, reason: policy.Network,
		script: `python3 -c "import socket;socket.socket(socket.AF_INET,socket.SOCK_STREAM)"`},
	{id: "E30", what: "the network of the host", readOnly: reported, workspaceWrite: reported, reason: policy.Network, before: nil,
		script: `exec 3<>/dev/udp/127.0.0.1/9`},

	{id: "F1", what: "discarding output", script: `ls / >/dev/null 2>&1`, readOnly: works, workspaceWrite: works},
	{id: "F2", what: "zero and full", script: `echo x >/dev/zero && (echo x >/dev/full) 2>&1 | grep -q 'No space'`, readOnly: works, workspaceWrite: works},
	{id: "F3", what: "a here-document of 100 kB", script: `v=$(head -c 100000 /dev/zero | tr '\0' x); [ $(cat <<<"$v" | wc -c) = 100001 ]`, readOnly: works, workspaceWrite: works},
	{id: "F4", what: "mktemp", script: `t=$(mktemp) && echo x > $t && rm -f $t`, readOnly: works, workspaceWrite: works},
	{id: "F7", what: "locks of multiprocessing", needs: []string{"python3"}, script: `python3 -c 'import multiprocessing as m;m.Lock()'`, readOnly: refused, workspaceWrite: works,
		byBackend: map[string][2]string{"bwrap": {works, works}}},
	{id: "F8", what: "a terminal of its own", needs: []string{"python3"}, script: `python3 -c 'import pty,tty;m,s=pty.openpty();tty.setraw(s)'`, readOnly: refused, workspaceWrite: works,
		byBackend: map[string][2]string{"bwrap": {works, works}}},
	{id: "F10", what: "a commit", needs: []string{"git"}, script: `git add f && git -c user.name=n -c user.email=e commit -qm m`, readOnly: refused, workspaceWrite: works, before: gitInit},
	{id: "F11", what: "looking at a repository", needs: []string{"git"}, script: `git status && git diff && git log`, readOnly: works, workspaceWrite: works, before: gitCommit},
	{id: "F13", what: "stash, collecting, branches", needs: []string{"git"}, script: `echo y > f && git -c user.name=n -c user.email=e stash && git gc -q && git checkout -qb b`, readOnly: refused, workspaceWrite: works, before: gitCommit},
	{id: "F14", what: "git's global configuration", needs: []string{"git"}, script: `HOME=$OUT git config --global user.name x`, readOnly: refused, workspaceWrite: refused},
	{id: "F15", what: "go's default cache", needs: []string{"go"}, script: `mkdir $TMPDIR/m && cd $TMPDIR/m && printf 'module x\n' > go.mod && printf 'package x\n' > x.go && HOME=$OUT go build ./...`, readOnly: refused, workspaceWrite: refused},
	{id: "F16", what: "go's cache in the workspace", needs: []string{"go"}, script: `printf 'module x\n' > go.mod && printf 'package x\n' > x.go && HOME=$OUT GOCACHE=$WS/.gc go build ./...`, readOnly: refused, workspaceWrite: works},
	{id: "F17", what: "npm", needs: []string{"npm"}, script: `npm_config_cache=$TMPDIR/npm npm init -y`, readOnly: refused, workspaceWrite: works},
	{id: "F19", what: "a virtual environment", needs: []string{"/usr/bin/python3"}, script: `/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 1`, readOnly: refused, workspaceWrite: works},
	{id: "F21", what: "moves and links between directories", script: `mkdir a b && echo 1 > a/x && mv a/x b/x && ln b/x a/y`, readOnly: refused, workspaceWrite: works},
	{id: "F23", what: "a socket in the workspace", needs: []string{"python3"}, readOnly: refused, workspaceWrite: works,
		script: `python3 -c "import socket;s=socket.socket(socket.AF_UNIX);s.bind('s');s.listen();c=socket.socket(socket.AF_UNIX);c.connect('s')"`},
	{id: "F24", what: "streams by their names", script: `echo hi > /dev/stdout && echo x | tee /dev/stderr`, readOnly: works, workspaceWrite: works},
	{id: "F25", what: "an agent for keys", needs: []string{"ssh-agent"}, script: `eval $(ssh-agent -s) && { ssh-add -l; [ $? = 1 ]; } && kill $SSH_AGENT_PID`, readOnly: works, workspaceWrite: works,
		byBackend: map[string][2]string{"bwrap": {works, works}, "landlock": {works, works}}},
	{id: "F27", what: "jobs of the shell", script: `(sleep .1; echo done) & wait; sleep 5 & kill %1; wait; true`, readOnly: works, workspaceWrite: works},
	{id: "F31", what: "strict options", script: `set -euo pipefail; false || true; echo ok`, readOnly: works, workspaceWrite: works},
	{id: "F38", what: "nproc, less, an interactive shell", script: `nproc && echo x | less && bash -lic true`, readOnly: works, workspaceWrite: works},
	{id: "F38b", what: "tracing an own child", needs: []string{"strace"}, script: `strace -o /dev/null true`, readOnly: works, workspaceWrite: works},
	{id: "F38c", what: "watching files", needs: []string{"node"}, script: `node -e 'const w=require("fs").watch(".",()=>{});w.close()'`, readOnly: works, workspaceWrite: works},
	{id: "B11", what: "links and renames within", needs: []string{"python3"}, script: `mkdir -p d && echo a > f && ln f d/f && python3 -c "import os;os.rename('f','d/g')"`, readOnly: refused, workspaceWrite: works},
}

// int80 asks for the number of this process by the calls of 32-bit programs,
// from machine code, and exits 0 if it is told.
const int80 = `python3 -c "import ctypes,mmap,platform,sys
if platform.machine()!='x86_64': sys.exit(1)
m=mmap.mmap(-1,4096,prot=mmap.PROT_READ|mmap.PROT_WRITE|mmap.PROT_EXEC)
m.write(bytes([0xb8,20,0,0,0,0xcd,0x80,0xc3]))
f=ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
sys.exit(f()<0)"`

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func gitInit(t *testing.T, p place) {
	t.Helper()
	if out, err := p.bash("git init -q -b main . && git config core.logAllRefUpdates true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func gitCommit(t *testing.T, p place) {
	t.Helper()
	gitInit(t, p)
	if out, err := p.bash("git add f && git -c user.name=n -c user.email=e commit -qm m").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// startTmux starts a server where bubblewrap looks for some.
// startTmux gives each place a server of its own: one that was told to end
// still owns its socket for a moment.
func startTmux(t *testing.T, p place) {
	t.Helper()
	socket := "/tmp/tmux-0/dsh-" + filepath.Base(filepath.Dir(p.out))
	must(t, os.MkdirAll("/tmp/tmux-0", 0o700))
	tmux := func(args ...string) *exec.Cmd {
		return exec.Command("tmux", append([]string{"-S", socket}, args...)...)
	}
	if out, err := tmux("new-session", "-d", "-s", "x").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		_ = tmux("kill-server").Run()
		_ = os.Remove(socket)
	})
}

func listenOutside(t *testing.T, p place) { listenOn(t, p.out+"/socket") }
func listenAbstract(t *testing.T, p place) {
	listenOn(t, "@dsh-"+filepath.Base(filepath.Dir(p.out)))
}

func listenOn(t *testing.T, name string) {
	t.Helper()
	l, err := net.Listen("unix", name)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
}

func TestSandboxCases(t *testing.T) {
	whoami := map[bool]string{true: asRoot, false: asUser}[os.Getuid() == 0]
	for _, c := range sandboxCases {
		t.Run(c.id, func(t *testing.T) {
			if c.user != "" && c.user != whoami {
				return // it is about the other user, as whom these tests run too
			}
			for _, program := range c.needs {
				_, err := exec.LookPath(program)
				sessiontest.Need(t, filepath.Base(program), err == nil, fmt.Sprint(err))
			}
			onBackends(t, func(t *testing.T, by string) {
				outcomes := [2]string{c.readOnly, c.workspaceWrite}
				if own, ok := c.byBackend[by]; ok {
					outcomes = own
				}
				for mode, want := range outcomes {
					t.Run(policy.Mode(mode).String(), func(t *testing.T) { c.try(t, by, policy.Mode(mode), want) })
				}
			})
		})
	}
}

func (c sandboxCase) try(t *testing.T, by string, mode policy.Mode, want string) {
	p := newPlace(t)
	if c.before != nil {
		c.before(t, p)
	}
	before := treeOf(t, p.out)
	e := runConfined(t, p.policyBy(by, mode), p.bash(c.script))
	got := e.classify()
	if want == reported && !slices.Contains(got.Reasons, c.reason) {
		want = refused // this backend holds it
	}
	if (e.exit == 0) != (want != refused) {
		t.Errorf("want it %s, got %v", want, e)
	}
	if want == reported {
		t.Logf("reported as %s, which %s does not govern in %s", c.reason, by, mode)
	}
	if changed := treeOf(t, p.out) != before; changed && !(c.anyChange && want == reported) {
		t.Errorf("outside was:\n%s\nand is:\n%s", before, treeOf(t, p.out))
	}
	if c.id == "E24" || c.id == "E25" {
		c.useGit(t, p, mode, got)
	}
}

// useGit does what a person does after the run: nothing that was planted runs.
func (c sandboxCase) useGit(t *testing.T, p place, mode policy.Mode, got policy.Confinement) {
	want := map[policy.Mode]policy.VCSHooks{policy.ReadOnly: policy.HooksEnforced, policy.WorkspaceWrite: policy.HooksChecked}[mode]
	if got.VCSHooks != want {
		t.Errorf("hooks are %s, want %s", got.VCSHooks, want)
	}
	_ = p.bash("git add -A; git -c user.name=n -c user.email=e commit -qm m; git checkout -qb b; git status").Run()
	if _, err := os.Stat(p.out + "/new"); err == nil {
		t.Errorf("the host's git ran what was planted: %+v", got)
	}
}

// TestE13 puts a program called bwrap where commands can write first in PATH.
func TestE13(t *testing.T) {
	needBackend(t, "bwrap")
	p := newPlace(t)
	fake := p.root + "/node_modules/.bin"
	must(t, os.MkdirAll(fake, 0o700))
	must(t, os.WriteFile(fake+"/bwrap", []byte("#!/bin/sh\necho x > "+p.out+"/new\n"), 0o700))
	t.Setenv("PATH", fake+":"+os.Getenv("PATH"))
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
		e := runConfined(t, Policy{Scope: p.policy(mode).Scope}, p.bash("echo x > $OUT/new"))
		if _, err := os.Stat(p.out + "/new"); err == nil || e.exit == 0 {
			t.Errorf("%v: the program in the workspace ran: %v", mode, e)
		}
	}
}

// TestB06 has a bwrap that cannot make namespaces: the next backend is used,
// and alone it is the sandbox that failed, not the command.
func TestB06(t *testing.T) {
	needKernel(t)
	dir := t.TempDir()
	if reachable(policy.WritableRoots(policy.Scope{Mode: policy.WorkspaceWrite, Root: "/nowhere"}), dir) {
		made, err := os.MkdirTemp("/var/tmp", "dsh-bwrap-")
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(made) })
		dir = made
	}
	must(t, os.WriteFile(dir+"/bwrap", []byte("#!/bin/sh\necho 'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted' >&2; exit 1\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	p := newPlace(t)
	_, err := Confine(t.Context(), p.policyBy("bwrap", policy.ReadOnly))
	if unavailable, ok := err.(*UnavailableError); !ok || !strings.Contains(unavailable.Error(), "RTM_NEWADDR") {
		t.Errorf("alone: %v", err)
	}
	for range 2 {
		if e := runConfined(t, Policy{Scope: p.policy(policy.ReadOnly).Scope}, p.bash("echo hi")); e.stdout != "hi\n" || e.confined.Confinement().Backend != "landlock" {
			t.Errorf("with the next one: %v by %s", e, e.confined.Confinement().Backend)
		}
	}
}

// TestE22 leaves processes behind in their own sessions.
func TestE22(t *testing.T) {
	onBackends(t, func(t *testing.T, by string) {
		p := newPlace(t)
		read, write, err := os.Pipe()
		must(t, err)
		defer read.Close()
		cmd := p.bash("setsid sh -c 'sleep " + forEver + "' & (setsid sleep " + forEver + " &) ; echo started")
		cmd.Env = append(cmd.Env, "DSH_CALL_ID=c1")
		cmd.Stdout = write
		c := confine(t, p.policyBy(by, policy.ReadOnly))
		must(t, c.Start(cmd))
		write.Close()
		if _, err := c.Wait(); err != nil {
			t.Error(err)
		}
		// Whoever is left holds the pipe open.
		if out, err := io.ReadAll(read); err != nil || string(out) != "started\n" {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// TestBwrapEndsWithItsHost kills the process that started it.
func TestBwrapEndsWithItsHost(t *testing.T) {
	needBackend(t, "bwrap")
	if os.Getenv("DSH_TEST_HOST") != "" {
		p := place{root: os.Getenv("DSH_TEST_HOST"), temp: os.Getenv("DSH_TEST_HOST") + "/../tmp"}
		p.temp = filepath.Clean(p.temp)
		cmd := p.bash("echo started; exec sleep " + forEver)
		cmd.Stdout = os.Stdout
		c := confine(t, p.policyBy("bwrap", policy.ReadOnly))
		must(t, c.Start(cmd))
		_, _ = c.Wait()
		return
	}
	p := newPlace(t)
	read, write, err := os.Pipe()
	must(t, err)
	defer read.Close()
	host := exec.Command("/proc/self/exe", "-test.run=^TestBwrapEndsWithItsHost$")
	host.Env = append(os.Environ(), "DSH_TEST_HOST="+p.root)
	host.Stdout = write
	must(t, host.Start())
	write.Close()
	line := make([]byte, len("started\n"))
	if _, err := io.ReadFull(read, line); err != nil || string(line) != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	must(t, host.Process.Signal(unix.SIGKILL))
	_ = host.Wait()
	if _, err := io.ReadAll(read); err != nil { // ends when the command has ended
		t.Error(err)
	}
}
