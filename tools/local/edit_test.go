package local_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

func TestEditChangesNothingButTheSpan(t *testing.T) {
	for _, c := range []struct {
		name, before, old, new, after string
		all                           bool
		n                             int
	}{
		{"one place", "a\nb\nc\n", "b", "B", "a\nB\nc\n", false, 1},
		{"CRLF stays", "a\r\nb\r\nc\r\n", "a\nb", "a\nX\nY", "a\r\nX\r\nY\r\nc\r\n", false, 1},
		{"CRLF given for CRLF", "a\r\nb\r\n", "a\r\nb", "c\r\nd", "c\r\nd\r\n", false, 1},
		{"CRLF given for LF", "a\nb\n", "a\r\nb", "c\r\nd", "c\nd\n", false, 1},
		{"a mixed file keeps each line's ending", "a\nb\r\nc\rd", "b", "x\ny", "a\nx\r\ny\r\nc\rd", false, 1},
		{"a mixed span keeps its endings in order", "a\nb\r\nc\n", "a\nb\nc", "1\n2\n3", "1\n2\r\n3\n", false, 1},
		{"joining CRLF lines leaves no CR", "a\r\nb\r\n", "a\nb", "ab", "ab\r\n", false, 1},
		{"a line ending alone", "a\r\nb\r\n", "\nb", "", "a\r\n", false, 1},
		{"a lone CR is text", "a\rb\r\n", "\rb", "-", "a-\r\n", false, 1},
		{"no final newline", "a\nb", "b", "c", "a\nc", false, 1},
		{"a text without lines takes the new one as given", "a", "a", "b\r\nc", "b\r\nc", false, 1},
		{"byte order mark", "\uFEFFa\n", "a", "b", "\uFEFFb\n", false, 1},
		{"bytes that are not UTF-8", "const x = 1;\n// caf\xe9 \xd6\xd0\n", "const x = 1;", "const x = 2;", "const x = 2;\n// caf\xe9 \xd6\xd0\n", false, 1},
		{"replacement is literal", "P\n", "P", "$& $1 $$ ${1} $` $' \\1 %s %!d \\n", "$& $1 $$ ${1} $` $' \\1 %s %!d \\n\n", false, 1},
		{"replacement is literal with replace_all", "P P\n", "P", "$& \\0", "$& \\0 $& \\0\n", true, 2},
		{"typographic quotes are themselves", "q \u2019 \u00a0\n", "\u2019", "'", "q ' \u00a0\n", false, 1},
		{"replace_all counts from left to right", "aaa", "aa", "b", "ba", true, 1},
		{"replace_all of what contains itself", "aaa", "a", "aa", "aaaaaa", true, 3},
		{"replace_all in CRLF", "x\r\ny\r\nx\r\ny\r\n", "x\ny", "z", "z\r\nz\r\n", true, 2},
		{"to nothing", "abc", "b", "", "ac", false, 1},
		{"all of it", "abc", "abc", "x", "x", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, policy.WorkspaceWrite)
			b.put("f", c.before)
			b.ok("read", object{"file_path": "f"})
			v := b.ok("edit", object{"file_path": "f", "old_string": c.old, "new_string": c.new, "replace_all": c.all})
			b.has("f", c.after)
			if v["replacements"] != float64(c.n) || v["diff"] == "" {
				t.Errorf("replacements %v, diff %q", v["replacements"], v["diff"])
			}
			b.noLitter("f")
		})
	}
}

func TestEditSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name, before, old, new string
		code                   tools.Code
		texts                  []string
	}{
		{"nothing to find", "x", "", "y", tools.InvalidArgs, []string{"old_string is empty"}},
		{"nothing to find in an empty file", "", "", "y", tools.InvalidArgs, []string{"old_string is empty"}},
		{"nothing to change", "a", "a", "a", tools.InvalidArgs, []string{"the same"}},
		{"only line endings", "a\nb", "a\nb", "a\r\nb", tools.InvalidArgs, []string{"line endings"}},
		{"twice", "a\nb\na\n", "a", "c", local.AmbiguousEdit, []string{"2 times", "[1 3]", "replace_all"}},
		{"not there", "abc\n", "xyz", "c", local.EditNotFound, []string{"nothing there is like it"}},
		{"white space", "def f():\n    x = 1\n", "    x  =  1", "c", local.EditNotFound, []string{"Line 2", "white space", `"    x = 1"`}},
		{"tabs for spaces", "a\n\tb\n\tc\n", "  b\n  c", "c", local.EditNotFound, []string{"Line 2", "white space", `\tb\n\tc`}},
		{"quotation marks", "it\u2019s\n", "it's", "c", local.EditNotFound, []string{"Line 1", "quotation marks", `\u2019`}},
		{"Unicode form", "cafe\u0301\n", "caf\u00e9", "tea", local.EditNotFound, []string{"Unicode form", `cafe\u0301`}},
		{"begins alike", "one\ntwo\nthree\n", "one\ntwo\nfour", "c", local.EditNotFound, []string{"up to line 3", `"three"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, policy.WorkspaceWrite)
			b.put("f", c.before)
			b.ok("read", object{"file_path": "f"})
			b.fails(c.code, "edit", object{"file_path": "f", "old_string": c.old, "new_string": c.new}, c.texts...)
			b.has("f", c.before)
		})
	}
}

func TestEditNeedsToHaveSeenTheFile(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	args := object{"file_path": "f", "old_string": "a", "new_string": "b"}
	b.fails(local.NotFound, "edit", args)
	b.fails(local.NotFound, "read", object{"file_path": "f"})
	b.fails(local.NotFound, "edit", args)
	b.put("f", "a\n2\n3\n")
	b.fails(local.StaleVersion, "edit", args)
	b.ok("read", object{"file_path": "f", "offset": 3, "limit": 1})
	b.ok("edit", args) // a part was read: enough to edit
	b.has("f", "b\n2\n3\n")
	b.put("g", "a")
	r := b.fails(local.NotObserved, "edit", object{"file_path": "g", "old_string": "a", "new_string": "b"}, "read it first")
	if strings.Contains(r.Error.Message, "write") {
		t.Errorf("the message %q leads round the guard", r.Error.Message)
	}
	b.fails(tools.InvalidArgs, "edit", object{"file_path": "g", "old_string": "a"}, "new_string is required")
}

func TestEditKeepsCountOfWhatWasSeen(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	b.put("f", "1\n2\n3\n4\n")
	b.ok("read", object{"file_path": "f", "limit": 2})
	b.ok("edit", object{"file_path": "f", "old_string": "3", "new_string": "three"})
	last := b.observed()
	if got := fmt.Sprint(last[len(last)-1].Seen); got != "[[0 9]]" && got != "[[0 4] [4 9]]" {
		t.Fatalf("seen %s", got)
	}
	b.fails(local.NotObserved, "write", object{"file_path": "f", "content": "x"})
	b.ok("read", object{"file_path": "f", "offset": 3})
	b.ok("write", object{"file_path": "f", "content": "x"})
}

func TestEditOfAFileThatIsTooLarge(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	path := b.put("f", "a\n")
	if err := os.Truncate(path, 257<<20); err != nil {
		t.Fatal(err)
	}
	b.fails(local.TooLarge, "edit", object{"file_path": "f", "old_string": "a", "new_string": "b"}, "256 MiB")
}

func TestEditResultIsShownAsADiff(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	b.put("f", "a\nb\nc\n")
	b.ok("read", object{"file_path": "f"})
	r := b.call("edit", object{"file_path": "f", "old_string": "b", "new_string": "B"})
	if want := "replaced once in " + b.path("f") + "\n--- "; !strings.HasPrefix(text(r), want) || !strings.Contains(text(r), "-b\n+B\n") {
		t.Errorf("shown %q", text(r))
	}
	var v struct{ Sandbox policy.Confinement }
	if err := json.Unmarshal(r.Value, &v); err != nil || v.Sandbox.Mode != policy.WorkspaceWrite || v.Sandbox.Backend == "" {
		t.Errorf("sandbox %+v (%v)", v.Sandbox, err)
	}
	if r.Meta.Confinement == nil || r.Meta.Confinement.Backend != v.Sandbox.Backend {
		t.Errorf("meta %+v", r.Meta.Confinement)
	}
}
