package local

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/aymanbagabas/go-udiff"

	"github.com/dsh-run/dsh/tools"
)

//go:embed edit.md
var editDescription string

type editArgs struct {
	FilePath   string `json:"file_path" jsonschema:"the file; a relative path starts at the working directory"`
	OldString  string `json:"old_string" jsonschema:"the text to replace, exactly as it stands in the file"`
	NewString  string `json:"new_string" jsonschema:"the text to put there instead, taken literally"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence; false by default, then there must be exactly one"`
	widening
}

type editValue struct {
	Path         string `json:"path"`
	PathBytes    string `json:"path_bytes,omitempty"`
	Replacements int    `json:"replacements"`
	diffValue
	Sandbox confinementValue `json:"sandbox"`
}

func (s *Set) editTool() tools.Tool {
	return tools.New(tools.Tool{
		Name: "edit", Description: editDescription, Render: tools.Renderer(renderEdit),
		Effect: tools.Local, Atomic: true, Confined: true, Widen: widen,
		Preview: s.previewEdit,
	}, s.edit)
}

func (s *Set) edit(ctx context.Context, call *tools.Call, in editArgs) (v editValue, err error) {
	if err := in.check(); err != nil {
		return v, err
	}
	var edits []udiff.Edit
	done, err := s.change(ctx, call, in.FilePath, true, func(old []byte, seen observation) (r revision, err error) {
		if edits, err = findEdits(in, old); err != nil {
			return r, err
		}
		return revise(old, edits, seen.Seen)
	})
	if err != nil {
		return v, err
	}
	v = editValue{Replacements: len(edits), diffValue: newDiff(done, edits), Sandbox: newConfinementValue(done.confinement)}
	v.Path, v.PathBytes = nameText(done.path)
	return v, nil
}

// check refuses what cannot be an edit of any file.
func (in editArgs) check() error {
	switch {
	case in.OldString == "":
		return fail(tools.InvalidArgs, "old_string is empty; give the text to replace. For new text give the line before it as old_string, and that line with the text as new_string")
	case in.OldString == in.NewString:
		return fail(tools.InvalidArgs, "old_string and new_string are the same; nothing would change")
	}
	return nil
}

func (s *Set) previewEdit(ctx context.Context, call *tools.Call) (string, error) {
	var in editArgs
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return "", err
	}
	if err := in.check(); err != nil {
		return wouldFail(err), nil
	}
	return s.preview(ctx, call, in.FilePath, true, func(old []byte, seen observation) (revision, error) {
		edits, err := findEdits(in, old)
		if err != nil {
			return revision{}, err
		}
		return revise(old, edits, seen.Seen)
	})
}

// findEdits returns one edit for each place that old_string stands at.
func findEdits(in editArgs, old []byte) ([]udiff.Edit, error) {
	text := newEndings(old)
	places := text.places(normalEndings([]byte(in.OldString)))
	switch {
	case len(places) == 0:
		return nil, nearMiss(in, text.plain)
	case len(places) > 1 && !in.ReplaceAll:
		return nil, ambiguous(in.FilePath, text, places)
	}
	edits := make([]udiff.Edit, len(places))
	for i, p := range places {
		edits[i] = udiff.Edit{Start: p[0], End: p[1], New: text.adapt(in.NewString, p)}
	}
	return edits, nil
}

func ambiguous(path string, text endings, places [][2]int) error {
	const listed = 20
	var lines []int
	for _, p := range places[:min(len(places), listed)] {
		lines = append(lines, 1+bytes.Count(text.raw[:p[0]], []byte{'\n'}))
	}
	return failWith(AmbiguousEdit, map[string]any{"occurrences": len(places), "lines": lines},
		"%s: old_string stands there %d times, in the lines %v; add text around it until it is the only one, or set replace_all",
		shownPath(path), len(places), lines)
}

// revise applies edits. What of the file was seen before is seen after, and so
// is what was put in.
func revise(old []byte, edits []udiff.Edit, seen []span) (r revision, err error) {
	if r.content, err = udiff.ApplyBytes(old, edits); err != nil {
		panic("local: edits that do not fit their text: " + err.Error())
	}
	if bytes.Equal(r.content, old) {
		return r, fail(tools.InvalidArgs, "the file would stay as it is: new_string differs from old_string in nothing but line endings, which follow the file")
	}
	from, shift := int64(0), int64(0)
	keep := func(to int64) {
		for _, s := range seen {
			if a, b := max(s[0], from), min(s[1], to); a < b {
				r.seen = append(r.seen, span{a + shift, b + shift})
			}
		}
	}
	for _, e := range edits {
		start, size := int64(e.Start), int64(len(e.New))
		keep(start)
		r.seen = append(r.seen, span{start + shift, start + shift + size})
		from, shift = int64(e.End), shift+size-int64(e.End-e.Start)
	}
	keep(int64(len(old)))
	return r, nil
}

func renderEdit(_ editArgs, v editValue) []tools.Content {
	times := "once"
	if v.Replacements > 1 {
		times = fmt.Sprintf("%d times", v.Replacements)
	}
	return []tools.Content{tools.Text(fmt.Sprintf("replaced %s in %s\n%s", times, shownPath(v.Path), v.shown()))}
}
