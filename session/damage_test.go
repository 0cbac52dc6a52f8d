package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/session/sessiontest"
)

// fileLines returns the lines of a log with the notes a, b, c, each with its
// newline: session/start and three notes.
func fileLines(t *testing.T) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(closed(t, "a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.SplitAfter(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
}

// written puts content into a new file s.jsonl.
func written(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// survey returns the notes of a log and its bad lines.
func survey(t *testing.T, path string) (notes []string, bad []*session.LineError) {
	t.Helper()
	err := session.Survey(path, func(e session.Event) bool {
		var n note
		if e.Type == session.ProgramLog && json.Unmarshal(e.Data, &n) == nil {
			notes = append(notes, n.Text)
		}
		return true
	}, func(e *session.LineError) { bad = append(bad, e) })
	if err != nil {
		t.Fatal(err)
	}
	return notes, bad
}

func nul(n int) string { return strings.Repeat("\x00", n) }

// rows of damage: what the lines start, a, b, c become.
type damage struct {
	name string
	make func(start, a, b, c string) string
	// notes that a survey yields, and the bad lines: number and what is wrong.
	notes string
	bad   []string
	// opens: the log can be continued. kept are the notes it then has, and
	// torn what is set aside, empty for nothing.
	opens      bool
	kept, torn string
}

func cut(line string, n int) string { return line[:len(line)-n] }

var damages = []damage{
	{name: "a whole log has no bad line", make: func(s, a, b, c string) string { return s + a + b + c },
		notes: "abc", opens: true, kept: "abc"},
	{name: "a complete last line without its newline is kept", make: func(s, a, b, c string) string { return s + a + b + cut(c, 1) },
		notes: "abc", opens: true, kept: "abc"},
	{name: "a torn last line is set aside", make: func(s, a, b, c string) string { return s + a + `{"seq":4,"to` },
		notes: "a", bad: []string{"3 torn, 12 bytes without a newline"}, opens: true, kept: "a", torn: `{"seq":4,"to`},
	{name: "a last line cut inside a character is set aside", make: func(s, a, b, c string) string { return s + a + "{\"seq\":4,\"x\":\"\xc3" },
		notes: "a", bad: []string{"3 torn"}, opens: true, kept: "a", torn: "{\"seq\":4,\"x\":\"\xc3"},
	{name: "a fragment with blank lines behind it is set aside", make: func(s, a, b, c string) string { return s + a + "{\"seq\":4,\"to\n\n" },
		notes: "a", bad: []string{"3 not a JSON event", "4 a blank line"}, opens: true, kept: "a", torn: "{\"seq\":4,\"to\n\n"},
	{name: "a trailing blank line is set aside", make: func(s, a, b, c string) string { return s + a + "\n" },
		notes: "a", bad: []string{"3 a blank line"}, opens: true, kept: "a", torn: "\n"},
	{name: "a run of NUL bytes at the end is set aside", make: func(s, a, b, c string) string { return s + a + nul(5000) },
		notes: "a", bad: []string{"3 5000 NUL bytes and no event"}, opens: true, kept: "a", torn: nul(5000)},
	{name: "a fragment that ends in NUL bytes is set aside", make: func(s, a, b, c string) string { return s + a + `{"seq":4,` + nul(7) + "\n" },
		notes: "a", bad: []string{"3 not a JSON event: unexpected EOF (7 of them NUL bytes)"}, opens: true, kept: "a", torn: `{"seq":4,` + nul(7) + "\n"},
	{name: "a JSON value that is no object is junk at the end", make: func(s, a, b, c string) string { return s + a + "12\n" },
		notes: "a", bad: []string{"3 not a JSON event"}, opens: true, kept: "a", torn: "12\n"},

	{name: "an object that is no event is no junk", make: func(s, a, b, c string) string { return s + a + "{\"a\":1}\n" },
		notes: "a", bad: []string{"3 it has no seq or no type"}},
	{name: "an object that is no event is not torn", make: func(s, a, b, c string) string { return s + a + `{"seq":3}` },
		notes: "a", bad: []string{"3 it has no seq or no type"}},
	{name: "a last event that breaks the chain is not set aside", make: func(s, a, b, c string) string { return s + a + c },
		notes: "ac", bad: []string{"3 seq is 4, want 3"}},
	{name: "nor is one without its newline", make: func(s, a, b, c string) string { return s + a + cut(c, 1) },
		notes: "ac", bad: []string{"3 seq is 4, want 3"}},
	{name: "nor is one with NUL bytes behind it", make: func(s, a, b, c string) string { return s + a + cut(b, 1) + nul(3) },
		notes: "ab", bad: []string{"3 3 NUL bytes around the event"}},
	{name: "nor is junk with an event behind it", make: func(s, a, b, c string) string { return s + a + "{bad\n" + b },
		notes: "ab", bad: []string{"3 not a JSON event"}},
	{name: "two objects on the last line are no junk", make: func(s, a, b, c string) string { return s + a + "{\"a\":1}{\"b\":2}\n" },
		notes: "a", bad: []string{"3 more than one JSON value"}},

	{name: "junk between good lines costs no event", make: func(s, a, b, c string) string {
		return s + a + nul(300) + "\n" + b + "{bad\n" + "{\"a\":1}{\"b\":2}\n" + c
	}, notes: "abc", bad: []string{"3 300 NUL bytes and no event", "5 not a JSON event", "6 more than one JSON value"}},
	{name: "junk in the place of lines is named, not what follows it", make: func(s, a, b, c string) string { return s + nul(len(a)-1) + "\n" + b + c },
		notes: "bc", bad: []string{"2 NUL bytes and no event"}},
	{name: "one bad line may have been several", make: func(s, a, b, c string) string { return s + nul(1000) + "\n" + c },
		notes: "c", bad: []string{"2 1000 NUL bytes and no event"}},
	{name: "behind junk an event that goes back is bad", make: func(s, a, b, c string) string { return s + a + b + "{bad\n" + a + c },
		notes: "abac", bad: []string{"4 not a JSON event", "5 seq is 2, want 4", "6 seq is 4, want 3"}},
	{name: "behind junk a changed line before it shows", make: func(s, a, b, c string) string {
		return s + strings.Replace(a, `"a"`, `"x"`, 1) + "{bad\n" + b + c
	}, notes: "xbc", bad: []string{"3 not a JSON event", "4 prev is"}},
	{name: "an event behind NUL bytes on its line is yielded", make: func(s, a, b, c string) string { return s + a + nul(9) + b + c },
		notes: "abc", bad: []string{"3 9 NUL bytes around the event"}},
	{name: "a changed value breaks the chain at the next line", make: func(s, a, b, c string) string {
		return s + a + strings.Replace(b, `"b"`, `"x"`, 1) + c
	}, notes: "axc", bad: []string{"4 prev is"}},
	{name: "a removed line is a gap", make: func(s, a, b, c string) string { return s + b + c },
		notes: "bc", bad: []string{"2 seq is 3, want 2"}},
	{name: "a line that is there twice is bad once", make: func(s, a, b, c string) string { return s + a + a + b + c },
		notes: "aabc", bad: []string{"3 seq is 2, want 3"}},
	{name: "a byte order mark is damage, and the event is read", make: func(s, a, b, c string) string { return "\uFEFF" + s + a + b + c },
		notes: "abc", bad: []string{"1 a byte order mark"}},
	{name: "CRLF line ends are damage, and the events are read", make: func(s, a, b, c string) string {
		return strings.ReplaceAll(s+a, "\n", "\r\n") + b + c
	}, notes: "abc", bad: []string{"1 a CRLF line end", "2 a CRLF line end"}},
	{name: "a blank line between events is damage", make: func(s, a, b, c string) string { return s + a + "\n \t\r\n" + b + c },
		notes: "abc", bad: []string{"3 a blank line", "4 a blank line"}},
	{name: "a bad first line is damage like any other", make: func(s, a, b, c string) string { return "{bad\n" + s + a },
		notes: "a", bad: []string{"1 not a JSON event"}},
}

func TestEachDamageHasItsOutcome(t *testing.T) {
	lines := fileLines(t)
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			content := d.make(string(lines[0]), string(lines[1]), string(lines[2]), string(lines[3])+"\n")
			path := written(t, []byte(content))
			notes, bad := survey(t, path)
			if got := strings.Join(notes, ""); got != d.notes {
				t.Errorf("a survey yields the notes %q, want %q", got, d.notes)
			}
			checkBad(t, content, bad, d.bad)
			checkStrict(t, path, bad)
			checkOpen(t, path, content, bad, d)
		})
	}
}

func checkBad(t *testing.T, content string, got []*session.LineError, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d bad lines, want %d: %v", len(got), len(want), got)
	}
	for i, bad := range got {
		number, why, _ := strings.Cut(want[i], " ")
		if fmt.Sprint(bad.Line) != number || !strings.Contains(bad.Err.Error(), why) {
			t.Errorf("bad line: %v, want number %s with %q", bad, number, why)
		}
		before := strings.SplitAfterN(content, "\n", bad.Line)
		if offset := len(content) - len(before[len(before)-1]); int64(offset) != bad.Offset {
			t.Errorf("line %d begins at byte %d, reported as %d", bad.Line, offset, bad.Offset)
		}
	}
}

// checkStrict checks that Read stops where a survey finds the first bad line.
func checkStrict(t *testing.T, path string, bad []*session.LineError) {
	t.Helper()
	_, err := texts(path)
	var first *session.LineError
	switch {
	case len(bad) == 0 && err != nil:
		t.Errorf("reading gave %v", err)
	case len(bad) > 0 && (!errors.As(err, &first) || first.Error() != bad[0].Error()):
		t.Errorf("reading gave %v, want %v", err, bad[0])
	}
}

func checkOpen(t *testing.T, path, content string, bad []*session.LineError, d damage) {
	t.Helper()
	log, err := session.Open(path, nil)
	if !d.opens {
		var first *session.LineError
		if !errors.As(err, &first) || first.Error() != bad[0].Error() {
			t.Errorf("opening gave %v, want %v", err, bad[0])
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != content {
			t.Errorf("a refused log was changed, or %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, "!")
	log.Close()
	if notes, err := texts(path); err != nil || strings.Join(notes, "") != d.kept+"!" {
		t.Errorf("the continued log has the notes %q, %v; want %q", notes, err, d.kept+"!")
	}
	if torn := tornOf(t, path); torn != d.torn {
		t.Errorf("set aside: %q, want %q", torn, d.torn)
	}
}

// tornOf returns what the log says was set aside, empty for nothing.
func tornOf(t *testing.T, path string) (torn string) {
	t.Helper()
	err := session.Read(path, func(e session.Event) bool {
		if e.Type != session.Recovered {
			return true
		}
		var data struct{ Torn session.Ref }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		raw, err := session.ReadBlob(path, data.Torn)
		if err != nil {
			t.Fatal(err)
		}
		torn += string(raw)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return torn
}

// A start line with the given version or type, as another program might write.
func startLine(kind string, version int, rest string) string {
	return fmt.Sprintf(`{"seq":1,"time":"2026-01-01T00:00:00Z","type":%q,"data":{"id":"s","cwd":"/","version":%d},"prev":""%s}`+"\n", kind, version, rest)
}

func TestWhatCannotBeContinuedIsNotOpened(t *testing.T) {
	for _, c := range []struct{ name, content, why string }{
		{"a newer version", startLine("session/start", session.Version+1, ""), "format version 2"},
		{"an unknown event", withUnknown(t), `unknown type "some/thing"`},
		{"another first event", startLine("ptc/log", 1, ""), `the first event is "ptc/log"`},
		{"an empty file", "", "no complete first line"},
		{"a file of one newline", "\n", "no complete first line"},
		{"a torn first line", startLine("session/start", 1, "")[:50], "no complete first line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := written(t, []byte(c.content))
			_, err := session.Open(path, nil)
			if readOnly := (*session.ReadOnlyError)(nil); !errors.As(err, &readOnly) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("opening gave %v, want a ReadOnlyError with %q", err, c.why)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != c.content {
				t.Errorf("a refused log was changed, or %v", err)
			}
		})
	}
}

// withUnknown is a log with an event of a type that nobody knows.
func withUnknown(t *testing.T) string {
	t.Helper()
	log := create(t)
	if _, err := log.Append("some/thing", note{}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestAnUnknownEventThatMayBeSkippedIsNoHindrance(t *testing.T) {
	path := written(t, []byte(strings.Replace(withUnknown(t), `"data":{"text":""}`, `"data":{},"ignorable":true`, 1)))
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, "next")
	log.Close()
	if notes, err := texts(path); err != nil || !slices.Equal(notes, []string{"next"}) {
		t.Errorf("notes %q, %v", notes, err)
	}
}

// A file that is no log cannot be opened, to read or to append, and nothing
// waits for the other end of a pipe.
func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.jsonl")
	if err := os.Symlink(closed(t, "a"), link); err != nil {
		sessiontest.Need(t, "symlinks", false, err.Error())
	}
	for _, c := range []struct {
		name, path string
		reads      bool
		why        string
	}{
		{"a directory", dir, false, "directory"},
		{"a missing file", filepath.Join(dir, "missing.jsonl"), false, "no such file"},
		{"a file in a missing directory", filepath.Join(dir, "missing", "s.jsonl"), false, "no such file"},
		{"a device", os.DevNull, false, "it is a special file, want a regular file"},
		{"a symbolic link, to append", link, true, "it is a symbolic link, want the file itself"},
	} {
		t.Run(c.name, func(t *testing.T) { checkNotOpened(t, c.path, c.reads, c.why) })
	}
}

func checkNotOpened(t *testing.T, path string, reads bool, why string) {
	t.Helper()
	var open *session.OpenError
	if _, err := session.Open(path, nil); !errors.As(err, &open) || !strings.Contains(err.Error(), why) {
		t.Errorf("opening gave %v, want an OpenError with %q", err, why)
	}
	all := func(session.Event) bool { return true }
	for what, err := range map[string]error{
		"reading":   session.Read(path, all),
		"surveying": session.Survey(path, all, func(e *session.LineError) { t.Errorf("bad line %v", e) }),
	} {
		if reads != (err == nil) || !reads && !errors.As(err, &open) {
			t.Errorf("%s gave %v", what, err)
		}
	}
}

// A long line is read; what is too long for one is read past.
func TestALineOfManyMiBIsRead(t *testing.T) {
	long := strings.Repeat("x", 64<<20)
	path := closed(t, long, "b")
	got, err := texts(path)
	if err != nil || len(got) != 2 || got[0] != long {
		t.Errorf("read %d notes, %v", len(got), err)
	}
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
}

func TestATailLongerThanALineIsSetAside(t *testing.T) {
	path := closed(t, "a")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()+session.MaxLine+1000); err != nil {
		t.Fatal(err)
	}
	_, bad := survey(t, path)
	if want := fmt.Sprintf("%d bytes long", session.MaxLine+1000); len(bad) != 1 || !strings.Contains(bad[0].Error(), want) {
		t.Errorf("bad lines %v, want one with %q", bad, want)
	}
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, "b")
	log.Close()
	if notes, err := texts(path); err != nil || !slices.Equal(notes, []string{"a", "b"}) {
		t.Errorf("notes %q, %v", notes, err)
	}
}

// appender makes this test binary, run again, the writer of a log: it says when
// it has the log, and keeps it until its input ends.
const appender = "DSH_TEST_APPENDER"

func TestAWriterInAnotherProcessIsKeptOut(t *testing.T) {
	if path := os.Getenv(appender); path != "" {
		hold(path)
	}
	path := closed(t, "a")
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), appender+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held := make([]byte, len("held"))
	if _, err := out.Read(held); err != nil || string(held) != "held" {
		t.Fatalf("the other process said %q, %v", held, err)
	}
	_, err = session.Open(path, nil)
	if locked := (*session.LockedError)(nil); !errors.As(err, &locked) {
		t.Errorf("opening gave %v, want a LockedError", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatalf("after the other writer ended: %v", err)
	}
	log.Close()
}

func hold(path string) {
	if _, err := session.Open(path, nil); err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	fmt.Print("held")
	os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

// What a survey yields before its first bad line is what Read yields.
func FuzzSurvey(f *testing.F) {
	f.Add([]byte(startLine("session/start", 1, "")))
	f.Add([]byte("\uFEFF" + strings.ReplaceAll(startLine("session/start", 1, ""), "\n", "\r\n") + "\x00\x00"))
	f.Add([]byte("{}\n{}\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := written(t, raw)
		var whole, strict []uint64
		events, lines, last := 0, 0, 0
		var first *session.LineError
		err := session.Survey(path, func(e session.Event) bool {
			if events++; first == nil {
				whole = append(whole, e.Seq)
			}
			return true
		}, func(e *session.LineError) {
			if e.Line <= last {
				t.Fatalf("line %d was reported after line %d", e.Line, last)
			}
			if last = e.Line; first == nil {
				first = e
			}
			lines++
		})
		if err != nil {
			t.Fatal(err)
		}
		err = session.Read(path, func(e session.Event) bool { strict = append(strict, e.Seq); return true })
		if (err == nil) != (first == nil) || err != nil && err.Error() != first.Error() || !slices.Equal(whole, strict) {
			t.Fatalf("Read gave %v, %v; the survey %v, %v", strict, err, whole, first)
		}
		if count := len(bytes.SplitAfter(raw, []byte("\n"))); events+lines < count-1 {
			t.Fatalf("%d lines gave %d events and %d bad ones", count, events, lines)
		}
	})
}
