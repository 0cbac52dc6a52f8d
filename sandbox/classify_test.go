package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-run/dsh/policy"
)

// testWorld is a host whose user owns /ws, /out and /home/me, and on which
// /sealed is mounted read-only. Paths have slashes everywhere.
func testWorld() world {
	own := func(path string) bool {
		return strings.HasPrefix(path, "/ws") || strings.HasPrefix(path, "/out") || strings.HasPrefix(path, "/home/me") || strings.HasPrefix(path, "/sealed")
	}
	return world{
		roots: policy.Roots{Dirs: []string{"/ws", "/tmp"}, Devices: []string{"/dev/null"}},
		cwd:   "/ws",
		resolve: func(cwd, path string) string {
			if !strings.HasPrefix(path, "/") {
				path = cwd + "/" + path
			}
			return filepath.ToSlash(filepath.Clean(path))
		},
		writable:   func(path string, _ effect) bool { return own(path) },
		owned:      own,
		sealed:     func(path string) bool { return strings.HasPrefix(path, "/sealed") },
		runnable:   func(path string) bool { return !strings.HasSuffix(path, ".txt") },
		said:       func() mentions { return mentions{} },
		privileged: func(string) bool { return false },
		sameDevice: func(a, b string) bool { return strings.HasPrefix(a, "/disk2") == strings.HasPrefix(b, "/disk2") },
	}
}

var landlockDenials = denials{access: true, crossDevice: true, metadata: true}

func TestClassify(t *testing.T) {
	at := func(path string) verdict { return verdict{true, opWrite, path, policy.ByPath} }
	metadata := func(path string) verdict { return verdict{true, opMetadata, path, policy.ByPath} }
	byText := verdict{true, opWrite, "", policy.ByText}
	none := verdict{}
	for _, row := range []struct {
		claim, stderr string
		exit          int
		want          verdict
	}{
		// What is a denial.
		{"touch", "touch: cannot touch '/out/n': Permission denied", 1, at("/out/n")},
		{"touch, relative", "touch: cannot touch '../out/n': Permission denied", 1, at("/out/n")},
		{"cp", "cp: cannot create regular file '/out/f': Permission denied", 1, at("/out/f")},
		{"mv names two paths, of which one is outside", "mv: cannot move '/out/v' to './v': Permission denied", 1, at("/out/v")},
		{"ln over the border", "ln: failed to create hard link '/out/h' => 'f': Invalid cross-device link", 1, at("/out/h")},
		{"a name with a space", "touch: cannot touch '/out/a b': Permission denied", 1, at("/out/a b")},
		{"a name with a quote", `touch: cannot touch '/out/a'\''b': Permission denied`, 1, at("/out/a'b")},
		{"curly quotes", "mkdir: cannot create directory ‘/out/d’: Permission denied", 1, at("/out/d")},
		{"an apostrophe in the words", "tool: can't open '/out/x': Permission denied", 1, at("/out/x")},
		{"bash", "bash: line 1: /out/n: Permission denied", 1, at("/out/n")},
		{"bash, with a name of spaces", "bash: line 1: /out/a b: Permission denied", 1, at("/out/a b")},
		{"dash", "sh: 1: cannot create /out/n: Permission denied", 2, at("/out/n")},
		{"zsh", "zsh:1: permission denied: /out/n", 1, at("/out/n")},
		{"tee", "tee: /out/n: Permission denied", 1, at("/out/n")},
		{"sed puts words before the name", "sed: couldn't open temporary file /out/sedXy: Permission denied", 4, at("/out/sedXy")},
		{"python", "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nPermissionError: [Errno 13] Permission denied: '/out/n'", 1, at("/out/n")},
		{"python, two paths", "PermissionError: [Errno 13] Permission denied: '/ws/f' -> '/out/f'", 1, at("/out/f")},
		{"node", "Error: EACCES: permission denied, open '/out/n'\n    at Object.openSync (node:fs:574:18)", 1, at("/out/n")},
		{"go", "open /out/n: permission denied", 1, at("/out/n")},
		{"go, rename", "rename /ws/f /out/f: invalid cross-device link", 1, at("/out/f")},
		{"cargo names the path before the cause", "error: failed to write `/out/target/x`\n\nCaused by:\n  Permission denied (os error 13)", 101, at("/out/target/x")},
		{"git", "fatal: Unable to create '/out/r/.git/index.lock': Permission denied", 128, at("/out/r/.git/index.lock")},
		{"git init", "/out/r: Permission denied\nfatal: cannot mkdir /out/r", 128, at("/out/r")},
		{"make", "make: *** [Makefile:2: all] Error 1\ninstall: cannot create regular file '/out/bin/x': Permission denied", 2, at("/out/bin/x")},
		{"pip", "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/out/site/x'\nCheck the permissions.", 1, at("/out/site/x")},
		{"npm", "npm error code EACCES\nnpm error syscall mkdir\nnpm error Error: EACCES: permission denied, mkdir '/home/me/.npm/_cacache'", 243, at("/home/me/.npm/_cacache")},
		{"sqlite", `Error: unable to open database "/out/x.db": unable to open database file`, 1, at("/out/x.db")},
		{"chmod by the filter", "chmod: changing permissions of '/ws/f': Read-only file system", 1, metadata("/ws/f")},
		{"times by the filter", "touch: setting times of '/out/v': Read-only file system", 1, metadata("/out/v")},
		{"German", "touch: '/out/n' kann nicht berührt werden: Keine Berechtigung", 1, at("/out/n")},
		{"German bash", "bash: Zeile 1: /out/n: Keine Berechtigung", 1, at("/out/n")},
		{"German, by the filter", "chmod: Beim Setzen der Zugriffsrechte für '/ws/f': Das Dateisystem ist nur lesbar", 1, metadata("/ws/f")},
		{"French bash", "bash : ligne 1 : /out/n : Permission non accordée", 1, at("/out/n")},
		{"Japanese", "touch: '/out/n' に touch できません: 許可がありません", 1, at("/out/n")},
		{"a denial hidden by the exit code", "cp: cannot create regular file '/out/f': Permission denied", 0, at("/out/f")},
		{"a denial after other complaints", "touch: cannot touch '/etc/n': Permission denied\ntouch: cannot touch '/out/n': Permission denied", 1, at("/out/n")},
		{"only the wording", "sqlite: attempt to write a readonly database", 1, byText},
		{"only a code", "npm error code EACCES", 243, byText},

		// What is the command's own failure.
		{"nothing was said", "", 1, none},
		{"what the host's user could not do either", "touch: cannot touch '/etc/n': Permission denied", 1, none},
		{"reading what is private", "cat: /etc/shadow: Permission denied", 1, none},
		{"words before a name that the host could not write", "sed: couldn't open temporary file /etc/sedXy: Permission denied", 4, none},
		{"inside of the roots", "touch: cannot touch '/ws/n': Permission denied", 1, none},
		{"a file system that is mounted so", "touch: cannot touch '/sealed/n': Read-only file system", 1, none},
		{"a real border of devices", "mv: cannot move '/out/x' to '/disk2/x': Invalid cross-device link", 1, none},
		{"ssh", "me@host: Permission denied (publickey).", 255, none},
		{"docker", "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock", 1, none},
		{"a code by text beside exit 0", "npm warn code EACCES", 0, none},
		{"a script that is not executable", "bash: line 1: /out/x.txt: Permission denied", 126, none},
		{"126 without a word", "", 126, none},
		{"127 without a word", "bash: line 1: nope: command not found", 127, none},
		{"an error that this backend does not give", "cp: cannot create '/out/x': Operation not permitted", 1, none},
		{"a full disk", "cp: error writing '/out/x': No space left on device", 1, none},
		{"a nested runner's complaint", "bwrap: No permissions to create new namespace", 1, none},
		{"a document that speaks of it", "see the chapter about permission denied messages", 1, none},
		{"a web address", "fatal: https://host/out: Permission denied", 1, none},
	} {
		t.Run(row.claim, func(t *testing.T) {
			if got := classify([]byte(row.stderr), row.exit, 0, landlockDenials, testWorld()); got != row.want {
				t.Errorf("%q, exit %d:\n got %+v\nwant %+v", row.stderr, row.exit, got, row.want)
			}
		})
	}
}

func TestClassifySignalsAreNeverDenials(t *testing.T) {
	stderr := []byte("touch: cannot touch '/out/n': Permission denied")
	if got := classify(stderr, -1, syscall.SIGKILL, landlockDenials, testWorld()); got.denied {
		t.Errorf("%+v", got)
	}
}

func TestClassifyCountsOnlyTheBackendsErrors(t *testing.T) {
	for _, row := range []struct {
		claim, stderr string
		d             denials
	}{
		{"EROFS where metadata are free", "chmod: changing permissions of '/out/f': Read-only file system", denials{access: true, crossDevice: true}},
		{"EACCES from a backend that gives EROFS", "touch: cannot touch '/out/n': Permission denied", denials{metadata: true}},
	} {
		if got := classify([]byte(row.stderr), 1, 0, row.d, testWorld()); got.denied {
			t.Errorf("%s: %+v", row.claim, got)
		}
	}
}

// TestClassifyIsBounded floods it: the denial at the end is found.
func TestClassifyIsBounded(t *testing.T) {
	var flood strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&flood, "cat: /etc/private/%d: Permission denied\n", i)
	}
	flood.WriteString("touch: cannot touch '/out/n': Permission denied\n")
	asked := 0
	w := testWorld()
	resolve := w.resolve
	w.resolve = func(cwd, path string) string { asked++; return resolve(cwd, path) }
	if got := classify([]byte(flood.String()), 1, 0, landlockDenials, w); got.path != "/out/n" {
		t.Errorf("%+v", got)
	}
	if asked > 2*mostLines {
		t.Errorf("the host was asked for %d paths", asked)
	}
}

// FuzzClassify states that no text makes it panic, and that no verdict is a
// denial inside of the roots but of metadata.
func FuzzClassify(f *testing.F) {
	f.Add("touch: cannot touch '/out/n': Permission denied", 1)
	f.Add("bash: line 1: /ws/n: Permission denied", 0)
	f.Fuzz(func(t *testing.T, stderr string, exit int) {
		w := testWorld()
		got := classify([]byte(stderr), exit, 0, landlockDenials, w)
		if got.denied && got.op == opWrite && got.path != "" && w.roots.Judge(got.path) == policy.Writable {
			t.Errorf("%q: %+v", stderr, got)
		}
	})
}
