package runtime

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// pieces is a reader that returns at most n bytes at a time.
type pieces struct {
	from *bytes.Reader
	n    int
}

func (p pieces) Read(buf []byte) (int, error) { return p.from.Read(buf[:min(p.n, len(buf))]) }

// readFrames reads data, arriving n bytes at a time, to its end; again is what
// the frames are when they are written once more.
func readFrames(data []byte, n, limit int) (again []byte, held int, err error) {
	r := newFrameReader(pieces{bytes.NewReader(data), n}, limit)
	for {
		f, err := r.next()
		if err != nil {
			return again, len(r.buf), err
		}
		again = appendFrame(again, f.kind, f.id, f.body)
	}
}

// FuzzFrames states: whatever arrives, in whatever pieces, the frames read are
// the beginning of what arrived; what follows is an end, a frame cut short, or
// a breach; and no header makes the reader hold more than a legal frame.
func FuzzFrames(f *testing.F) {
	const limit = 1000
	var two []byte
	two = appendFrame(two, frameLog, 0, "\x00line")
	two = appendFrame(two, frameCall, 7, "body")
	for _, seed := range [][]byte{nil, two, two[:len(two)-1], two[:3], append(two, 255, 255, 255, 255, 1, 0, 0, 0, 0), appendFrame(nil, 0, 1<<31, strings.Repeat("x", limit+1))} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		whole, held, err := readFrames(data, max(1, len(data)), limit)
		if most := max(16<<10, frameHeader+limit); held > most {
			t.Errorf("the reader holds %d bytes; at most %d are legal", held, most)
		}
		rest, isPrefix := bytes.CutPrefix(data, whole)
		if !isPrefix {
			t.Fatalf("%x was read as the frames %x", data, whole)
		}
		switch {
		case err == io.EOF && len(rest) == 0:
		case err == io.ErrUnexpectedEOF && len(rest) > 0:
		case errors.As(err, new(*breach)) && len(rest) >= frameHeader:
		default:
			t.Fatalf("after the frames %x of %x: %v", whole, data, err)
		}
		cut, _, cutErr := readFrames(data, 1+int(uint(n)%64), limit)
		if !bytes.Equal(whole, cut) || !reflect.DeepEqual(err, cutErr) {
			t.Fatalf("in pieces %x is %x, %v; at once it is %x, %v", data, cut, cutErr, whole, err)
		}
	})
}

// FuzzMessages states: what a parser of the parent accepts can be written and
// is accepted again, as the same; and nothing makes one panic.
func FuzzMessages(f *testing.F) {
	limits := Limits{CallBytes: 500, OutputBytes: 500}.WithDefaults()
	body := func(frame []byte) []byte { return frame[frameHeader:] }
	f.Add(uint8(0), body(appendCall(nil, Call{N: 1, Name: "a.b", Args: []byte(`{"a":[1]}`), Line: 3, Column: 4})))
	f.Add(uint8(1), body(appendLog(nil, Line{Level: "warn", Text: "é"})))
	done, _ := appendDone(nil, Outcome{Value: []byte(`{"x":1}`), Unanswered: []int{1, 2}, NotStarted: []int{3}})
	f.Add(uint8(2), body(done))
	done, _ = appendDone(nil, Outcome{Failure: &Failure{Kind: Timeout, Clock: WallClock, Message: "m", Line: 1, Thrown: []byte(`{"a":1}`)}})
	f.Add(uint8(2), body(done))
	f.Fuzz(func(t *testing.T, which uint8, payload []byte) {
		first, frame, err := parseAgain(which, payload, limits)
		if err != nil {
			if !errors.As(err, new(*breach)) {
				t.Fatalf("%q is refused with what is no breach: %v", payload, err)
			}
			return
		}
		second, _, err := parseAgain(which, body(frame), limits)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("%q is %+v; written again it is %+v, %v", payload, first, second, err)
		}
	})
}

// parseAgain parses one kind of message and writes what it was.
func parseAgain(which uint8, payload []byte, limits Limits) (meaning any, frame []byte, err error) {
	switch which % 3 {
	case 0:
		c, err := parseCall(frameOf(payload), nil, limits)
		return c, appendCall(nil, c), err
	case 1:
		l, err := parseLog(payload)
		return l, appendLog(nil, l), err
	}
	rep, value, err := parseDone(payload, limits)
	if err != nil {
		return nil, nil, err
	}
	frame, err = appendDone(nil, Outcome{Value: value, Failure: rep.Failure, LogsTrimmed: rep.LogsTrimmed,
		Unanswered: rep.Unanswered, NotStarted: rep.NotStarted, Usage: Usage{Compute: rep.Compute, Calls: rep.Calls}})
	return []any{canonical(rep), string(value)}, frame, err
}

func frameOf(payload []byte) frame { return frame{kind: frameCall, id: 1, body: payload} }

// canonical takes the white space out of what is raw JSON in rep, and makes
// empty lists nil, as writing them does.
func canonical(rep report) report {
	if len(rep.Unanswered) == 0 {
		rep.Unanswered = nil
	}
	if len(rep.NotStarted) == 0 {
		rep.NotStarted = nil
	}
	if rep.Failure != nil {
		failure := *rep.Failure
		failure.Thrown = nil
		rep.Failure = &failure
	}
	return rep
}

func TestOutboxWritesInOrder(t *testing.T) {
	var to bytes.Buffer
	o := outbox{to: &to}
	o.cork()
	o.commit(append(o.begin(), "a"...))
	if to.Len() > 0 {
		t.Error("a corked outbox wrote")
	}
	o.commit(append(o.begin(), "b"...))
	o.uncork()
	o.commit(append(o.begin(), "c"...))
	if to.String() != "abc" {
		t.Errorf("wrote %q; want abc", to.String())
	}
}

type failing struct{ writes int }

func (f *failing) Write([]byte) (int, error) {
	f.writes++
	return 0, io.ErrClosedPipe
}

func TestOutboxGivesUpOnADeadPeer(t *testing.T) {
	to := &failing{}
	o := outbox{to: to}
	for range 3 {
		o.commit(append(o.begin(), "frame"...))
	}
	if to.writes != 1 || len(o.pending) != 0 {
		t.Errorf("%d writes, %d bytes kept; want 1, 0", to.writes, len(o.pending))
	}
}
