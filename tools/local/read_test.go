package local_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

func TestReadShowsNumberedLinesAndHowToGoOn(t *testing.T) {
	many := strings.Repeat("x\n", 2500)
	for _, c := range []struct {
		name, content string
		args          object
		shows         []string
		truncated     bool
		total, lines  int
	}{
		{"a short file whole", "a\nb\n", nil, []string{"     1\ta\n     2\tb\n[lines 1-2 of 2; end of file]"}, false, 2, 2},
		{"no final newline is said", "a\nb", nil, []string{"[lines 1-2 of 2; end of file]\n[no newline at the end"}, false, 2, 2},
		{"an empty file", "", nil, []string{"[the file is empty]"}, false, 0, 0},
		{"2000 lines by default", many, nil, []string{"[lines 1-2000 of 2500; go on with offset 2001]"}, true, 2500, 2000},
		{"the rest of it", many, object{"offset": 2001}, []string{"[lines 2001-2500 of 2500; end of file]"}, false, 2500, 500},
		{"a limit", many, object{"offset": 7, "limit": 3}, []string{"[lines 7-9 of 2500; go on with offset 10]"}, true, 2500, 3},
		{"an offset behind the end", "a\n", object{"offset": 9}, []string{"[nothing from line 9 on of 1; end of file]"}, false, 1, 0},
		{"50 KiB by default", strings.Repeat(strings.Repeat("y", 199)+"\n", 1500), nil, []string{"[lines 1-256 of 1500; go on with offset 257]"}, true, 1500, 256},
		{"a long line is cut and marked", strings.Repeat("z", 3000) + "\nend\n", nil,
			[]string{strings.Repeat("z", 2000) + " [line cut; its rest: byte_offset 2000]\n     2\tend"}, true, 2, 2},
		{"CRLF is said and not shown", "a\r\nb\r\n", nil, []string{"     1\ta\n     2\tb\n", "[lines end in CRLF]"}, false, 2, 2},
		{"a lone CR ends no line", "a\rb\n", nil, []string{"     1\ta\rb\n"}, false, 1, 1},
		{"a byte order mark is said and not shown", "\uFEFFa\n", nil, []string{"     1\ta\n", "byte order mark"}, false, 1, 1},
		{"bytes that are not UTF-8", "caf\xe9\n", nil, []string{"caf\uFFFD", "not UTF-8"}, false, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, policy.ReadOnly)
			args := object{"file_path": b.put("f", c.content)}
			for k, v := range c.args {
				args[k] = v
			}
			r := b.call("read", args)
			v := b.value(r)
			for _, want := range c.shows {
				if !strings.Contains(text(r), want) {
					t.Errorf("shown …%.300q, want %q", text(r)[max(0, len(text(r))-300):], want)
				}
			}
			if v["truncated"] != c.truncated || v["total_lines"] != float64(c.total) || len(v["lines"].([]any)) != c.lines {
				t.Errorf("truncated %v, total %v, %d lines; want %v, %d, %d", v["truncated"], v["total_lines"], len(v["lines"].([]any)), c.truncated, c.total, c.lines)
			}
		})
	}
}

func TestReadPagesThroughOneLongLine(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	content := strings.Repeat("0123456789é", 30000)
	b.put("f", content)
	var got strings.Builder
	for at, pages := float64(0), 0; ; pages++ {
		v := b.ok("read", object{"file_path": "f", "byte_offset": at})
		for _, l := range v["lines"].([]any) {
			got.WriteString(l.(map[string]any)["text"].(string))
		}
		next, more := v["next_byte_offset"].(float64)
		if !more {
			break
		}
		if next <= at || pages > 20 {
			t.Fatalf("page %d from %v goes on at %v", pages, at, next)
		}
		at = next
	}
	if got.String() != content {
		t.Fatalf("the pages hold %d bytes, want the file's %d", got.Len(), len(content))
	}
}

func TestReadGivesAProgramWholeLines(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	long := strings.Repeat("l", 3<<20)
	b.put("f", long+"\n"+strings.Repeat("s\n", 4000))
	r := b.callAs(t.Context(), policy.Program, "read", object{"file_path": "f"})
	v := b.value(r)
	lines := v["lines"].([]any)
	if len(lines) != 4001 || v["truncated"] != false || lines[0].(map[string]any)["text"] != long {
		t.Fatalf("%d lines, truncated %v", len(lines), v["truncated"])
	}
	if n := len(text(r)); n > 60<<10 {
		t.Fatalf("a model would be shown %d bytes", n)
	}
}

func TestReadOfAProgramStaysBelowTheLargestValue(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	for name, content := range map[string]string{
		"many lines":        strings.Repeat("\n", 3<<20),
		"a line of escapes": strings.Repeat("\x01", 4<<20),
		"a line of letters": strings.Repeat("a", 20<<20),
	} {
		b.put("f", content)
		v := b.value(b.callAs(t.Context(), policy.Program, "read", object{"file_path": "f"}))
		if v["truncated"] != true || v["next_offset"] == nil && v["next_byte_offset"] == nil {
			t.Errorf("%s: truncated %v, next %v %v", name, v["truncated"], v["next_offset"], v["next_byte_offset"])
		}
	}
}

func TestReadOfWhatIsNoTextFileFailsAtOnce(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("binary", "a\x00b")
	b.put("dir/f", "")
	b.put("file", "x")
	if goruntime.GOOS != "windows" {
		if err := mkfifo(b.path("pipe")); err != nil {
			t.Fatal(err)
		}
		os.Symlink("/dev/zero", b.path("zero"))
		os.Symlink("loop", b.path("loop"))
		os.Symlink("nowhere", b.path("dangling"))
	}
	for _, c := range []struct {
		path string
		code tools.Code
		text string
		os   string
	}{
		{path: "missing", code: local.NotFound, text: "no such file"},
		{path: "no/such/dir/f", code: local.NotFound, text: "deepest directory"},
		{path: "dangling", code: local.NotFound, text: "nowhere"},
		{path: "file/x", code: local.NotDirectory, text: "not a directory"},
		{path: "dir", code: local.NotRegularFile, text: "is a directory; use glob"},
		{path: "pipe", code: local.NotRegularFile, text: "named pipe"},
		{path: "zero", code: local.NotRegularFile, text: "device"},
		{path: "loop", code: local.IOError, text: "too many levels"},
		{path: "binary", code: local.NotText, text: "binary"},
		{path: strings.Repeat("n", 300), code: local.IOError, text: "too long"},
		{path: "a\x00b", code: tools.InvalidArgs, text: "NUL"},
		{path: "", code: tools.InvalidArgs, text: "empty"},
		{path: "/proc/self/mem", code: local.IOError, text: "input/output error", os: "linux"},
	} {
		if c.os != "" && c.os != goruntime.GOOS {
			continue
		}
		start := time.Now()
		b.fails(c.code, "read", object{"file_path": c.path}, c.text)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%q took %v", c.path, d)
		}
	}
}

func TestReadOfAKernelFileThatHasNoSize(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	_, err := os.Stat("/proc/self/status")
	sessiontest.Need(t, "proc", err == nil, "there is no /proc")
	if r := b.call("read", object{"file_path": "/proc/self/status"}); r.Error != nil || !strings.Contains(text(r), "Pid:") {
		t.Fatalf("got %v %q", r.Error, text(r))
	}
}

func TestReadKeepsMemoryFlat(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	f, err := os.Create(b.path("huge"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	line := bytes.Repeat([]byte("w"), 1<<20)
	for range 300 {
		f.Write(line)
	}
	f.WriteString("\nend\n")
	if err := f.Truncate(10 << 30); err != nil {
		t.Fatal(err)
	}
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	v := b.ok("read", object{"file_path": "huge"})
	goruntime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("reading allocated %d bytes", used)
	}
	if v["total_lines"] != nil || v["truncated"] != true || v["next_byte_offset"] != float64(2000) {
		t.Errorf("got %v, %v, %v", v["total_lines"], v["truncated"], v["next_byte_offset"])
	}
}

func TestReadOfAnImage(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, 7, 5))); err != nil {
		t.Fatal(err)
	}
	b.put("not-named-png", buf.String())
	r := b.call("read", object{"file_path": "not-named-png"})
	v := b.value(r)
	if v["mime"] != "image/png" || v["width"] != 7.0 || v["height"] != 5.0 || v["bytes"] != float64(buf.Len()) {
		t.Fatalf("value %v", v)
	}
	last := r.Content[len(r.Content)-1]
	if last.Type != "image" || last.MIMEType != "image/png" || !bytes.Equal(last.Data, buf.Bytes()) {
		t.Fatalf("content %v", r.Content)
	}
	b.put("lies.png", "\x89PNG\r\n\x1a\nthis is no image")
	b.fails(local.NotText, "read", object{"file_path": "lies.png"}, "begins like an image")
}

func TestReadOfWebPKnowsItsThreeForms(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	for name, chunk := range map[string]string{
		"lossy":    "VP8 \x20\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x07\x00\x05\x00",
		"lossless": "VP8L\x20\x00\x00\x00\x2f\x06\x00\x01\x00",
		"extended": "VP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x04\x00\x00",
	} {
		b.put("f", "RIFF\x40\x00\x00\x00WEBP"+chunk+strings.Repeat("\x00", 32))
		v := b.ok("read", object{"file_path": "f"})
		if v["mime"] != "image/webp" || v["width"] != 7.0 || v["height"] != 5.0 {
			t.Errorf("%s: %v", name, v)
		}
	}
}

func TestReadFindsNamesInAnotherForm(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("cafe\u0301.txt", "decomposed")
	if r := b.call("read", object{"file_path": "caf\u00e9.txt"}); !strings.Contains(text(r), "decomposed") {
		t.Errorf("got %v", r)
	}
	if goruntime.GOOS != "linux" {
		return
	}
	b.put("bad\xffname", "bytes")
	r := b.call("read", object{"file_path": `bad\xffname`})
	v := b.value(r)
	if v["path"] != b.path(`bad\xffname`) || v["path_bytes"] == nil {
		t.Errorf("path %v, path_bytes %v", v["path"], v["path_bytes"])
	}
}

func TestReadFollowsTheFileSystemAndNotTheSpelling(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("deep/in/f", "right")
	b.put("f", "wrong")
	os.Symlink("deep/in", b.path("link"))
	os.Symlink(b.path("deep/in"), b.path("abs"))
	for _, path := range []string{"link/f", "abs/../in/f", ".//link/./f", b.dir + "/link/../in/f"} {
		if r := b.call("read", object{"file_path": path}); !strings.Contains(text(r), "right") {
			t.Errorf("%s: %v %s", path, r.Error, text(r))
		}
	}
}

func TestReadObservesInTheLog(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	b.put("f", "one\ntwo\nthree\n")
	b.ok("read", object{"file_path": "f", "limit": 1})
	b.ok("read", object{"file_path": "f", "offset": 2})
	b.ok("read", object{"file_path": "f"}) // nothing new
	b.fails(local.NotFound, "read", object{"file_path": "gone"})
	var lines []string
	for _, data := range b.observed() {
		lines = append(lines, fmt.Sprint(strings.TrimPrefix(data.Path, b.dir), data.Absent, data.Seen))
	}
	want := "[/ffalse [[0 4]] /ffalse [[0 14]] /gonetrue []]"
	if fmt.Sprint(lines) != want {
		t.Fatalf("observed %v, want %s", lines, want)
	}
}

type observed struct {
	Path   string
	Absent bool
	Seen   [][2]int64
}

func (b *bench) observed() (list []observed) {
	b.t.Helper()
	for _, data := range b.events("fs/observed") {
		var o observed
		if err := json.Unmarshal(data, &o); err != nil {
			b.t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}
