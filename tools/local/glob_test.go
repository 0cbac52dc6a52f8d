package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

func (b *bench) glob(args object) []string {
	b.t.Helper()
	var paths []string
	for _, p := range b.ok("glob", args)["paths"].([]any) {
		paths = append(paths, p.(string))
	}
	return paths
}

func TestGlobPatterns(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	for _, f := range []string{
		"2026/07/26.md", "src/a.json", "src/b.xml", "src/c.txt", "top.md", ".hidden/x.md", "b1", "b2", "a",
		"app/[[...sign-in]]/page.tsx", "app/[id]/p.ts", "app/i/q.ts", "{rule} one.md", ".git/config", "-x1",
	} {
		b.put(f, "")
	}
	for _, c := range []struct {
		pattern, want string
	}{
		{"2026/07/26.md", "2026/07/26.md"},
		{"2026/*/*.md", "2026/07/26.md"},
		{"./top.md", "top.md"},
		{"2026/**", "2026/07/26.md"},
		{"*.md", ".hidden/x.md 2026/07/26.md top.md {rule} one.md"},
		{"src/*.{json,xml}", "src/a.json src/b.xml"},
		{"{a,b{1,2}}", "a b1 b2"},
		{"app/[id]/*", "app/[id]/p.ts app/i/q.ts"},
		{`app/\[id\]/*`, "app/[id]/p.ts"},
		{"app/[[...sign-in]]/*", "app/[[...sign-in]]/page.tsx"},
		{"{rule}*.md", ""},
		{`\{rule\}*.md`, "{rule} one.md"},
		{"-x*", "-x1"},
		{"**/config", ""},
		{"nowhere/*.md", ""},
		{b.dir + "/src/*.txt", "c.txt"},
		{"../work/src/*.txt", "../work/src/c.txt"},
	} {
		got := b.glob(object{"pattern": c.pattern})
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.pattern, got, c.want)
		}
	}
	if n := len(b.glob(object{"pattern": "**"})); n != 14 {
		t.Errorf("** gives %d files, want all 14 beside .git", n)
	}
	if got := b.glob(object{"pattern": "*", "path": "src"}); len(got) != 3 {
		t.Errorf("in src: %v", got)
	}
	if got := b.glob(object{"pattern": "*", "path": "app/[id]"}); len(got) != 1 {
		t.Errorf("a path is literal: %v", got)
	}
	for pattern, want := range map[string]string{
		"":                              "empty",
		"~/x":                           "~ is not expanded",
		"a[":                            "position 2",
		"{a":                            "position 1",
		strings.Repeat("{", 40):         "position",
		strings.Repeat("{a,b,c,d}", 12): "more than 4096",
	} {
		b.fails(tools.InvalidArgs, "glob", object{"pattern": pattern}, want)
	}
	b.fails(local.NotFound, "glob", object{"pattern": "*", "path": "nowhere"})
	b.fails(local.NotDirectory, "glob", object{"pattern": "*", "path": "top.md"})
}

func TestGlobIsNewestFirst(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	now := time.Now()
	for name, age := range map[string]int{"old": 3, "new": 1, "tie-b": 2, "tie-a": 2} {
		when := now.Add(-time.Duration(age) * time.Hour)
		os.Chtimes(b.put(name, ""), when, when)
	}
	for range 5 {
		if got := fmt.Sprint(b.glob(object{"pattern": "**"})); got != "[new tie-a tie-b old]" {
			t.Fatalf("got %s", got)
		}
	}
}

func TestGlobFollowsNoLinkOutAndNoCycle(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("a/f", "")
	outside := filepath.Join(filepath.Dir(b.dir), "f")
	os.WriteFile(outside, nil, 0o600)
	for link, to := range map[string]string{"a/up": "..", "a/self": ".", "a/etc": "/etc", "a/dang": "nowhere", "a/out": outside, "a/in": "f"} {
		if err := os.Symlink(to, b.path(link)); err != nil {
			sessiontest.Need(t, "symlinks", false, err.Error())
		}
	}
	got := b.glob(object{"pattern": "**"})
	slices.Sort(got)
	if fmt.Sprint(got) != "[a/f a/in]" {
		t.Errorf("got %v", got)
	}
}

func TestGlobSamplesALongList(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	for i := range 300 {
		b.put(fmt.Sprintf("many/f%03d.go", i), "")
	}
	for i := range 3 {
		b.put(fmt.Sprintf("few/f%d.go", i), "")
	}
	b.put("top.go", "")
	r := b.call("glob", object{"pattern": "*.go"})
	if v := b.value(r); len(v["paths"].([]any)) != 304 || v["total"] != 304.0 {
		t.Errorf("a program gets %d paths", len(v["paths"].([]any)))
	}
	shown := text(r)
	if n := strings.Count(shown, ".go\n"); n != 100 || strings.Count(shown, "few/") != 4 || !strings.Contains(shown, "top.go") {
		t.Errorf("%d shown: …%s", n, shown[max(0, len(shown)-200):])
	}
	if !strings.Contains(shown, "[100 of 304 files") || !strings.Contains(shown, "many/ 300, few/ 3, . 1") {
		t.Errorf("shown …%s", shown[max(0, len(shown)-200):])
	}
}

func TestGlobShowsNamesThatNeedCare(t *testing.T) {
	sessiontest.Need(t, "linux", goruntime.GOOS == "linux", "such names need a file system of bytes")
	b := newBench(t, policy.ReadOnly)
	for _, name := range []string{"dir:12/f.txt", "new\nline.txt", "sp ace:3:x", "bad\xffname"} {
		b.put(name, "hit")
	}
	got := b.glob(object{"pattern": "**"})
	slices.Sort(got)
	if want := []string{`bad\xffname`, "dir:12/f.txt", "new\nline.txt", "sp ace:3:x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range got {
		if r := b.call("read", object{"file_path": name}); r.Error != nil {
			t.Errorf("%q cannot be read: %v", name, r.Error)
		}
	}
	if shown := text(b.call("glob", object{"pattern": "**"})); strings.Count(shown, "\n") != 4 {
		t.Errorf("shown %q, want one line each", shown)
	}
}
