package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

type grepResult struct {
	Root    string
	Matches []struct {
		Path       string
		LineNumber int `json:"line_number"`
		Line       string
		Clipped    bool
		Before     []string
		After      []string
	}
	FilesSearched int `json:"files_searched"`
	SkippedBinary int `json:"skipped_binary"`
	TotalMatches  int `json:"total_matches"`
	Truncated     bool
}

func (b *bench) grep(args object) (v grepResult) {
	b.t.Helper()
	r := b.call("grep", args)
	if r.Error != nil {
		b.t.Fatalf("grep %v: %v", args, r.Error)
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (v grepResult) String() string {
	var lines []string
	for _, m := range v.Matches {
		lines = append(lines, fmt.Sprintf("%s:%d:%s", m.Path, m.LineNumber, m.Line))
	}
	return strings.Join(lines, "|")
}

func TestGrepFindsLines(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("a.txt", "one\nTwo foo\r\nthree foo bar\n\nlast")
	b.put("d/b.go", "foo(x)\n--help -needle\nword words\n")
	for _, c := range []struct {
		name string
		args object
		want string
	}{
		{"a literal", object{"pattern": "foo"}, "a.txt:2:Two foo|a.txt:3:three foo bar|d/b.go:1:foo(x)"},
		{"either case", object{"pattern": "two", "ignore_case": true}, "a.txt:2:Two foo"},
		{"either case in the pattern", object{"pattern": "(?i)TWO"}, "a.txt:2:Two foo"},
		{"an end of a line, CRLF too", object{"pattern": "foo$"}, "a.txt:2:Two foo"},
		{"a start of a line", object{"pattern": "^foo"}, "d/b.go:1:foo(x)"},
		{"an empty line", object{"pattern": "^$"}, "a.txt:4:"},
		{"the last line without an end", object{"pattern": "last"}, "a.txt:5:last"},
		{"words", object{"pattern": `\bword\b`}, "d/b.go:3:word words"},
		{"alternatives", object{"pattern": "one|last"}, "a.txt:1:one|a.txt:5:last"},
		{"white space stays within a line", object{"pattern": `\s+bar`}, "a.txt:3:three foo bar"},
		{"a class does not reach over the end", object{"pattern": `e[^x]T`}, ""},
		{"the start of the text is that of the line", object{"pattern": `\Athree`}, "a.txt:3:three foo bar"},
		{"every line", object{"pattern": ".*", "path": "d"}, "b.go:1:foo(x)|b.go:2:--help -needle|b.go:3:word words"},
		{"literal mode", object{"pattern": "foo(x)", "mode": "literal"}, "d/b.go:1:foo(x)"},
		{"like an option", object{"pattern": "--help"}, "d/b.go:2:--help -needle"},
		{"like an option with an argument", object{"pattern": "-needle"}, "d/b.go:2:--help -needle"},
		{"include by name", object{"pattern": "foo", "include": "*.go"}, "d/b.go:1:foo(x)"},
		{"include by path", object{"pattern": "foo", "include": "d/**"}, "d/b.go:1:foo(x)"},
		{"one file", object{"pattern": "foo", "path": "d/b.go"}, "b.go:1:foo(x)"},
		{"no match", object{"pattern": "nothing"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bench{Registry: b.Registry, t: t, set: b.set, session: b.session, dir: b.dir}
			if got := b.grep(c.args); got.String() != c.want {
				t.Errorf("%v: got %q, want %q", c.args, got, c.want)
			}
		})
	}
	if v := b.grep(object{"pattern": "foo", "path": "d/b.go"}); v.Root != b.path("d") {
		t.Errorf("root %s", v.Root)
	}
}

func TestGrepContext(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("f", "1\n2\nhit a\n4\nhit b\n6\n7\n")
	v := b.grep(object{"pattern": "hit", "context": 2})
	got := fmt.Sprint(v.Matches[0].Before, v.Matches[0].After, v.Matches[1].Before, v.Matches[1].After)
	if got != "[1 2] [4 hit b] [hit a 4] [6 7]" {
		t.Errorf("got %s", got)
	}
	if v := b.grep(object{"pattern": "hit"}); v.Matches[0].Before == nil || len(v.Matches[0].Before) != 0 {
		t.Errorf("without context: %v", v.Matches[0].Before)
	}
	b.fails(tools.InvalidArgs, "grep", object{"pattern": "x", "context": 101})
}

func TestGrepSaysWhatOfAPatternItDoesNotHave(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("f", "foo(?!bar) (a)\\1 (?<=x)y [ a{1001} x*+")
	for pattern, want := range map[string]string{
		"foo(?!bar)": `negative look-ahead, which RE2 does not have: "(?!"`,
		"foo(?=bar)": `look-ahead, which RE2 does not have: "(?="`,
		"(?<=x)y":    `look-behind, which RE2 does not have: "(?<=x)y"`,
		"(?<!x)y":    `negative look-behind, which RE2 does not have: "(?<!x)y"`,
		`(a)\1`:      `back-reference, which RE2 does not have: "\\1"`,
		"[":          `missing closing ]`,
		"a{1001}":    "over 1000",
		"x*+":        "repetition of a repetition",
		"a\nb":       "line break",
		"":           "empty",
	} {
		b.fails(tools.InvalidArgs, "grep", object{"pattern": pattern}, want)
		if pattern == "" || pattern == "a\nb" || pattern == "foo(?=bar)" || pattern == "(?<!x)y" {
			continue
		}
		if v := b.grep(object{"pattern": pattern, "mode": "literal"}); len(v.Matches) != 1 {
			t.Errorf("%s as a literal: %v", pattern, v)
		}
	}
}

func TestGrepClipsALongLineAroundTheMatch(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("min.js", strings.Repeat("é", 300000)+"stats"+strings.Repeat("y", 600000)+"\nstats")
	r := b.call("grep", object{"pattern": "stats"})
	if n := len(text(r)); n > 4000 {
		t.Errorf("%d bytes shown", n)
	}
	v := b.grep(object{"pattern": "stats"})
	m := v.Matches[0]
	if !m.Clipped || !strings.Contains(m.Line, "stats") || len(m.Line) > 2000 || strings.Contains(m.Line, "\uFFFD") || v.Matches[1].Clipped {
		t.Errorf("clipped %v, %d bytes", m.Clipped, len(m.Line))
	}
}

func TestGrepFiltersBeforeItCounts(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put(".ignore", "node_modules/\n")
	for i := range 1200 {
		b.put(fmt.Sprintf("node_modules/f%d.js", i), "X\n")
	}
	b.put("src/app.py", "X\n")
	for _, args := range []object{{"pattern": "X"}, {"pattern": "X", "include": "src/*.py", "no_ignore": true}} {
		if v := b.grep(args); v.String() != "src/app.py:1:X" || v.FilesSearched != 1 || v.Truncated {
			t.Errorf("%v: %v in %d files", args, v, v.FilesSearched)
		}
	}
	r := b.call("grep", object{"pattern": "X", "no_ignore": true})
	if v := b.value(r); len(v["matches"].([]any)) != 1201 {
		t.Errorf("a program gets %d matches", len(v["matches"].([]any)))
	}
	if shown := text(r); strings.Count(shown, "X\n") != 250 || !strings.Contains(shown, "the first 250 of 1201 matches") {
		t.Errorf("%d shown", strings.Count(shown, "X\n"))
	}
}

func TestGrepLeavesOutWhatRipgrepDoes(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put(".git/HEAD", "hit")
	b.put(".gitignore", "*.log\n")
	b.put("a.log", "hit")
	b.put("b.txt", "hit")
	b.put(".h/c.txt", "hit")
	b.put("bin", "hit\x00")
	if goruntime.GOOS != "windows" {
		if err := mkfifo(b.path("pipe")); err != nil {
			t.Fatal(err)
		}
		os.Symlink("b.txt", b.path("link"))
		os.Symlink(".", b.path("cycle"))
	}
	for _, c := range []struct {
		args object
		want string
	}{
		{object{}, "b.txt"},
		{object{"hidden": true}, ".h/c.txt b.txt"},
		{object{"no_ignore": true}, "a.log b.txt"},
		{object{"hidden": true, "no_ignore": true}, ".h/c.txt a.log b.txt"},
		{object{"path": "a.log"}, "a.log"},
	} {
		c.args["pattern"] = "hit"
		v := b.grep(c.args)
		var paths []string
		for _, m := range v.Matches {
			paths = append(paths, m.Path)
		}
		if strings.Join(paths, " ") != c.want {
			t.Errorf("%v: %v, want %s", c.args, paths, c.want)
		}
		if c.args["path"] == nil && v.SkippedBinary != 1 {
			t.Errorf("%v: %d binary files", c.args, v.SkippedBinary)
		}
	}
	b.fails(local.NotRegularFile, "grep", object{"pattern": "x", "path": "pipe"})
}

func TestGrepIsTheSameEachTime(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	for i := range 200 {
		b.put(fmt.Sprintf("d%d/f%d", i%7, i), strings.Repeat("hit\nmiss\n", i%5))
	}
	first := b.grep(object{"pattern": "hit"}).String()
	for range 5 {
		if again := b.grep(object{"pattern": "hit"}).String(); again != first {
			t.Fatal("two searches differ")
		}
	}
}

func TestGrepBoundsItsValue(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	for i := range 8 {
		b.put(fmt.Sprintf("f%d", i), strings.Repeat(strings.Repeat("x", 100)+"\n", 40000))
	}
	v := b.grep(object{"pattern": "x"})
	if !v.Truncated || v.TotalMatches != 320000 || len(v.Matches) == 0 || v.Matches[0].Path != "f0" {
		t.Fatalf("truncated %v, %d of %d", v.Truncated, len(v.Matches), v.TotalMatches)
	}
}

func TestGrepAcrossTheEdgesOfBlocks(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	var all strings.Builder
	want := 0
	for i := 0; all.Len() < 1<<20; i++ {
		line := strings.Repeat("-", i*7919%977)
		if i%50 == 0 {
			line += "needle"
			want++
		}
		all.WriteString(line + "\n")
	}
	b.put("f", all.String())
	lines := strings.Split(all.String(), "\n")
	for _, pattern := range []string{"needle", "n[e]+dle$", "(?i)NEEDLE", "ne.dle|never"} {
		v := b.grep(object{"pattern": pattern})
		if len(v.Matches) != want {
			t.Fatalf("%s: %d matches, want %d", pattern, len(v.Matches), want)
		}
		for _, m := range v.Matches {
			if lines[m.LineNumber-1] != m.Line {
				t.Fatalf("%s: line %d is %q", pattern, m.LineNumber, m.Line)
			}
		}
	}
}

func TestGrepAgreesWithRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	sessiontest.Need(t, "rg", err == nil, "ripgrep is not installed")
	b := newBench(t, policy.ReadOnly)
	tree, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"func", `^import \(`, `\berr\b`, "TODO|FIXME", "[A-Z]{4,}"} {
		cmd := exec.Command(rg, "--no-config", "--no-ignore-global", "-c", "--no-filename", "-e", pattern, ".")
		cmd.Dir = tree
		out, _ := cmd.Output()
		want := 0
		for _, n := range strings.Fields(string(out)) {
			var k int
			fmt.Sscan(n, &k)
			want += k
		}
		if v := b.grep(object{"pattern": pattern, "path": tree}); v.TotalMatches != want {
			t.Errorf("%s: %d matches, ripgrep has %d", pattern, v.TotalMatches, want)
		}
	}
}

func TestGrepEndsWithItsCaller(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("f", "x")
	ctx, cancel := context.WithCancel(t.Context())
	b.Wrap("cancels", func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			cancel()
			return next(ctx, call)
		}
	})
	if r := b.callAs(ctx, policy.Direct, "grep", object{"pattern": "x"}); r.Error == nil {
		t.Fatal("a search went on without its caller")
	}
}
