package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// limits bound what a read returns. Zero is no limit.
type limits struct {
	lines, bytes, chars int
	// encoded counts bytes as they are in JSON.
	encoded bool
}

// modelLimits are those of what a model sees.
func modelLimits(in readArgs) limits {
	l := limits{lines: 2000, bytes: 50 << 10, chars: 2000}
	if in.Limit > 0 {
		l.lines = in.Limit
	}
	if in.ByteOffset != nil {
		l.chars = 0
	}
	return l
}

// programLimits keep the value below what a call may return.
func programLimits(in readArgs) limits {
	return limits{lines: in.Limit, bytes: 15 << 20, encoded: true}
}

// lineOverhead is what the JSON of a line has beside its text, at most.
const lineOverhead = 64

func (l limits) cost(text []byte) int {
	if !l.encoded {
		return len(text) + 1
	}
	n := lineOverhead
	for len(text) > 0 {
		size, cost := encodedRune(text)
		n += cost
		text = text[size:]
	}
	return n
}

// encodedRune returns the size of the first rune and that of its JSON.
func encodedRune(text []byte) (size, cost int) {
	c := text[0]
	switch {
	case c == '"' || c == '\\' || c == '\t' || c == '\r' || c == '\n':
		return 1, 2
	case c < 0x20 || c == 0x7f:
		return 1, 6
	case c < utf8.RuneSelf:
		return 1, 1
	}
	r, size := utf8.DecodeRune(text)
	if r == '\u2028' || r == '\u2029' {
		return size, 6
	}
	return size, utf8.RuneLen(r)
}

// within returns how many bytes of text, whole runes, cost at most room.
func (l limits) within(text []byte, room int) (n int) {
	room -= l.cost(nil)
	for n < len(text) {
		size, cost := encodedRune(text[n:])
		if !l.encoded {
			cost = size
		}
		if room -= cost; room < 0 {
			break
		}
		n += size
	}
	return n
}

// clip returns how many bytes of text are no more characters than allowed.
func (l limits) clip(text []byte) (n int) {
	if l.chars == 0 || len(text) <= l.chars {
		return len(text)
	}
	for range l.chars {
		if n == len(text) {
			break
		}
		_, size := utf8.DecodeRune(text[n:])
		n += size
	}
	return n
}

// fit returns the lines that the limits leave. cut says that some are missing.
func (l limits) fit(lines []line) (kept []line, cut bool) {
	used := 0
	for i, full := range lines {
		text := []byte(full.Text)
		if n := l.clip(text); n < len(text) {
			full.Text, full.RestOffset, cut = full.Text[:n], 0, true
		}
		if cost := l.cost([]byte(full.Text)); used+cost > l.bytes && i > 0 || i == l.lines {
			return kept, true
		} else if cost > l.bytes {
			full.Text, cut = full.Text[:l.within([]byte(full.Text), l.bytes)], true
		}
		used += l.cost([]byte(full.Text))
		kept = append(kept, full)
	}
	return kept, cut
}

// window collects a part of a text that streams by. It keeps no more of the
// text than its limits allow, whatever the length of file and lines.
type window struct {
	limits
	fromLine int
	fromByte int64 // used instead of fromLine when not negative

	lines []line
	seen  []span
	used  int
	done  bool
	next  struct {
		line int
		byte int64
	}

	pos      int64
	number   int // of the line at pos, from 1
	last     byte
	counted  bool // the whole file was read
	cur      []byte
	curFrom  int64
	curLen   int64
	open     bool
	crlf, lf int
	bom      bool
	invalid  bool
}

func newWindow(in readArgs, program bool) *window {
	w := &window{limits: modelLimits(in), fromLine: max(in.Offset, 1), fromByte: -1, number: 1}
	if program {
		w.limits = programLimits(in)
	}
	if in.ByteOffset != nil {
		w.fromByte = *in.ByteOffset
	}
	return w
}

// read streams r, which is f with its first bytes put back. It returns the
// file's version, or nil when the file is too large to have one.
func (w *window) read(ctx context.Context, f *os.File, r io.Reader, path string) (*version, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, osFailure(path, err)
	}
	sum, chunk := sha256.New(), make([]byte, 128<<10)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := r.Read(chunk)
		if !w.feed(chunk[:n]) {
			return nil, fail(NotText, "%s is binary: it has NUL bytes; use bash with a tool for its format", shownPath(path))
		}
		huge := max(info.Size(), w.pos) > hashLimit
		if !huge {
			sum.Write(chunk[:n])
		}
		switch {
		case huge && w.done:
			return nil, nil
		case err == io.EOF:
			w.end()
			if w.counted = !huge; huge {
				return nil, nil
			}
			v := versionOf(info, w.pos, sum.Sum(nil))
			return &v, nil
		case err != nil:
			return nil, osFailure(path, err)
		}
	}
}

// feed takes the next bytes. It is false when the window would show a NUL byte.
func (w *window) feed(chunk []byte) bool {
	if len(chunk) > 0 {
		w.last = chunk[len(chunk)-1]
	}
	for len(chunk) > 0 && !w.done {
		size := bytes.IndexByte(chunk, '\n') + 1
		ended := size > 0
		if !ended {
			size = len(chunk)
		}
		if !w.piece(chunk[:size], ended) {
			return false
		}
		chunk = chunk[size:]
	}
	w.pos += int64(len(chunk))
	w.number += bytes.Count(chunk, []byte{'\n'})
	return true
}

// piece takes bytes of one line; ended says that they end it.
func (w *window) piece(piece []byte, ended bool) bool {
	from := w.pos
	w.pos += int64(len(piece))
	if w.fromByte >= 0 && from < w.fromByte {
		skip := min(w.fromByte-from, int64(len(piece)))
		from, piece = from+skip, piece[skip:]
	}
	if len(piece) > 0 && (w.fromByte >= 0 || w.number >= w.fromLine) {
		if w.full(from) {
			w.pos = from
			return w.feedRest(piece)
		}
		if !w.take(piece, from) {
			return false
		}
	}
	if w.open && (ended || w.curLen > hashLimit) {
		w.finish(ended)
	}
	if ended {
		w.number++
	}
	return true
}

// full ends the window in front of a line that is one too many.
func (w *window) full(from int64) bool {
	if w.open || w.limits.lines == 0 || len(w.lines) < w.limits.lines {
		return false
	}
	w.stop(from)
	return true
}

func (w *window) feedRest(piece []byte) bool {
	w.pos += int64(len(piece))
	w.number += bytes.Count(piece, []byte{'\n'})
	return true
}

// stop ends the window; the byte at pos, which begins a line, is not in it.
func (w *window) stop(pos int64) {
	w.done = true
	if w.fromByte >= 0 {
		w.next.byte = pos
	} else {
		w.next.line = w.number
	}
}

// take keeps what may be shown of a piece.
func (w *window) take(piece []byte, from int64) bool {
	if !w.open {
		w.open, w.curFrom, w.curLen, w.cur = true, from, 0, w.cur[:0]
	}
	w.curLen += int64(len(piece))
	keep := w.limits.bytes + utf8.UTFMax
	if w.chars > 0 {
		keep = min(keep, (w.chars+1)*utf8.UTFMax)
	}
	piece = piece[:min(len(piece), max(0, keep-len(w.cur)))]
	w.cur = append(w.cur, piece...)
	return bytes.IndexByte(piece, 0) < 0
}

var byteOrderMark = []byte("\uFEFF")

// finish ends the current line.
func (w *window) finish(ended bool) {
	w.open = false
	text := w.cur
	if ended && int64(len(text)) == w.curLen {
		text = w.trimEnd(text)
	}
	skipped := 0
	if w.curFrom == 0 && bytes.HasPrefix(text, byteOrderMark) {
		w.bom, skipped = true, len(byteOrderMark)
		text = text[skipped:]
	}
	n := w.clip(text)
	if w.used+w.cost(text[:n]) > w.limits.bytes {
		if len(w.lines) > 0 && w.fromByte < 0 {
			w.stop(w.curFrom)
			return
		}
		n = w.within(text, w.limits.bytes-w.used)
		w.done, w.next.byte = true, w.curFrom+int64(skipped+n)
		if n == 0 {
			return
		}
	}
	w.keep(text, n, skipped)
}

// keep adds the line text[:n].
func (w *window) keep(text []byte, n, skipped int) {
	l := line{Number: w.number, Text: strings.ToValidUTF8(string(text[:n]), "\uFFFD")}
	w.invalid = w.invalid || !utf8.Valid(text[:n])
	w.used += w.cost(text[:n])
	end := w.curFrom + w.curLen
	if n < len(text) || w.curLen > int64(len(w.cur)) {
		end = w.curFrom + int64(skipped+n)
		if l.RestOffset = end; w.curLen > hashLimit {
			w.done, w.next.byte = true, end
		}
	}
	w.seen = append(w.seen, span{w.curFrom, end})
	w.lines = append(w.lines, l)
}

// trimEnd removes the end of a line, and counts its kind.
func (w *window) trimEnd(text []byte) []byte {
	text = text[:len(text)-1]
	if bytes.HasSuffix(text, []byte{'\r'}) {
		w.crlf++
		return text[:len(text)-1]
	}
	w.lf++
	return text
}

func (w *window) end() {
	if w.open {
		w.finish(false)
	}
}

func (w *window) value(path string) readValue {
	v := readValue{Lines: w.lines, NextOffset: w.next.line, NextByteOffset: w.next.byte, Notes: w.notes()}
	v.Path, v.PathBytes = nameText(path)
	if v.Lines == nil {
		v.Lines = []line{}
	}
	if w.counted {
		total := w.total()
		v.TotalLines = &total
	}
	v.Truncated = w.done
	for _, l := range w.lines {
		v.Truncated = v.Truncated || l.RestOffset > 0
	}
	return v
}

func (w *window) total() int {
	if w.pos > 0 && w.last != '\n' {
		return w.number
	}
	return w.number - 1
}

// notes say what the text of the lines cannot show.
func (w *window) notes() (notes []string) {
	for _, n := range []struct {
		holds bool
		text  string
	}{
		{w.bom, "the file starts with a byte order mark"},
		{w.crlf > 0 && w.lf == 0, "lines end in CRLF"},
		{w.crlf > 0 && w.lf > 0, "some lines end in CRLF, others in LF"},
		{w.invalid, "bytes that are not UTF-8 are shown as \uFFFD; edit keeps them"},
		{!w.done && w.pos > 0 && w.last != '\n', "no newline at the end of the file"},
	} {
		if n.holds {
			notes = append(notes, n.text)
		}
	}
	return notes
}
