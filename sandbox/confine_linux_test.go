//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
)

const (
	works   = "works"
	refused = "refused"
	// reported: it works, and the confinement says that it is not governed.
	reported = "reported"
)

// commandRows are commands with what read-only and workspace-write make of
// them. What is refused must also leave $OUT as it was.
var commandRows = []struct{ claim, script, readOnly, workspaceWrite string }{
	{"a file outside cannot be created", `echo x > $OUT/new`, refused, refused},
	{"a file outside cannot be appended to", `echo x >> $OUT/victim`, refused, refused},
	{"a file outside cannot be truncated by opening", `: > $OUT/victim`, refused, refused},
	{"a file outside cannot be truncated by name", `perl -e 'truncate($ENV{OUT}."/victim", 0) or die "$!\n"'`, refused, refused},
	{"a file outside cannot be removed", `rm -f $OUT/victim`, refused, refused},
	{"a file outside cannot be moved inside", `mv $OUT/victim .`, refused, refused},
	{"a file inside cannot be moved outside", `mv f $OUT/`, refused, refused},
	{"a file inside cannot be linked outside", `ln f $OUT/hard`, refused, refused},
	{"a file outside cannot be linked inside and written there", `ln $OUT/victim hard && echo x > hard`, refused, refused},
	{"a link to the outside opens nothing", `ln -s $OUT l && echo x > l/new`, refused, refused},
	{"a directory outside cannot be made", `mkdir $OUT/d`, refused, refused},
	{"a directory outside cannot be removed", `rmdir $OUT/empty`, refused, refused},
	{"a symbolic link outside cannot be made", `ln -s f $OUT/s`, refused, refused},
	{"a pipe outside cannot be made", `mkfifo $OUT/p`, refused, refused},
	{"a remount does not help", `mount -o remount,rw,bind / && echo x > $OUT/new`, refused, refused},
	{"a user namespace does not help", `unshare -Urm sh -c 'mount -t tmpfs none /mnt; mount --bind $OUT /mnt; echo x > $OUT/new'`, refused, refused},
	{"a device node cannot be made", `mknod k c 1 11`, refused, refused},
	{"a change of mode outside", `chmod 777 $OUT/victim`, refused, reported},
	{"a change of times outside", `touch -d 2001-01-01 $OUT/victim`, refused, reported},
	{"a change of owner outside", `chown $(id -u) $OUT/victim`, refused, reported},
	{"a change of mode in the workspace", `chmod 700 f`, refused, works},
	{"a file inside", `echo x > new && [ "$(cat new)" = x ]`, refused, works},
	{"a file inside is removed", `rm f`, refused, works},
	{"moves and links between directories inside", `mkdir a b && echo 1 > a/x && mv a/x b/x && ln b/x a/y`, refused, works},
	{"a git repository", `git init -q . && git add f && git -c user.name=n -c user.email=e commit -qm m && git checkout -qb b && git stash list`, refused, works},
	{"a socket inside", `perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un("s")) or die "$!\n"'`, refused, works},
	{"the host's /tmp", `t=$(TMPDIR=/tmp mktemp) && rm "$t"`, refused, works},

	{"the session's temporary directory", `echo x > $TMPDIR/t && mv $TMPDIR/t $TMPDIR/u && rm $TMPDIR/u`, works, works},
	{"mktemp", `t=$(mktemp) && d=$(mktemp -d) && echo x > $d/y && rm -r "$t" "$d"`, works, works},
	{"a here-document of 100 kB", `v=$(head -c 100000 /dev/zero | tr '\0' x); [ "$(cat <<<"$v" | wc -c)" = 100001 ]`, works, works},
	{"discarding", `ls / > /dev/null 2>&1; echo x > /dev/zero`, works, works},
	{"the full device is full", `[ "$( (echo x > /dev/full) 2>&1 | grep -c 'No space left')" = 1 ]`, works, works},
	{"streams by their names", `echo x > /dev/stdout && echo x | tee /dev/stderr`, works, works},
	{"reading everywhere", `cat $OUT/victim /etc/passwd > /dev/null && ls -la / > /dev/null`, works, works},
	{"running programs", `cat f | sort | wc -l; (sleep 0; echo done) & wait`, works, works},
	{"a session of its own", `read -r _ _ _ _ _ session _ < /proc/$$/stat && [ $session = $$ -o $session = 1 ]`, works, works},
	{"no core files", `until [ "$(ulimit -Hc)" = 0 ]; do sleep 0.01; done`, works, works}, // set right after the start
	{"no way to more privileges", `grep -q 'NoNewPrivs:.1' /proc/self/status`, works, works},
}

func TestCommands(t *testing.T) {
	for _, program := range []string{"bash", "perl", "git", "unshare"} {
		needProgram(t, program)
	}
	onBackends(t, func(t *testing.T, by string) {
		for _, row := range commandRows {
			for mode, want := range map[policy.Mode]string{policy.ReadOnly: row.readOnly, policy.WorkspaceWrite: row.workspaceWrite} {
				t.Run(row.claim+"/"+mode.String(), func(t *testing.T) { testCommand(t, by, mode, row.script, want) })
			}
		}
	})
}

func testCommand(t *testing.T, by string, mode policy.Mode, script, want string) {
	p := newPlace(t)
	before := treeOf(t, p.out)
	e := runConfined(t, p.policyBy(by, mode), p.bash(script))
	c := e.confined.Confinement()
	if want == reported && c.Enforcement == policy.Full {
		want = refused // this backend holds it
	}
	if got := e.exit == 0; got != (want != refused) {
		t.Errorf("want it %s, got %v", want, e)
	}
	if changed := treeOf(t, p.out) != before; changed && want != reported {
		t.Errorf("outside was:\n%s\nand is:\n%s", before, treeOf(t, p.out))
	}
	if want == reported && !slices.Contains(c.Reasons, policy.MetadataWrites) {
		t.Errorf("it is not reported: %+v", c)
	}
}

// TestDescriptorsAreNotInherited leaves a descriptor and a directory open
// across exec, as a careless parent of this process may have.
func TestDescriptorsAreNotInherited(t *testing.T) {
	onBackends(t, testDescriptorsAreNotInherited)
}

func testDescriptorsAreNotInherited(t *testing.T, by string) {
	p := newPlace(t)
	for _, path := range []string{p.out + "/victim", p.out} {
		fd, err := unix.Open(path, unix.O_RDONLY, 0) // not close-on-exec
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
	script := `for fd in /proc/self/fd/*; do case $(readlink $fd) in $OUT*) exit 1; esac; done; ls /proc/self/fd | grep -v '^[0-3]$'; exit 0`
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
		if e := runConfined(t, p.policyBy(by, mode), p.bash(script)); e.exit != 0 || e.stdout != "" {
			t.Errorf("%v: %v", mode, e)
		}
	}
}

// TestConcurrentStartsWithMixedPolicies checks that each command got its own
// confinement and that the host got none.
func TestConcurrentStartsWithMixedPolicies(t *testing.T) {
	onBackends(t, testConcurrentStartsWithMixedPolicies)
}

func testConcurrentStartsWithMixedPolicies(t *testing.T, by string) {
	places := []place{newPlace(t), newPlace(t), newPlace(t)}
	var all sync.WaitGroup
	limit := make(chan struct{}, 16)
	for i := range 120 {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			own, other := places[i%3], places[(i+1)%3]
			mode := policy.Mode(i / 3 % 2)
			script := fmt.Sprintf(`echo x > %[1]s/n%[2]d; a=$?; echo x > %[3]s/n%[2]d; echo $((a == 0)) $(($? == 0))`, own.root, i, other.root)
			want := map[policy.Mode]string{policy.ReadOnly: "0 0\n", policy.WorkspaceWrite: "1 0\n"}[mode]
			if e := runConfined(t, own.policyBy(by, mode), own.bash(script)); e.stdout != want {
				t.Errorf("%v: %v", mode, e)
			}
		})
	}
	all.Wait()
	hostIsFree(t)
	write(t, places[0].out+"/by-the-host", "x")
	if err := os.Chmod(places[0].out+"/by-the-host", 0o644); err != nil {
		t.Error(err)
	}
}

func TestStartErrorsAreTheCommandsOwn(t *testing.T) {
	onBackends(t, testStartErrorsAreTheCommandsOwn)
}

func testStartErrorsAreTheCommandsOwn(t *testing.T, by string) {
	p := newPlace(t)
	write(t, p.root+"/not-executable", "#!/bin/sh\n")
	write(t, p.root+"/no-format", "\x00")
	if err := os.Chmod(p.root+"/no-format", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		claim string
		cmd   *exec.Cmd
	}{
		{"a missing program", &exec.Cmd{Path: p.root + "/missing"}},
		{"a missing program by a relative path", &exec.Cmd{Path: "./missing", Dir: p.root}},
		{"a program that PATH does not have", exec.Command("dsh-no-such-program")},
		{"a program that cannot be executed", &exec.Cmd{Path: p.root + "/not-executable"}},
		{"a program without a format", &exec.Cmd{Path: p.root + "/no-format"}},
		{"a directory as the program", &exec.Cmd{Path: p.root}},
		{"a missing working directory", &exec.Cmd{Path: "/bin/true", Dir: p.root + "/missing"}},
		{"a file as the working directory", &exec.Cmd{Path: "/bin/true", Dir: p.root + "/f"}},
	} {
		t.Run(row.claim, func(t *testing.T) {
			raw := exec.Cmd{Path: row.cmd.Path, Dir: row.cmd.Dir, Err: row.cmd.Err}
			want := raw.Start()
			if by == "bwrap" && reasonOf(want) == unix.ENOEXEC {
				t.Skip("bubblewrap lets a shell run what has no format, as execvp does")
			}
			got := confine(t, p.policyBy(by, policy.ReadOnly)).Start(row.cmd)
			if _, unavailable := errors.AsType[*UnavailableError](got); unavailable || got == nil || reasonOf(got) != reasonOf(want) {
				t.Errorf("error %v, want %v", got, want)
			}
		})
	}
}

// reasonOf is the innermost error.
func reasonOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func TestStartRefusesWhatWouldLeadOut(t *testing.T) {
	onBackends(t, testStartRefusesWhatWouldLeadOut)
}

func testStartRefusesWhatWouldLeadOut(t *testing.T, by string) {
	p := newPlace(t)
	for _, row := range []struct {
		claim  string
		change func(*exec.Cmd)
	}{
		{"further descriptors", func(c *exec.Cmd) { c.ExtraFiles = []*os.File{os.Stdin} }},
		{"a process group", func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }},
		{"the foreground", func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Foreground: true} }},
		{"a death signal", func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL} }},
	} {
		t.Run(row.claim, func(t *testing.T) {
			cmd := exec.Command("true")
			row.change(cmd)
			err := confine(t, p.policyBy(by, policy.ReadOnly)).Start(cmd)
			if _, ok := errors.AsType[*CommandError](err); !ok || cmd.Process != nil {
				t.Errorf("error %v, process %v", err, cmd.Process)
			}
		})
	}
}

func TestConfineRefusesRoots(t *testing.T) {
	needKernel(t)
	p := newPlace(t)
	if err := os.Symlink(p.root, p.out+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ claim, root string }{
		{"none", ""},
		{"the root of the file system", "/"},
		{"a missing directory", p.root + "/missing"},
		{"a file", p.root + "/f"},
		{"a link", p.out + "/link"},
		{"a relative path", "."},
		{"a path that is not clean", p.root + "/../ws"},
	} {
		for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
			t.Run(row.claim+"/"+mode.String(), func(t *testing.T) {
				_, err := Confine(t.Context(), Policy{Scope: policy.Scope{Mode: mode, Root: row.root, Temp: p.temp}})
				if _, ok := errors.AsType[*policy.RootError](err); !ok {
					t.Errorf("error %v, want a RootError", err)
				}
			})
		}
	}
}

// TestRootsAreLookedAtAgain changes directories between calls with one policy.
func TestRootsAreLookedAtAgain(t *testing.T) {
	onBackends(t, testRootsAreLookedAtAgain)
}

func testRootsAreLookedAtAgain(t *testing.T, by string) {
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
		t.Run("a root that is gone is refused/"+mode.String(), func(t *testing.T) {
			p := newPlace(t)
			confine(t, p.policyBy(by, mode))
			if err := os.RemoveAll(p.root); err != nil {
				t.Fatal(err)
			}
			_, err := Confine(t.Context(), p.policyBy(by, mode))
			if _, ok := errors.AsType[*policy.RootError](err); !ok {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("a root made anew is writable, the moved one is not", func(t *testing.T) {
		p := newPlace(t)
		confine(t, p.policyBy(by, policy.WorkspaceWrite))
		if err := errors.Join(os.Rename(p.root, p.out+"/old"), os.Mkdir(p.root, 0o700)); err != nil {
			t.Fatal(err)
		}
		if e := runConfined(t, p.policyBy(by, policy.WorkspaceWrite), p.bash(`echo x > new; a=$?; echo x > $OUT/old/new; echo $a $?`)); e.stdout != "0 1\n" {
			t.Error(e)
		}
	})
	t.Run("a temporary directory that became a link is refused", func(t *testing.T) {
		p := newPlace(t)
		confine(t, p.policyBy(by, policy.ReadOnly))
		if err := errors.Join(os.Remove(p.temp), os.Symlink(p.out, p.temp)); err != nil {
			t.Fatal(err)
		}
		_, err := Confine(t.Context(), p.policyBy(by, policy.ReadOnly))
		if _, ok := errors.AsType[*policy.RootError](err); !ok {
			t.Errorf("error %v", err)
		}
	})
}

func TestRequireFull(t *testing.T) {
	needKernel(t)
	p := newPlace(t)
	demand := func(mode policy.Mode) error {
		full := p.policy(mode)
		full.RequireFull = true
		_, err := Confine(t.Context(), full)
		return err
	}
	if confine(t, p.policy(policy.ReadOnly)).Confinement().Enforcement == policy.Full {
		if err := demand(policy.ReadOnly); err != nil {
			t.Errorf("read-only, which is enforced in full: %v", err)
		}
	}
	err := demand(policy.WorkspaceWrite)
	if _, ok := errors.AsType[*UnavailableError](err); !ok || !strings.Contains(err.Error(), "ungoverned: metadata_writes") {
		t.Errorf("workspace-write, which is not: %v", err)
	}
}

func TestConfineIsNotForFullAccess(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	_, _ = Confine(t.Context(), Policy{Scope: policy.Scope{Mode: policy.DangerFullAccess}})
}

func TestDo(t *testing.T) {
	needKernel(t)
	p := newPlace(t)
	do := func(mode policy.Mode, f func() error) error {
		c, err := Do(t.Context(), p.policy(mode), f)
		if c.Backend != "landlock" || c.Mode != mode {
			t.Errorf("it says that %+v confined it", c)
		}
		return err
	}
	put := func(dir string) func() error {
		return func() error { return os.WriteFile(filepath.Join(dir, "done"), nil, 0o600) }
	}
	if err := do(policy.WorkspaceWrite, put(p.root)); err != nil {
		t.Errorf("inside: %v", err)
	}
	if err := do(policy.WorkspaceWrite, put(p.out)); !errors.Is(err, unix.EACCES) {
		t.Errorf("outside: %v, want EACCES from the kernel", err)
	}
	if err := do(policy.ReadOnly, func() error { return os.Chmod(p.root+"/f", 0o644) }); !errors.Is(err, unix.EROFS) {
		t.Errorf("metadata in read-only: %v, want EROFS", err)
	}
	if err := do(policy.WorkspaceWrite, func() error { panic("inside of f") }); err == nil || !strings.Contains(err.Error(), "inside of f") {
		t.Errorf("a panic: %v", err)
	}
	own := errors.New("own")
	if err := do(policy.WorkspaceWrite, func() error { return own }); err != own {
		t.Errorf("f's own error: %v", err)
	}
	if err := put(p.out)(); err != nil {
		t.Errorf("the host itself: %v", err)
	}
	hostIsFree(t)
}

// fromMain is where offMain runs what it is given on the main thread, which
// this is: package variables are initialised there.
var fromMain = func() [2]int {
	thread := make(chan int, 1)
	offMain(func() { thread <- unix.Gettid() })
	return [2]int{unix.Gettid(), <-thread}
}()

func TestTheMainThreadIsNotUsed(t *testing.T) {
	if fromMain[0] != os.Getpid() {
		t.Fatal("the main thread was not asked")
	}
	if fromMain[1] == os.Getpid() {
		t.Error("the main thread was used")
	}
}

func TestProbe(t *testing.T) {
	needKernel(t)
	facts := Probe(t.Context(), "")
	if facts.Kernel == "" || facts.Landlock < 1 {
		t.Errorf("facts %+v", facts)
	}
	if len(facts.Backends) != 2 || facts.Backends[0].Name != "bwrap" || facts.Backends[1].Name != "landlock" {
		t.Fatalf("backends %+v", facts.Backends)
	}
	if len(facts.Modes) != 3 {
		t.Fatalf("modes %+v", facts.Modes)
	}
	p := newPlace(t)
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
		want := confine(t, Policy{Scope: p.policy(mode).Scope}).Confinement()
		if got := facts.Modes[mode]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v: %+v, want what Confine says: %+v", mode, got, want)
		}
	}
	for _, b := range facts.Backends {
		if b.Works != (b.Why == "") || b.Works != (len(b.Modes) == 2) || !b.Chosen {
			t.Errorf("backend %+v", b)
		}
		for i, got := range b.Modes {
			want := confine(t, p.policyBy(b.Name, policy.Mode(i))).Confinement()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %+v, want what Confine says: %+v", b.Name, got, want)
			}
		}
	}
	if last := facts.Modes[2]; last.Mode != policy.DangerFullAccess || last.Enforcement != policy.NotEnforced {
		t.Errorf("danger-full-access: %+v", last)
	}
}

// TestProbeOfAChain: what the chain leaves out is told of and used for nothing.
func TestProbeOfAChain(t *testing.T) {
	needKernel(t)
	facts := Chain{Backends: []string{"landlock"}}.Probe(t.Context(), "", false)
	if len(facts.Backends) != 2 || facts.Backends[0].Name != "landlock" || !facts.Backends[0].Chosen || facts.Backends[1].Chosen {
		t.Errorf("backends %+v", facts.Backends)
	}
	if facts.Modes[0].Backend != "landlock" {
		t.Errorf("modes %+v", facts.Modes)
	}
	facts = Chain{Runner: &Runner{Argv: []string{"/dsh-no-such-runner"}}}.Probe(t.Context(), "", false)
	if first := facts.Backends[0]; len(facts.Backends) != 3 || first.Name != "dsh-no-such-runner" || first.Works || facts.Backends[2].Chosen {
		t.Errorf("backends %+v", facts.Backends)
	}
	if facts.Modes[0].Backend != "none" || facts.Modes[0].Enforcement != policy.NotEnforced {
		t.Errorf("modes %+v, want none, although a backend that was left out works", facts.Modes)
	}
}

// TestAsOrdinaryUser repeats the tests of this package as a user without
// privileges, who meets other refusals.
func TestAsOrdinaryUser(t *testing.T) {
	needKernel(t)
	sessiontest.Need(t, "root", os.Getuid() == 0, "only root can become another user")
	dir, err := os.MkdirTemp("/var/tmp", "dsh-sandbox-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "sandbox.test")
	const nobody = 65534
	if err := errors.Join(os.WriteFile(binary, text, 0o755), os.Chmod(dir, 0o755), os.Mkdir(dir+"/home", 0o700), os.Chown(dir+"/home", nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.skip=^(TestAsOrdinaryUser|TestVCSAttacksWork)$")
	cmd.Dir = dir + "/home"
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "TMPDIR="+cmd.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, test := range []string{"TestCommands", "TestSystemCalls", "TestKill", "TestClassifyWhatTheHostCouldNotDoEither"} {
		if !strings.Contains(string(out), "--- PASS: "+test) {
			t.Errorf("%s did not run", test)
		}
	}
}
