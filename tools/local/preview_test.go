package local_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// preview asks a tool what a call would change.
func (b *bench) preview(tool string, args object) string {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, t := range b.set.Tools() {
		if t.Name != tool {
			continue
		}
		text, err := t.Preview(b.t.Context(), &tools.Call{Tool: tool, Args: raw, Session: b.session, Root: b.dir})
		if err != nil {
			b.t.Fatal(err)
		}
		return text
	}
	b.t.Fatalf("there is no tool %s", tool)
	return ""
}

func TestPreviews(t *testing.T) {
	long := strings.Repeat("0123456789abcdef\n", 8<<10)
	tests := []struct {
		name string
		read string // read before
		then func(b *bench)
		tool string
		args object
		want []string
	}{
		{"an edit is a diff", "a.txt", nil, "edit", object{"file_path": "a.txt", "old_string": "two", "new_string": "2"},
			[]string{"--- ", "/a.txt\n", "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"}},
		{"a new file is additions", "", nil, "write", object{"file_path": "new.txt", "content": "x\ny\n"},
			[]string{"--- /dev/null\n", "/new.txt\n", "+x\n+y\n"}},
		{"a file that is read is overwritten", "a.txt", nil, "write", object{"file_path": "a.txt", "content": "one\n"},
			[]string{" one\n-two\n-three\n"}},
		{"a new empty file", "", nil, "write", object{"file_path": "new.txt", "content": ""}, []string{"makes the empty file "}},
		{"nothing would change", "a.txt", nil, "write", object{"file_path": "a.txt", "content": "one\ntwo\nthree\n"}, []string{"would stay as it is"}},
		{"an end without a newline is seen", "a.txt", nil, "write", object{"file_path": "a.txt", "content": "one\ntwo\nthree"}, []string{"No newline at end of file"}},
		{"a file that was not read", "", nil, "edit", object{"file_path": "a.txt", "old_string": "two", "new_string": "2"},
			[]string{"the call would fail: FS_NOT_OBSERVED"}},
		{"a file that changed since", "a.txt", func(b *bench) { b.put("a.txt", "other\n") }, "edit", object{"file_path": "a.txt", "old_string": "two", "new_string": "2"},
			[]string{"the call would fail: FS_STALE_VERSION"}},
		{"an ambiguous place", "a.txt", nil, "edit", object{"file_path": "a.txt", "old_string": "e\n", "new_string": "2"},
			[]string{"the call would fail: FS_AMBIGUOUS_EDIT"}},
		{"a text that is not there", "a.txt", nil, "edit", object{"file_path": "a.txt", "old_string": "four", "new_string": "2"},
			[]string{"the call would fail: FS_EDIT_NOT_FOUND"}},
		{"no file to edit", "", nil, "edit", object{"file_path": "none.txt", "old_string": "two", "new_string": "2"},
			[]string{"the call would fail: FS_NOT_FOUND"}},
		{"no edit at all", "", nil, "edit", object{"file_path": "a.txt", "old_string": "", "new_string": "2"},
			[]string{"the call would fail: INVALID_ARGS"}},
		{"a directory", "", nil, "write", object{"file_path": ".", "content": "x"}, []string{"the call would fail: FS_NOT_REGULAR_FILE"}},
		{"binary content has only a size", "", nil, "write", object{"file_path": "b.bin", "content": "a\x00b"},
			[]string{"b.bin is binary; it has 0 bytes and would have 3"}},
		{"a long diff says what it leaves out", "", nil, "write", object{"file_path": "long.txt", "content": long},
			[]string{"+0123456789abcdef\n", " more bytes of the diff, in ", " lines, are left out]\n"}},
		{"a huge file is not read", "", func(b *bench) { b.put("huge.txt", strings.Repeat("x", 5<<20)) }, "edit", object{"file_path": "huge.txt", "old_string": "two", "new_string": "2"},
			[]string{"no diff: ", "huge.txt has 5242880 bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, policy.ReadOnly)
			b.put("a.txt", "one\ntwo\nthree\n")
			if tt.read != "" {
				b.ok("read", object{"file_path": tt.read})
			}
			if tt.then != nil {
				tt.then(b)
			}
			observed := len(b.events(session.FSObserved))
			text := b.preview(tt.tool, tt.args)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("preview %.2000q\nwant it to say %q", text, want)
				}
			}
			if len(text) > 80<<10 {
				t.Errorf("the preview has %d bytes", len(text))
			}
			if n := len(b.events(session.FSObserved)); n != observed {
				t.Errorf("a preview counted as an observation: %d events, before %d", n, observed)
			}
		})
	}
}

// A preview changes nothing, not even for the call that follows it.
func TestPreviewChangesNothing(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("a.txt", "one\n")
	before, err := os.Stat(b.path("a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	args := object{"file_path": "a.txt", "old_string": "one", "new_string": "1"}
	first := b.preview("edit", args)
	if second := b.preview("edit", args); second != first {
		t.Errorf("the second preview is %q, the first %q", second, first)
	}
	b.preview("write", object{"file_path": "dir/new.txt", "content": "x"})
	after, err := os.Stat(b.path("a.txt"))
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file was touched: %v", err)
	}
	b.has("a.txt", "one\n")
	if _, err := os.Stat(b.path("dir")); err == nil {
		t.Error("a directory was made")
	}
}
