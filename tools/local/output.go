package local

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

const (
	// headLimit is how much of a stream a program gets: its beginning.
	headLimit = 8 << 20
	// tailLimit is how much of a stream a model gets: its end.
	tailLimit = 64 << 10
)

// output collects one stream of a command. What it keeps in memory is bounded
// at every moment; the rest goes to a file, if there is a place for one. It is
// safe for concurrent use.
type output struct {
	mu   sync.Mutex
	file spillFile
	// saving: the file gets what is written, and has all that was before.
	saving bool
	closed bool
	head   []byte    // the first bytes since the last portion was taken
	fresh  int64     // bytes since then
	tail   lastBytes // of all
	total  int64
}

// Write never fails: what cannot be kept is left out, and counted.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := headLimit - len(o.head)
	if len(p) > room {
		o.startSaving()
	}
	o.head = append(o.head, p[:min(len(p), room)]...)
	if o.saving {
		o.file.write(p)
	}
	o.tail.write(p)
	o.fresh += int64(len(p))
	o.total += int64(len(p))
	return len(p), nil
}

// save puts all of the stream so far, and what comes, into the file. It must be
// called before a portion is taken of a stream that goes on.
func (o *output) save() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.startSaving()
}

func (o *output) startSaving() {
	if !o.saving {
		o.saving = true
		o.file.write(o.head)
		if o.closed {
			o.file.close()
		}
	}
}

// close says that all was written. The stream may still be saved.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.file.close()
}

// saved is the file's path, empty where there is none, and why it has not all
// that it should have.
func (o *output) saved() (path string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.path, o.file.err
}

// size is the number of bytes so far.
func (o *output) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// end is the last of all that was written: at least tailLimit, if there was as
// much, and at most four times that.
func (o *output) end() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if int64(len(o.head)) == o.total {
		return bytes.Clone(o.head[max(0, len(o.head)-4*tailLimit):])
	}
	return bytes.Clone(o.tail.bytes())
}

// portion is what was written since the portion before.
type portion struct {
	size int64
	head []byte // the first bytes
	tail []byte // the last bytes, when head has not all
}

func (p portion) whole() bool { return int64(len(p.head)) == p.size }

// take returns what is new. While the stream goes on, the first bytes of a
// character that is not complete are left for the next portion.
func (o *output) take(ended bool) portion {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.tail.bytes()
	last = last[max(0, int64(len(last))-o.fresh):]
	held := 0
	if !ended {
		held = incomplete(last)
	}
	p := portion{size: o.fresh - int64(held), head: o.head[:min(int64(len(o.head)), o.fresh-int64(held))]}
	if !p.whole() {
		p.tail = bytes.Clone(last[:len(last)-held])
	}
	o.head = bytes.Clone(last[len(last)-held:])
	o.fresh = int64(held)
	return p
}

// incomplete is the number of bytes at the end of b that begin a character.
func incomplete(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if rest := b[len(b)-n:]; utf8.RuneStart(rest[0]) {
			if utf8.FullRune(rest) {
				return 0
			}
			return n
		}
	}
	return 0
}

// lastBytes keeps the last tailLimit bytes of what is written to it.
type lastBytes struct{ kept []byte }

func (l *lastBytes) write(p []byte) {
	p = p[max(0, len(p)-tailLimit):]
	l.kept = append(l.kept, p...)
	if len(l.kept) > 2*tailLimit {
		l.kept = append(l.kept[:0], l.bytes()...)
	}
}

func (l *lastBytes) bytes() []byte { return l.kept[max(0, len(l.kept)-tailLimit):] }
