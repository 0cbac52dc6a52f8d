package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestALineThatIsTooLongIsReadPastAndNotHeld(t *testing.T) {
	const limit = 100
	long, fits := strings.Repeat("x", limit+1), strings.Repeat("y", limit)
	lines := newLineReader(strings.NewReader(long+"\n"+fits+"\n"+long+long), limit)
	for i, want := range []line{
		{number: 1, offset: 0, size: limit + 2, ended: true, long: true},
		{number: 2, offset: limit + 2, size: limit + 1, ended: true},
		{number: 3, offset: 2*limit + 3, size: 2*limit + 2, long: true},
	} {
		l, err := lines.next()
		if err != nil {
			t.Fatal(err)
		}
		if l.long != (l.body == nil) || cap(lines.body) > 2*limit {
			t.Errorf("line %d: too long is %t, and %d bytes are held", i+1, l.long, cap(lines.body))
		}
		if l.body = nil; l.number != want.number || l.offset != want.offset || l.size != want.size || l.ended != want.ended || l.long != want.long {
			t.Errorf("line %d is %+v, want %+v", i+1, l, want)
		}
	}
}

func TestAnEventThatIsTooLongIsNotWritten(t *testing.T) {
	log, err := Create(filepath.Join(t.TempDir(), "s.jsonl"), "/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	log.limit = 1000
	before := log.size
	_, err = log.Append(ProgramLog, strings.Repeat("x", 1000))
	if long := (*LineTooLongError)(nil); !errors.As(err, &long) || long.Bytes <= 1000 || long.Limit != 1000 {
		t.Errorf("appending gave %v, want a LineTooLongError", err)
	}
	if info, err := os.Stat(log.Path()); err != nil || info.Size() != before {
		t.Errorf("the file has %v, %v; want the %d bytes before", info.Size(), err, before)
	}
	if _, err := log.Append(ProgramLog, "short"); err != nil {
		t.Errorf("the next event gave %v", err)
	}
	events := 0
	if err := log.Replay(func(Event) { events++ }); err != nil || events != 2 {
		t.Errorf("the log has %d events, %v; want 2", events, err)
	}
}

// A long line at the end is a torn one only without a newline: with one it may
// be a record.
func TestALongLineAtTheEndIsOnlyJunkWhenItCannotBeARecord(t *testing.T) {
	for _, c := range []struct {
		name, tail string
		junk       bool
	}{
		{"torn", strings.Repeat("x", 1001), true},
		{"NUL bytes only", strings.Repeat("\x00", 1001) + "\n", true},
		{"a whole line", `{"a":"` + strings.Repeat("x", 1001) + "\"}\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := inspect(strings.NewReader(c.tail), 1000, func(f finding) bool {
				if f.junk() != c.junk || f.problem == nil {
					t.Errorf("junk is %t with the problem %v, want %t", f.junk(), f.problem, c.junk)
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
