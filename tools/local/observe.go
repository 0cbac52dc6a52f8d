package local

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// span is a range of bytes, [from, to).
type span [2]int64

// observation is what a session has seen of one file, and the data of
// fs/observed.
type observation struct {
	Path   string `json:"path"` // canonical, in the form of nameText
	Exact  string `json:"path_bytes,omitempty"`
	Absent bool   `json:"absent,omitempty"`
	// Version that was seen. Nil when Absent.
	Version *version `json:"version,omitempty"`
	// Seen are the bytes that were shown, in order and without overlap.
	Seen []span `json:"seen,omitempty"`
}

// complete says that every byte was seen.
func (o observation) complete() bool {
	if o.Version == nil {
		return false
	}
	return o.Version.Size == 0 || slices.Equal(o.Seen, []span{{0, o.Version.Size}})
}

func (o observation) seenBytes() (n int64) {
	for _, s := range o.Seen {
		n += s[1] - s[0]
	}
	return n
}

// merge adds what was seen before of the same content.
func (o observation) merge(before observation) observation {
	if o.Version == nil || before.Version == nil || o.Version.SHA256 != before.Version.SHA256 {
		return o
	}
	o.Seen = mergeSpans(append(slices.Clone(before.Seen), o.Seen...))
	return o
}

// mergeSpans sorts spans and joins those that touch.
func mergeSpans(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && s[0] <= out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], s[1])
		} else if s[0] < s[1] {
			out = append(out, s)
		}
	}
	return out
}

// observations are what a session has seen of the file system, folded from its
// log. They are safe for concurrent use.
type observations struct {
	log *session.Log // nil: kept in memory only

	mu     sync.Mutex
	byPath map[string]observation
}

// apply folds one event. One that cannot be understood counts as not seen.
func (o *observations) apply(e session.Event) {
	var seen observation
	if err := json.Unmarshal(e.Data, &seen); err != nil {
		return
	}
	if path, err := exactName(seen.Path, seen.Exact); err == nil {
		o.byPath[path] = seen
	}
}

// of returns what was seen at path. ok is false when nothing ever was.
func (o *observations) of(path string) (seen observation, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen, ok = o.byPath[path]
	return seen, ok
}

func (o *observations) sawAbsent(path string) error {
	return o.record(path, observation{Absent: true})
}

func (o *observations) saw(path string, v version, seen ...span) error {
	return o.record(path, observation{Version: &v, Seen: mergeSpans(seen)})
}

// record notes what was seen and writes it to the log, unless that says
// nothing new.
func (o *observations) record(path string, seen observation) error {
	seen.Path, seen.Exact = nameText(path)
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.byPath[path]
	seen = seen.merge(before)
	if known && before.Absent == seen.Absent && sameVersion(before.Version, seen.Version) && slices.Equal(before.Seen, seen.Seen) {
		return nil
	}
	o.byPath[path] = seen
	if o.log == nil {
		return nil
	}
	if _, err := o.log.Append(session.FSObserved, seen); err != nil {
		return fail(tools.LogFailed, "what was seen of %s could not be logged: %v", shownPath(path), err)
	}
	return nil
}

func sameVersion(a, b *version) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
