package local

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/dsh-run/dsh/tools"
)

const (
	previewLimit = 64 << 10 // of the text
	// previewedFile is the largest file that is read for a preview.
	previewedFile = exactLimit
)

// preview says what a change would do now, without doing it: a unified diff,
// or why it would fail. It notes nothing as seen, and asks for no permission:
// whether the mode allows the change is what the person decides.
func (s *Set) preview(ctx context.Context, call *tools.Call, path string, mustExist bool, p plan) (string, error) {
	st, err := s.of(call.Session)
	if err != nil {
		return "", err
	}
	t, err := s.resolve(call, path)
	if err == nil && t.exists() {
		err = irregular(t.path, t.info.Mode())
	}
	if err == nil && mustExist && !t.exists() {
		err = notFound(path, t)
	}
	if err != nil {
		return wouldFail(err), nil
	}
	if t.exists() && t.info.Size() > previewedFile {
		return fmt.Sprintf("no diff: %s has %d bytes, and files over %d MiB are not compared before the call runs", shownPath(t.path), t.info.Size(), previewedFile>>20), nil
	}
	done, _, _, err := changeOf{Set: s, call: call, target: t, seen: st.seen}.revise(ctx, p)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return wouldFail(err), nil
	}
	return done.preview(), nil
}

func wouldFail(err error) string { return "as things stand, the call would fail: " + err.Error() }

func (d changed) preview() string {
	path := shownPath(d.path)
	switch {
	case d.existed && bytes.Equal(d.old, d.new):
		return path + " would stay as it is"
	case !d.existed && len(d.new) == 0:
		return "makes the empty file " + path
	case bytes.IndexByte(d.old, 0) >= 0 || bytes.IndexByte(d.new, 0) >= 0:
		return fmt.Sprintf("no diff: %s is binary; it has %d bytes and would have %d", path, len(d.old), len(d.new))
	}
	return bounded(d.unified(lineEdits(d.old, d.new)))
}

// bounded is the beginning of a diff, with the size of what is left out.
func bounded(diff string) string {
	cut := cutLines(diff, previewLimit)
	if len(cut) == len(diff) {
		return diff
	}
	rest := diff[len(cut):]
	return cut + fmt.Sprintf("[%d more bytes of the diff, in %d lines, are left out]\n", len(rest), strings.Count(rest, "\n"))
}
