package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A frame is a header, little endian, and a body:
//
//	length uint32 of the body
//	kind   uint8
//	id     uint32, the number of a call or 0
type frame struct {
	kind frameKind
	id   uint32
	// body belongs to the reader until its next call of next.
	body []byte
}

type frameKind uint8

// Frames of the parent.
const (
	frameHello frameKind = iota + 1 // the nonce that ready repeats
	frameRun                        // the program, once
	frameReply                      // the answer to the call with this id
	frameStop                       // end the run now
)

// Frames of the worker.
const (
	frameReady   frameKind = iota + 16 // warm and locked down; the nonce
	frameFailed                        // instead of ready: why it cannot serve
	frameStarted                       // the source is compiled
	frameCall                          // a call of a host function
	frameLog                           // a printed line
	frameDone                          // the outcome, the last frame
)

const (
	frameHeader = 9
	// frameSlack is what a body may hold beside the bytes that a limit
	// bounds: names, messages, lists of numbers, lengths.
	frameSlack = 1 << 20
)

// longestReport bounds the report of a run, which may list all calls.
func longestReport(l Limits) int { return frameSlack + 16*min(l.Calls, 1<<20) }

// longestFrame bounds the frames of a run in both directions.
func longestFrame(l Limits) int { return max(l.CallBytes, l.OutputBytes) + longestReport(l) }

// A breach is how a peer broke the protocol.
type breach struct{ what string }

func (b *breach) Error() string { return b.what }

func (b *breach) failure() *Failure {
	return &Failure{Kind: Protocol, Message: "the worker process broke the protocol: it sent " + b.what}
}

func breachf(format string, args ...any) error {
	return &breach{fmt.Sprintf(format, args...)}
}

// A frameReader cuts a byte stream into frames. It never holds more than one
// frame of limit bytes, and grows only as bytes arrive, whatever a header says.
type frameReader struct {
	source     io.Reader
	limit      int
	buf        []byte
	start, end int
}

func newFrameReader(source io.Reader, limit int) *frameReader {
	return &frameReader{source: source, limit: limit, buf: make([]byte, 16<<10)}
}

// next waits for a frame. io.EOF means that the peer closed between frames.
func (r *frameReader) next() (frame, error) {
	if err := r.fill(frameHeader); err != nil {
		if r.end > r.start && errors.Is(err, io.EOF) {
			return frame{}, io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	header := r.buf[r.start:]
	size := binary.LittleEndian.Uint32(header)
	if uint64(size) > uint64(r.limit) {
		return frame{}, breachf("a frame of %d bytes, at most %d are legal", size, r.limit)
	}
	f := frame{kind: frameKind(header[4]), id: binary.LittleEndian.Uint32(header[5:])}
	total := frameHeader + int(size)
	if err := r.fill(total); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	f.body = r.buf[r.start+frameHeader : r.start+total : r.start+total]
	r.start += total
	return f, nil
}

// buffered says whether next would return without reading.
func (r *frameReader) buffered() bool {
	have := r.end - r.start
	return have >= frameHeader &&
		uint64(have) >= frameHeader+uint64(binary.LittleEndian.Uint32(r.buf[r.start:]))
}

func (r *frameReader) fill(need int) error {
	for r.end-r.start < need {
		if r.start > 0 && (r.start == r.end || r.start+need > len(r.buf)) {
			r.end = copy(r.buf, r.buf[r.start:r.end])
			r.start = 0
		}
		if r.end == len(r.buf) {
			r.grow(need)
		}
		n, err := r.source.Read(r.buf[r.end:])
		r.end += n
		if err != nil && r.end-r.start < need {
			return err
		}
	}
	return nil
}

func (r *frameReader) grow(need int) {
	bigger := make([]byte, max(min(2*len(r.buf), need), len(r.buf)+1))
	copy(bigger, r.buf[:r.end])
	r.buf = bigger
}

// An outbox collects frames and writes them in order, as many at once as have
// come together. Frames added after an error are dropped: the reader learns of
// a dead peer by itself.
type outbox struct {
	to io.Writer
	// kick, if not nil, wakes a writer goroutine instead of writing at once,
	// so that calls made in one turn of the program leave together.
	kick chan struct{}

	mu      sync.Mutex
	pending []byte
	spare   []byte
	writing bool
	corked  bool
	err     error
}

// begin locks the outbox and returns the buffer to append one frame to, which
// goes back through commit.
func (o *outbox) begin() []byte {
	o.mu.Lock()
	return o.pending
}

func (o *outbox) commit(buf []byte) {
	o.pending = buf
	switch {
	case o.kick != nil:
		o.mu.Unlock()
		select {
		case o.kick <- struct{}{}:
		default:
		}
	case o.corked:
		o.mu.Unlock()
	default:
		o.drain()
	}
}

// cork holds frames back until uncork.
func (o *outbox) cork() {
	o.mu.Lock()
	o.corked = true
	o.mu.Unlock()
}

func (o *outbox) uncork() {
	o.mu.Lock()
	o.corked = false
	o.drain()
}

// flush writes what is pending.
func (o *outbox) flush() {
	o.mu.Lock()
	o.drain()
}

// drain is called locked and unlocks. Whoever comes while another writes
// leaves its frames to that one.
func (o *outbox) drain() {
	if o.writing {
		o.mu.Unlock()
		return
	}
	o.writing = true
	for len(o.pending) > 0 && o.err == nil {
		batch := o.pending
		o.pending = o.spare[:0]
		o.mu.Unlock()
		_, err := o.to.Write(batch)
		o.mu.Lock()
		o.err = err
		o.spare = batch[:0]
		if cap(batch) > 1<<20 {
			o.spare = nil
		}
	}
	if o.err != nil {
		o.pending = nil
	}
	o.writing = false
	o.mu.Unlock()
}

// openFrame appends a header whose length closeFrame fills in.
func openFrame(buf []byte, kind frameKind, id uint32) []byte {
	buf = append(buf, 0, 0, 0, 0, byte(kind))
	return binary.LittleEndian.AppendUint32(buf, id)
}

func closeFrame(buf []byte, at int) []byte {
	binary.LittleEndian.PutUint32(buf[at:], uint32(len(buf)-at-frameHeader))
	return buf
}

func appendFrame[T ~string | ~[]byte](buf []byte, kind frameKind, id uint32, body T) []byte {
	at := len(buf)
	return closeFrame(append(openFrame(buf, kind, id), body...), at)
}

func appendBlob[T ~string | ~[]byte](buf []byte, blob T) []byte {
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(blob)))
	return append(buf, blob...)
}

// A body is read from the front; its error sticks.
type body struct {
	rest []byte
	bad  bool
}

func (b *body) take(n uint32) []byte {
	if b.bad || uint64(n) > uint64(len(b.rest)) {
		b.bad = true
		return nil
	}
	part := b.rest[:n:n]
	b.rest = b.rest[n:]
	return part
}

func (b *body) u8() byte {
	if p := b.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (b *body) u32() uint32 {
	if p := b.take(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (b *body) blob() []byte { return b.take(b.u32()) }
