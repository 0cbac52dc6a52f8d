package local_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// talker adds a tool that says text.
func (b *bench) talker(name, says string) {
	tools.Add(b.Registry, tools.Tool{Name: name, Description: "talks", Effect: tools.NoEffect,
		Render: tools.Renderer(func(struct{}, string) []tools.Content {
			return []tools.Content{tools.Text(says), tools.Image([]byte{1}, "image/png")}
		})},
		func(context.Context, *tools.Call, struct{}) (string, error) { return "", nil })
}

func (b *bench) spilled() []string {
	b.t.Helper()
	list, err := filepath.Glob(filepath.Join(b.session.Log().SpillDir(), "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func TestSpillKeepsHeadAndTailWithinTheBudget(t *testing.T) {
	long := "HEAD " + strings.Repeat("é", 100000) + " TAIL"
	for _, c := range []struct {
		name   string
		tokens int
		says   string
		spills bool
	}{
		{"12500 tokens by default", 0, strings.Repeat("x", 50000), false},
		{"a byte more", 0, strings.Repeat("x", 50001), true},
		{"one long line", 0, long, true},
		{"many lines", 1000, strings.Repeat("a line\n", 10000), true},
		{"a budget below the notice", 10, long, true},
		{"a short text", 10, "short", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, policy.ReadOnly)
			b.After("spill", local.Spill(&local.SpillOptions{MaxInlineTokens: c.tokens}))
			b.talker("say.it", c.says)
			r := b.call("say.it", object{})
			files := b.spilled()
			if !c.spills {
				if text(r) != c.says || len(files) != 0 {
					t.Fatalf("%d bytes shown, %v spilled", len(text(r)), files)
				}
				return
			}
			budget := 4 * c.tokens
			if budget == 0 {
				budget = 50000
			}
			if len(text(r)) > budget || !utf8.ValidString(text(r)) {
				t.Errorf("%d bytes shown, want at most %d of valid UTF-8", len(text(r)), budget)
			}
			if last := r.Content[len(r.Content)-1]; last.Type != "image" {
				t.Errorf("the image is gone: %v", r.Content)
			}
			if len(files) != 1 {
				t.Fatalf("spilled %v", files)
			}
			if content, err := os.ReadFile(files[0]); err != nil || string(content) != c.says {
				t.Errorf("the file holds %d bytes (%v), want %d", len(content), err, len(c.says))
			}
			if info, _ := os.Stat(files[0]); goruntime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v", info.Mode())
			}
			if c.tokens != 10 && !strings.Contains(text(r), files[0]) {
				t.Errorf("the path is not shown in %.200q", text(r))
			}
			if c.says == long && c.tokens == 0 && !(strings.HasPrefix(text(r), "HEAD") && strings.HasSuffix(text(r), "TAIL")) {
				t.Error("head or tail is gone")
			}
		})
	}
}

func TestSpillCountsWhatIsLeftOut(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.After("spill", local.Spill(&local.SpillOptions{MaxInlineTokens: 200}))
	b.talker("talk", strings.Repeat("x", 5000))
	shown := text(b.call("talk", object{}))
	m := regexp.MustCompile(`\n\[(\d+) of 5000 bytes are left out here`).FindStringSubmatch(shown)
	if m == nil || strings.Count(shown, "x")-strings.Count(shown[strings.Index(shown, "\n["):strings.LastIndex(shown, "]\n")], "x") != 5000-atoi(t, m[1]) {
		t.Fatalf("shown %q", shown)
	}
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

func TestSpillLeavesReadAndProgramsAlone(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.After("spill", local.Spill(&local.SpillOptions{MaxInlineTokens: 50}))
	b.put("f", strings.Repeat("line\n", 1000))
	b.talker("talk", strings.Repeat("x", 1000))
	for _, r := range []tools.Result{b.call("read", object{"file_path": "f"}), b.callAs(t.Context(), policy.Program, "talk", object{})} {
		if len(text(r)) < 1000 {
			t.Errorf("cut to %q", text(r))
		}
	}
	if files := b.spilled(); len(files) != 0 {
		t.Errorf("spilled %v", files)
	}
}

func TestSpillOntoABrokenDiskKeepsTheText(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.After("spill", local.Spill(&local.SpillOptions{MaxInlineTokens: 50}))
	b.talker("talk", strings.Repeat("x", 1000))
	if err := os.RemoveAll(b.session.Log().SpillDir()); err != nil {
		t.Fatal(err)
	}
	r := b.call("talk", object{})
	if r.Error != nil || text(r) != strings.Repeat("x", 1000) || len(r.Meta.Context) != 1 || !strings.Contains(r.Meta.Context[0].Text, "could not be saved") {
		t.Fatalf("error %v, %d bytes, context %v", r.Error, len(text(r)), r.Meta.Context)
	}
}

func TestSpilledTextCanBeReadAndSearched(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.After("spill", local.Spill(nil))
	b.talker("talk", strings.Repeat("j", 1<<20)+"needle"+strings.Repeat("k", 1<<20))
	b.call("talk", object{})
	path := b.spilled()[0]
	if r := b.call("read", object{"file_path": path}); r.Error != nil || len(text(r)) > 60<<10 {
		t.Errorf("read: %v, %d bytes", r.Error, len(text(r)))
	}
	if v := b.grep(object{"pattern": "needle", "path": path}); len(v.Matches) != 1 || !v.Matches[0].Clipped {
		t.Errorf("grep: %v", v)
	}
	if got := b.glob(object{"pattern": "**"}); len(got) != 0 {
		t.Errorf("glob lists %v", got)
	}
	if n := len(b.spilled()); n != 1 {
		t.Errorf("%d spills", n)
	}
}
