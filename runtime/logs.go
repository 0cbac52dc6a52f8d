package runtime

import (
	"strconv"
	"strings"
)

// lineCost is what a line weighs beside its text, so that empty lines are not
// free.
const lineCost = 16

// logs keeps printed lines up to a limit: the first half of it from the start,
// the other half from the end.
type logs struct {
	limit      int
	head, tail []Line
	headBytes  int
	tailBytes  int
	dropped    int // from the front of tail, which they still occupy
	trimmed    int
}

func cost(l Line) int { return len(l.Text) + lineCost }

func (l *logs) add(line Line) {
	size := cost(line)
	if len(l.tail) == 0 && l.headBytes+size <= l.limit/2 {
		l.head = append(l.head, line)
		l.headBytes += size
		return
	}
	l.tail = append(l.tail, line)
	l.tailBytes += size
	l.shrink(l.limit - l.headBytes)
}

// shrink drops lines from the front of the tail until it fits into limit.
func (l *logs) shrink(limit int) {
	for l.tailBytes > limit && l.dropped < len(l.tail) {
		l.tailBytes -= cost(l.tail[l.dropped])
		l.tail[l.dropped] = Line{}
		l.dropped++
		l.trimmed++
	}
	if l.dropped > len(l.tail)/2 && l.dropped > 1000 {
		l.tail = append([]Line(nil), l.tail[l.dropped:]...)
		l.dropped = 0
	}
}

// take returns the lines that fit into limit, and how many were left out.
func (l *logs) take(limit int) ([]Line, int) {
	l.shrink(max(0, limit-l.headBytes))
	for limit < l.headBytes && len(l.head) > 0 {
		last := len(l.head) - 1
		l.headBytes -= cost(l.head[last])
		l.head = l.head[:last]
		l.trimmed++
	}
	return append(l.head, l.tail[l.dropped:]...), l.trimmed
}

// print is where every printed line goes.
func (w *world) print(level, text string) {
	line := Line{Level: level, Text: middle(text, w.logs.limit/4)}
	w.logs.add(line)
	if w.host.Log != nil {
		w.leave()
		w.host.Log(line)
		w.enter()
	}
}

// middle cuts the middle out of a text that is longer than limit.
func middle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := text[:limit/2], text[len(text)-limit/2:]
	mark := "… " + strconv.Itoa(len(text)-len(head)-len(tail)) + " bytes left out …"
	return strings.ToValidUTF8(head, "") + mark + strings.ToValidUTF8(tail, "")
}
