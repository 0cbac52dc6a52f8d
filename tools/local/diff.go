package local

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

const (
	diffLimit  = 256 << 10 // of a value
	shownLimit = 8 << 10   // of what a model sees
	// exactLimit is the largest content that is compared line by line; that of
	// a larger one is shown as removed and added.
	exactLimit = 4 << 20
)

// diffValue is a unified diff in a value.
type diffValue struct {
	Diff string `json:"diff"`
	// DiffTruncated says that the diff was cut at the end of a line.
	DiffTruncated bool `json:"diff_truncated,omitempty"`
}

func (d changed) diff() diffValue {
	return newDiff(d, lineEdits(d.old, d.new))
}

func newDiff(d changed, edits []udiff.Edit) diffValue {
	text := strings.ToValidUTF8(d.unified(edits), "\uFFFD")
	cut := cutLines(text, diffLimit)
	return diffValue{Diff: cut, DiffTruncated: len(cut) < len(text)}
}

func (d changed) unified(edits []udiff.Edit) string {
	from, to := shownPath(d.path), shownPath(d.path)
	if !d.existed {
		from = "/dev/null"
	}
	text, err := udiff.ToUnified(from, to, string(d.old), edits, 3)
	if err != nil {
		panic("local: a diff of edits that do not fit their text: " + err.Error())
	}
	return text
}

func lineEdits(old, new []byte) []udiff.Edit {
	if len(old)+len(new) > exactLimit {
		return []udiff.Edit{{Start: 0, End: len(old), New: string(new)}}
	}
	return udiff.Lines(string(old), string(new))
}

// cutLines returns whole lines of text, at most limit bytes.
func cutLines(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:strings.LastIndexByte(text[:limit], '\n')+1]
}

// shown is the part of the diff that a model sees.
func (d diffValue) shown() string {
	cut := cutLines(d.Diff, shownLimit)
	if d.DiffTruncated || len(cut) < len(d.Diff) {
		cut += "[the diff is longer; it was cut here]\n"
	}
	return cut
}
