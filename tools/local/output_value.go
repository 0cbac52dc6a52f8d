package local

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// outputValue is a stream of a command in a value.
type outputValue struct {
	// Text is the beginning of the stream; what is not UTF-8 in it is replaced.
	Text  string `json:"text"`
	Bytes int64  `json:"bytes"`
	// Truncated says that Text is not all.
	Truncated bool `json:"truncated"`
	// SpillPath is a file with the bytes of the whole stream, up to 64 MiB.
	SpillPath *string `json:"spill_path"`
	// Tail is the end of a stream that is truncated.
	Tail string `json:"tail,omitempty"`
	// Encoding is binary when Text or Tail are not what was written.
	Encoding string `json:"encoding,omitempty"`
}

const binaryEncoding = "binary"

func newOutputValue(p portion) outputValue {
	head, tail := p.head, p.tail
	if !p.whole() {
		head = head[:len(head)-incomplete(head)]
		tail = tail[continuing(tail):]
	}
	v := outputValue{Text: validText(head), Tail: validText(tail), Bytes: p.size, Truncated: !p.whole()}
	if isBinary(head) || isBinary(tail) {
		v.Encoding = binaryEncoding
	}
	return v
}

// continuing is the number of bytes at the start of b that belong to a
// character which began before.
func continuing(b []byte) int {
	n := 0
	for n < min(utf8.UTFMax-1, len(b)) && !utf8.RuneStart(b[n]) {
		n++
	}
	return n
}

func validText(b []byte) string {
	return strings.ToValidUTF8(string(b), string(utf8.RuneError))
}

func isBinary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) }

// valueRoom is what the texts of one value may take up in JSON, so that the
// value stays under the limit of 16 MiB.
const valueRoom = 16<<20 - 64<<10

// fit shortens the texts of two streams until they fit into room bytes of JSON.
func fit(a, b *outputValue, room int) {
	room -= encodedSize(a.end()) + encodedSize(b.end())
	forA, forB := share(encodedSize(a.Text), encodedSize(b.Text), room)
	a.shorten(forA)
	b.shorten(forB)
}

// end is the last part of the stream that the value has.
func (v *outputValue) end() string {
	end := v.Text
	if v.Truncated {
		end = v.Tail
	}
	return end[cutAfter(end, max(0, len(end)-tailLimit)):]
}

// shorten cuts Text to what takes room bytes in JSON.
func (v *outputValue) shorten(room int) {
	cut := encodedCut(v.Text, room)
	if cut == len(v.Text) {
		return
	}
	v.Tail = v.end()
	v.Text, v.Truncated = v.Text[:cut], true
}

// share divides room between two that want a and b of it: each gets what it
// wants, or else half and what the other leaves.
func share(a, b, room int) (forA, forB int) {
	half := room / 2
	switch {
	case a+b <= room:
		return a, b
	case a <= half:
		return a, room - a
	case b <= half:
		return room - b, b
	default:
		return room - half, half
	}
}

// encodedCut is the length of the longest start of s that takes at most room
// bytes in JSON and splits no character.
func encodedCut(s string, room int) int {
	for at := 0; at < len(s); {
		size, cost := encodedRune([]byte(s[at:min(len(s), at+utf8.UTFMax)]))
		if room -= cost; room < 0 {
			return at
		}
		at += size
	}
	return len(s)
}
