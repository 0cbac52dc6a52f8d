//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const launchTestEnv = "DSH_SANDBOX_LAUNCH_TEST"

// launchTask is what the test binary launches; without an ABI what this kernel
// has.
type launchTask struct {
	ABI int
	LaunchOptions
}

// The test binary is the launcher where the variable says so.
func init() {
	text := os.Getenv(launchTestEnv)
	if text == "" {
		return
	}
	os.Unsetenv(launchTestEnv)
	var task launchTask
	err := json.Unmarshal([]byte(text), &task)
	if err == nil && task.ABI == 0 {
		err = Launch(task.LaunchOptions)
	} else if err == nil {
		err = launch(task.ABI, task.LaunchOptions)
	}
	fmt.Fprintln(os.Stderr, "launcher:", err)
	var launch *LaunchError
	if errors.As(err, &launch) {
		os.Exit(launch.ExitCode)
	}
	os.Exit(1)
}

// launched is how a launched command ended.
type launched struct {
	exit                   int
	stdout, stderr, status string
}

// launcher is a command that launches the task from the place.
func (p place) launcher(task launchTask) *exec.Cmd {
	text, _ := json.Marshal(task)
	cmd := p.bash("")
	cmd.Path, cmd.Args = "/proc/self/exe", []string{"launcher"}
	cmd.Env = append(cmd.Env, launchTestEnv+"="+string(text))
	return cmd
}

// runLaunch runs a launcher to its end; with a task that names the status
// descriptor 3, that is a pipe.
func runLaunch(t *testing.T, cmd *exec.Cmd) launched {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.ExtraFiles = append([]*os.File{write}, cmd.ExtraFiles...)
	err = cmd.Start()
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	status, _ := io.ReadAll(read)
	err = cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return launched{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), string(status)}
}

func TestLaunchedCommands(t *testing.T) {
	needKernel(t)
	needProgram(t, "bash")
	write := func(p place) LaunchOptions { return LaunchOptions{Writable: []string{p.root, "/dev/null"}} }
	readOnly := func(p place) LaunchOptions { o := write(p); o.DenyMetadata = true; return o }
	some := func(p place) LaunchOptions {
		return LaunchOptions{Readable: []string{"/bin", "/usr", "/lib", "/lib64", "/etc/ld.so.cache"}, Writable: []string{p.root}}
	}
	for _, row := range []struct {
		claim   string
		options func(place) LaunchOptions
		script  string
		works   bool
	}{
		{"everything can be read", write, `cat $OUT/victim /etc/passwd`, true},
		{"what is named can be changed", write, `echo x > new && mv new newer && rm newer`, true},
		{"what is not named cannot", write, `echo x > $OUT/new`, false},
		{"what is not named cannot be truncated", write, `: > $OUT/victim`, false},
		{"a device that is named can be written to", write, `echo x > /dev/null`, true},
		{"another one cannot", write, `echo x > /dev/zero`, false},
		{"a device node cannot be made", write, `mknod k c 1 11`, false},
		{"a file alone can be named", func(p place) LaunchOptions { return LaunchOptions{Writable: []string{p.out + "/victim"}} }, `echo x > $OUT/victim`, true},
		{"and not what is beside it", func(p place) LaunchOptions { return LaunchOptions{Writable: []string{p.out + "/victim"}} }, `echo x > $OUT/new`, false},
		{"nothing is writable by itself", func(place) LaunchOptions { return LaunchOptions{} }, `echo x > new`, false},
		{"a link that is named is followed", func(p place) LaunchOptions {
			_ = os.Symlink(p.root, p.out+"/link")
			return LaunchOptions{Writable: []string{p.out + "/link"}}
		}, `echo x > new`, true},
		{"a relative path begins at the directory", func(place) LaunchOptions { return LaunchOptions{Writable: []string{"."}} }, `echo x > new`, true},
		{"of few readable paths these can be read", some, `cat f`, true},
		{"of few readable paths others cannot", some, `read line < $OUT/victim`, false},
		{"of few readable paths others cannot be listed", some, `ls $OUT`, false},
		{"metadata are not governed", write, `chmod 700 $OUT/victim`, true},
		{"metadata can be refused", readOnly, `chmod 700 $OUT/victim`, false},
		{"metadata can be refused also inside", readOnly, `chmod 700 f`, false},
		{"no core files", write, `[ "$(ulimit -Hc)" = 0 ]`, true},
		{"no way to more privileges", write, `grep -q 'NoNewPrivs:.1' /proc/self/status`, true},
		{"a session of its own", write, `read -r _ _ _ _ _ session _ < /proc/$$/stat && [ $session = $$ ]`, true},
		{"the arguments and the environment are the command's", write, `[ "$0" = name ] && [ -n "$WS" ]`, true},
	} {
		t.Run(row.claim, func(t *testing.T) {
			p := newPlace(t)
			task := launchTask{LaunchOptions: row.options(p)}
			task.Argv = []string{"bash", "-c", row.script, "name"}
			if got := runLaunch(t, p.launcher(task)); (got.exit == 0) != row.works {
				t.Errorf("it works: %v, got %+v", row.works, got)
			}
		})
	}
}

// TestLaunchedSystemCalls tries what would step around the sandbox.
func TestLaunchedSystemCalls(t *testing.T) {
	needKernel(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for metadata, want := range map[bool]string{true: "EROFS", false: "ok"} {
		p := newPlace(t)
		argv := []string{"env", callsTestEnv + "=" + p.out + "/victim", binary}
		got := runLaunch(t, p.launcher(launchTask{LaunchOptions: LaunchOptions{Argv: argv, DenyMetadata: metadata, Writable: []string{"/dev/null"}}}))
		checkCalls(t, got.stdout, want)
	}
}

// TestLaunchedDescriptors hands descriptors to the launcher.
func TestLaunchedDescriptors(t *testing.T) {
	needKernel(t)
	p := newPlace(t)
	dir, err := os.Open(p.out)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	script := `for fd in /proc/self/fd/*; do case $(readlink $fd) in $OUT*) exit 1; esac; done; ls /proc/self/fd | grep -v '^[0-3]$'; exit 0`
	for _, status := range []int{0, 3} {
		cmd := p.launcher(launchTask{LaunchOptions: LaunchOptions{Argv: []string{"bash", "-c", script}, Status: status}})
		cmd.ExtraFiles = []*os.File{dir, dir}
		if got := runLaunch(t, cmd); got.exit != 0 || got.stdout != "" {
			t.Errorf("status descriptor %d: %+v", status, got)
		}
	}
}

// TestLaunchBelowAShell starts the launcher as the leader of a group, for whom
// there is no session of its own.
func TestLaunchBelowAShell(t *testing.T) {
	needKernel(t)
	p := newPlace(t)
	cmd := p.launcher(launchTask{LaunchOptions: LaunchOptions{Argv: []string{"bash", "-c", "echo ran; echo x > f"}}})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if got := runLaunch(t, cmd); got.exit != 1 || got.stdout != "ran\n" {
		t.Errorf("%+v", got)
	}
}

func TestLaunchSaysWhatIsEnforced(t *testing.T) {
	needKernel(t)
	abi, err := usableABI()
	if err != nil {
		t.Fatal(err)
	}
	whole := launchFacts(abi).String() + "\n"
	notice := ""
	if len(launchFacts(abi).Ungoverned) > 0 {
		notice = LaunchNotice + "\n"
	}
	const second = "landlock: partially enforced: ABI 2 does not govern truncate, device_ioctls, abstract_sockets, signals\n"
	for _, row := range []struct {
		claim          string
		abi, status    int
		said, onStderr string
	}{
		{"nothing on stderr where all is enforced", abi, 0, "", notice},
		{"all on the status descriptor", abi, 3, whole, ""},
		{"one fixed line on stderr where a part is missing", 2, 0, "", LaunchNotice + "\n"},
		{"what is missing on the status descriptor, and then not on stderr", 2, 3, second, ""},
	} {
		t.Run(row.claim, func(t *testing.T) {
			p := newPlace(t)
			task := launchTask{row.abi, LaunchOptions{Argv: []string{"bash", "-c", "echo x > f 2>&1; echo own >&2"}, Status: row.status}}
			got := runLaunch(t, p.launcher(task))
			denied := regexp.MustCompile(`(?m)^bash: .*Permission denied\n`)
			if rest := denied.ReplaceAllString(got.stderr, ""); got.exit != 0 || got.status != row.said || rest != row.onStderr+"own\n" || rest == got.stderr {
				t.Errorf("%+v, want %q on the descriptor and %q on stderr", got, row.said, row.onStderr)
			}
		})
	}
}

// TestLaunchFailures: what does not run says so in one line, and nothing runs.
func TestLaunchFailures(t *testing.T) {
	needKernel(t)
	argv := []string{"touch", "made"}
	for _, row := range []struct {
		claim   string
		options LaunchOptions
		exit    int
		words   string
	}{
		{"no command", LaunchOptions{}, 125, "no command"},
		{"an empty name", LaunchOptions{Argv: []string{""}}, 125, "no command"},
		{"a missing path to read", LaunchOptions{Argv: argv, Readable: []string{"/", "missing"}}, 125, `allow reading of "missing": no such file`},
		{"a missing path to write", LaunchOptions{Argv: argv, Writable: []string{".", "/missing"}}, 125, `allow writing of "/missing": no such file`},
		{"an empty path", LaunchOptions{Argv: argv, Writable: []string{""}}, 125, `allow writing of "": no such file`},
		{"a status descriptor that is not open", LaunchOptions{Argv: argv, Writable: []string{"."}, Status: 77}, 125, "descriptor 77 is not open"},
		{"a status descriptor of the launcher's own", LaunchOptions{Argv: argv, Writable: []string{"."}, Status: 4}, 125, "descriptor 4 is not open"},
		{"a status descriptor that is a stream", LaunchOptions{Argv: argv, Writable: []string{"."}, Status: 2}, 125, "want 3 or higher"},
		{"a negative status descriptor", LaunchOptions{Argv: argv, Writable: []string{"."}, Status: -1}, 125, "want 3 or higher"},
		{"a program that is not there", LaunchOptions{Argv: []string{"dsh-no-such-program"}}, 127, "not found"},
		{"a path that is not there", LaunchOptions{Argv: []string{"./missing"}}, 127, "no such file"},
		{"a file that cannot be executed", LaunchOptions{Argv: []string{"./f"}}, 126, "permission denied"},
		{"a directory", LaunchOptions{Argv: []string{"/usr"}}, 126, "is a directory"},
		{"a file without a format", LaunchOptions{Argv: []string{"./no-format"}}, 126, "exec format error"},
		{"a program that may not be executed", LaunchOptions{Argv: argv, Readable: []string{"."}, Writable: []string{"."}}, 126, "execute .*touch: permission denied"},
	} {
		t.Run(row.claim, func(t *testing.T) {
			p := newPlace(t)
			write(t, p.root+"/no-format", "\x00")
			if err := os.Chmod(p.root+"/no-format", 0o700); err != nil {
				t.Fatal(err)
			}
			got := runLaunch(t, p.launcher(launchTask{LaunchOptions: row.options}))
			one := strings.Count(got.stderr, "\n") == 1
			if matched, _ := regexp.MatchString(row.words, got.stderr); got.exit != row.exit || !matched || !one || got.stdout != "" {
				t.Errorf("%+v, want exit code %d and one line with %q", got, row.exit, row.words)
			}
			if exists(p.root + "/made") {
				t.Error("the command ran")
			}
		})
	}
}

func TestLaunchFacts(t *testing.T) {
	for abi, want := range map[int][]string{
		1: {"truncate", "device_ioctls", "abstract_sockets", "signals"},
		3: {"device_ioctls", "abstract_sockets", "signals"},
		5: {"abstract_sockets", "signals"},
		6: nil,
		7: nil,
	} {
		if got := launchFacts(abi); !slices.Equal(got.Ungoverned, want) {
			t.Errorf("ABI %d: %v, want %v", abi, got.Ungoverned, want)
		}
	}
	if got, want := launchFacts(7).String(), "landlock: fully enforced, ABI 7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestProbeLaunch(t *testing.T) {
	needKernel(t)
	facts, err := ProbeLaunch()
	abi, _ := usableABI()
	if err != nil || facts.ABI != abi {
		t.Errorf("%+v, %v, want ABI %d", facts, err, abi)
	}
	hostIsFree(t)
}

// TestAFailedLaunchLeavesTheProcessFree, since the thread is thrown away.
func TestAFailedLaunchLeavesTheProcessFree(t *testing.T) {
	needKernel(t)
	p := newPlace(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestLaunchInProcess$")
	cmd.Env = append(os.Environ(), "DSH_SANDBOX_LAUNCH_FREE="+p.out)
	if out, err := cmd.CombinedOutput(); err != nil || !exists(p.out+"/after") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLaunchInProcess is the part of the test above for a process of its own.
func TestLaunchInProcess(t *testing.T) {
	out := os.Getenv("DSH_SANDBOX_LAUNCH_FREE")
	if out == "" {
		t.Skip("it is run by TestAFailedLaunchLeavesTheProcessFree")
	}
	write(t, out+"/no-format", "\x00")
	if err := os.Chmod(out+"/no-format", 0o700); err != nil {
		t.Fatal(err)
	}
	err := Launch(LaunchOptions{Argv: []string{out + "/no-format"}})
	if !errors.Is(err, unix.ENOEXEC) {
		t.Fatalf("error %v", err)
	}
	hostIsFree(t)
	write(t, out+"/after", "")
}
