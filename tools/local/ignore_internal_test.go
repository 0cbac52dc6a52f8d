package local

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-run/dsh/session/sessiontest"
)

// layout is files by name, made below a new directory. A name that ends in a
// slash is a directory.
func layout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			os.MkdirAll(path, 0o755)
		} else if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// walked are the files that a search below dir/sub looks at.
func walked(t *testing.T, dir string, hidden bool) (list []string) {
	t.Helper()
	var mu sync.Mutex
	w := &walk{root: dir, hidden: hidden, ignores: &levels{}, visit: func(_, rel string, _ fs.DirEntry) error {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, rel)
		return nil
	}}
	if err := w.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func TestIgnoreFilesMeanWhatTheyMeanToRipgrep(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		below string
		want  string
	}{
		{"without a repository .gitignore means nothing", map[string]string{".gitignore": "a", "a": "", "b": ""}, "", "a b"},
		{"in one it does", map[string]string{".git/HEAD": "", ".gitignore": "a", "a": "", "b": ""}, "", "b"},
		{".ignore means something everywhere", map[string]string{".ignore": "a", "a": "", "b": ""}, "", "b"},
		{".rgignore too", map[string]string{".rgignore": "a", "a": "", "b": ""}, "", "b"},
		{".ignore is stronger than .gitignore", map[string]string{".git/HEAD": "", ".gitignore": "a", ".ignore": "!a", "a": ""}, "", "a"},
		{".rgignore is stronger than .ignore", map[string]string{".rgignore": "!a", ".ignore": "a", "a": ""}, "", "a"},
		{"the repository's own exclusions", map[string]string{".git/info/exclude": "a", "a": "", "b": ""}, "", "b"},
		{"a search below the root", map[string]string{".git/HEAD": "", ".gitignore": "/s/a\n", "s/a": "", "s/b": "", "s/t/a": ""}, "s", "b t/a"},
		{"a repository inside is one of its own", map[string]string{".git/HEAD": "", ".gitignore": "a", "in/.git/HEAD": "", "in/a": ""}, "", "in/a"},
		{"above the root of the repository nothing counts", map[string]string{".gitignore": "a", "in/.git/HEAD": "", "in/a": ""}, "in", "a"},
		{"a linked worktree", map[string]string{"main/.git/info/exclude": "a", "main/.git/worktrees/w/commondir": "../..\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n", "w/a": "", "w/b": ""}, "w", "b"},
		{"hidden files are left out", map[string]string{".h": "", ".d/f": "", "a": ""}, "", "a"},
		{"hidden files that are wanted by name are not", map[string]string{".ignore": "!.h", ".h": "", ".i": ""}, "", ".h"},
		{"below a directory that is left out nothing is wanted", map[string]string{".ignore": "d/\n!d/f", "d/f": "", "a": ""}, "", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := layout(t, c.files)
			if got := strings.Join(walked(t, filepath.Join(dir, c.below), false), " "); got != c.want {
				t.Errorf("looks at %q, want %q", got, c.want)
			}
		})
	}
}

// gitSees are the files that git does not ignore.
func gitSees(t *testing.T, dir string) (list []string) {
	t.Helper()
	cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "ls-files", "-o", "--exclude-standard", "-z")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(string(out), "\x00") {
		if name != "" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func needGit(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("git")
	sessiontest.Need(t, "git", err == nil, "git is not installed")
}

func sameAsGit(t *testing.T, files map[string]string) {
	t.Helper()
	dir := layout(t, files)
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	os.WriteFile(filepath.Join(dir, ".git/info/exclude"), []byte(files[".git/info/exclude"]), 0o644)
	if got, want := walked(t, dir, true), gitSees(t, dir); !slices.Equal(got, want) {
		var rules []string
		for name, content := range files {
			if strings.HasSuffix(name, "ignore") {
				rules = append(rules, fmt.Sprintf("%s: %q", name, content))
			}
		}
		t.Errorf("with %s\nlooks at %q\n git sees %q", rules, got, want)
	}
}

func TestIgnoreRulesAgreeWithGit(t *testing.T) {
	needGit(t)
	for _, c := range []struct {
		name  string
		files map[string]string
	}{
		{"a nested negation", map[string]string{".gitignore": "*.log", "sub/.gitignore": "!keep.log", "sub/keep.log": "", "sub/a.log": "", "keep.log": ""}},
		{"everything but directories", map[string]string{".gitignore": "/*\n!/*/\n", "a": "", "d/a": "", "d/e/a": ""}},
		{"a directory anywhere", map[string]string{".gitignore": "**/vendor/", "a/.gitignore": "!vendor", "vendor/f": "", "a/vendor/f": "", "b/vendor": ""}},
		{"escapes and spaces", map[string]string{".gitignore": "\\!x\n\\#y\nz \nw\\ \n#c\n", "!x": "", "#y": "", "z": "", "z ": "", "w": "", "w ": "", "#c": ""}},
		{"a directory and a file of one name", map[string]string{".gitignore": "foo/", "foo/a": "", "b/foo": ""}},
		{"two stars in each place", map[string]string{".gitignore": "a/**/z\n/b/**\nc/**/\n**/d/e\n", "a/z": "", "a/x/z": "", "a/x/y/z": "", "b/f": "", "b/g/h": "", "c/f": "", "c/d/f": "", "x/d/e": "", "d/e": "", "d/f": ""}},
		{"classes", map[string]string{".gitignore": "[a-c]x\n[!d]y\n[[:digit:]]z\n[]q\n[x-]w\n", "ax": "", "dx": "", "dy": "", "ey": "", "1z": "", "az": "", "[]q": "", "xw": "", "-w": "", "yw": ""}},
		{"CRLF and a byte order mark", map[string]string{".gitignore": "\uFEFFa\r\nb\r\n", "a": "", "b": "", "c": ""}},
		{"a slash in the middle anchors", map[string]string{".gitignore": "d/a\n", "d/a": "", "e/d/a": ""}},
		{"stars do not cross slashes", map[string]string{".gitignore": "/d*a\nx?y\n", "da": "", "dxa": "", "d/a": "", "x/y": "", "xzy": ""}},
		{"the last rule decides", map[string]string{".gitignore": "a*\n!ab\nabc\n", "a": "", "ab": "", "abc": ""}},
	} {
		t.Run(c.name, func(t *testing.T) { sameAsGit(t, c.files) })
	}
}

// randomLayout makes few names, so that rules often match.
func randomLayout(r *rand.Rand) map[string]string {
	pick := func(from string) string { return string(from[r.IntN(len(from))]) }
	name := func() string {
		s := ""
		for range 1 + r.IntN(2) {
			s += pick("ab.c")
		}
		return strings.Trim(s, ".") + pick("ab")
	}
	path := func() string {
		s := name()
		for range r.IntN(3) {
			s = name() + "d/" + s // no file ends in d
		}
		return s
	}
	parts := []string{"a", "b", "c", ".", "*", "*", "?", "/", "/", "**", "**/", "/**", "[ab]", "[!a]", "[a-c]", "[^b-c]", `\a`, `\*`, "[", "]", "a*b", " "}
	rules := func() string {
		var lines []string
		for range 1 + r.IntN(4) {
			l := ""
			if r.IntN(4) == 0 {
				l = "!"
			}
			for range 1 + r.IntN(4) {
				l += parts[r.IntN(len(parts))]
			}
			lines = append(lines, l)
		}
		return strings.Join(lines, "\n") + "\n"
	}
	files := map[string]string{".gitignore": rules(), ".git/info/exclude": ""}
	for range 12 {
		files[path()] = ""
	}
	if r.IntN(2) == 0 {
		files[name()+"d/.gitignore"] = rules()
	}
	return files
}

func TestRandomIgnoreRulesAgreeWithGit(t *testing.T) {
	needGit(t)
	const seeds = 120
	compared := 0
	for seed := range uint64(seeds) {
		files := randomLayout(rand.New(rand.NewPCG(seed, 7)))
		if unclear(files) {
			continue
		}
		compared++
		sameAsGit(t, files)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if compared < seeds/3 {
		t.Errorf("only %d layouts were compared", compared)
	}
}

var starsBehindName = regexp.MustCompile(`[^/\n!]\*\*`)

// unclear reports whether a rule has two stars behind a name. git takes the
// name off first and then finds the stars at the start of a pattern, where
// they mean more than its manual says.
func unclear(files map[string]string) bool {
	for name, rules := range files {
		if strings.HasSuffix(name, "ignore") && starsBehindName.MatchString(rules) {
			return true
		}
	}
	return false
}
