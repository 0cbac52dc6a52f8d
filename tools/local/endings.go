package local

import (
	"bytes"
	"sort"
	"strings"
)

// endings is a text in which CRLF and LF are alike. Places in plain, which has
// only LF, lead back to the bytes of raw.
type endings struct {
	raw, plain []byte
	// crlf are the positions in plain of the LFs that have a CR before them in
	// raw.
	crlf []int
}

func newEndings(raw []byte) endings {
	e := endings{raw: raw, plain: raw}
	if !bytes.Contains(raw, crlf) {
		return e
	}
	e.plain = make([]byte, 0, len(raw))
	for rest := raw; ; {
		i := bytes.Index(rest, crlf)
		if i < 0 {
			e.plain = append(e.plain, rest...)
			return e
		}
		e.plain = append(e.plain, rest[:i]...)
		e.crlf = append(e.crlf, len(e.plain))
		e.plain = append(e.plain, '\n')
		rest = rest[i+2:]
	}
}

var crlf = []byte("\r\n")

func normalEndings(text []byte) []byte { return bytes.ReplaceAll(text, crlf, []byte{'\n'}) }

// original leads a position in plain back to raw; one at a line ending goes
// before all of it.
func (e endings) original(at int) int { return at + sort.SearchInts(e.crlf, at) }

// places returns where needle stands, from left to right without overlap, as
// positions in raw.
func (e endings) places(needle []byte) (list [][2]int) {
	for at := 0; ; {
		i := bytes.Index(e.plain[at:], needle)
		if i < 0 {
			return list
		}
		from, to := at+i, at+i+len(needle)
		list = append(list, [2]int{e.original(from), e.original(to)})
		at = to
	}
}

// adapt gives text the line endings of the place that it replaces: line by
// line those that stand there, then the last of them; where none stands there,
// that of the line itself or of one before. Where the text has no line at all,
// it stays as it is.
func (e endings) adapt(text string, place [2]int) string {
	there := endingsIn(e.raw[place[0]:place[1]])
	if len(there) == 0 {
		there = e.nearby(place)
	}
	if len(there) == 0 {
		return text
	}
	lines := strings.Split(string(normalEndings([]byte(text))), "\n")
	var b strings.Builder
	for i, line := range lines {
		b.WriteString(line)
		if i < len(lines)-1 {
			b.WriteString(there[min(i, len(there)-1)])
		}
	}
	return b.String()
}

func (e endings) nearby(place [2]int) []string {
	if i := bytes.IndexByte(e.raw[place[1]:], '\n'); i >= 0 {
		to := place[1] + i + 1
		return endingsIn(e.raw[max(0, to-2):to])
	}
	if i := bytes.LastIndexByte(e.raw[:place[0]], '\n'); i >= 0 {
		return endingsIn(e.raw[max(0, i-1) : i+1])
	}
	return nil
}

// endingsIn lists the line endings in text.
func endingsIn(text []byte) (list []string) {
	for i, c := range text {
		switch {
		case c == '\n' && i > 0 && text[i-1] == '\r':
			list = append(list, "\r\n")
		case c == '\n':
			list = append(list, "\n")
		}
	}
	return list
}
