package local

import (
	"fmt"
	"strings"
)

// transcript is what a model sees of a command: stdout, stderr behind a line
// that says so, and the lines of a footer.
type transcript struct {
	stdout, stderr outputValue
	footer         []string
}

const stderrHeading = "[stderr]\n"

// text is the transcript in at most budget bytes, as far as the footer leaves
// room. Of a stream that does not fit the end is shown; cut tells for which.
func (t transcript) text(budget int) (text string, cutStdout, cutStderr bool) {
	footer := strings.Join(t.footer, "\n")
	out, err := t.stdout.shown("stdout"), t.stderr.shown("stderr")
	room := max(0, budget-len(footer)-len(stderrHeading)-len("\n\n\n"))
	forOut, forErr := share(out.size(), err.size(), room)
	var parts []string
	if s := out.clip(forOut); s != "" {
		parts = append(parts, strings.TrimSuffix(s, "\n"))
	}
	if s := err.clip(forErr); s != "" {
		parts = append(parts, stderrHeading+strings.TrimSuffix(s, "\n"))
	}
	if footer != "" {
		parts = append(parts, footer)
	}
	return strings.Join(parts, "\n"), out.cut(forOut), err.cut(forErr)
}

// shownOutput is the end of a stream as a terminal would show it.
type shownOutput struct {
	text   string
	notice string // of what is missing before the text
	part   bool   // text does not begin where the stream does
}

func (v *outputValue) shown(name string) shownOutput {
	end := v.end()
	part := v.Truncated || len(end) < len(v.Text)
	if part {
		end = end[lineStart(end):]
	}
	return shownOutput{text: screenText(end), notice: v.notice(name), part: part}
}

// notice says where the beginning of the stream is.
func (v *outputValue) notice(name string) string {
	if v.SpillPath == nil {
		return fmt.Sprintf("[only the end of %s is shown here; it has %d bytes]\n", name, v.Bytes)
	}
	size := fmt.Sprintf("all of its %d bytes are", v.Bytes)
	if v.Bytes > spillLimit {
		size = fmt.Sprintf("the first %d of its %d bytes are", spillLimit, v.Bytes)
	}
	return fmt.Sprintf("[only the end of %s is shown here; %s in %s: read it with offset and limit, or grep it with path set to that file]\n", name, size, shownPath(*v.SpillPath))
}

func (s shownOutput) size() int {
	if s.part {
		return len(s.text) + len(s.notice)
	}
	return len(s.text)
}

func (s shownOutput) cut(room int) bool { return s.part || s.size() > room }

func (s shownOutput) clip(room int) string {
	if !s.cut(room) {
		return s.text
	}
	room -= len(s.notice)
	if room <= 0 {
		return s.notice
	}
	tail := s.text[cutAfter(s.text, max(0, len(s.text)-room)):]
	if len(tail) < len(s.text) {
		tail = tail[lineStart(tail):]
	}
	return s.notice + tail
}

// lineStart is where the first whole line of a text begins that was cut at its
// start, if that costs less than half of it.
func lineStart(s string) int {
	if i := strings.IndexByte(s, '\n'); i < len(s)/2 {
		return i + 1
	}
	return 0
}
