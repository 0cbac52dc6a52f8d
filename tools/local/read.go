package local

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

//go:embed read.md
var readDescription string

//go:embed read_value.json
var readOutput string

type readArgs struct {
	FilePath   string `json:"file_path" jsonschema:"the file; a relative path starts at the working directory"`
	Offset     int    `json:"offset,omitempty" jsonschema:"the first line to read, from 1"`
	Limit      int    `json:"limit,omitempty" jsonschema:"how many lines to read; 2000 by default"`
	ByteOffset *int64 `json:"byte_offset,omitempty" jsonschema:"start at this byte, from 0, instead of at a line; for going on inside a long line"`
}

// readValue is what read returns of a text file.
type readValue struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	Lines     []line `json:"lines"`
	// TotalLines is null for a file over 256 MiB, which is not counted.
	TotalLines *int `json:"total_lines"`
	// Truncated says that something behind the start of the window is missing.
	Truncated bool `json:"truncated"`
	// NextOffset is the line to go on with, NextByteOffset the byte; at most
	// one of them is set.
	NextOffset     int      `json:"next_offset,omitempty"`
	NextByteOffset int64    `json:"next_byte_offset,omitempty"`
	Notes          []string `json:"notes,omitempty"`
}

type line struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
	// RestOffset is the byte at which what was cut off this line begins.
	RestOffset int64 `json:"rest_offset,omitempty"`
}

func (s *Set) fileTools() []tools.Tool {
	return []tools.Tool{s.readTool(), s.writeTool(), s.editTool()}
}

func (s *Set) readTool() tools.Tool {
	return tools.New(tools.Tool{
		Name: "read", Description: readDescription, Output: json.RawMessage(readOutput),
		Render: renderRead, Overlaps: always, Effect: tools.NoEffect, Idempotent: true,
	}, s.read)
}

func always(json.RawMessage) bool { return true }

func (s *Set) read(ctx context.Context, call *tools.Call, in readArgs) (any, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	st, err := s.of(call.Session)
	if err != nil {
		return nil, err
	}
	t, err := s.resolve(call, in.FilePath)
	if err != nil {
		return nil, err
	}
	if !t.exists() {
		if err := st.seen.sawAbsent(t.path); err != nil {
			return nil, err
		}
		return nil, notFound(in.FilePath, t)
	}
	f, err := openFile(t)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, osFailure(t.path, err)
	}
	head = head[:n]
	if picture, err := readImage(ctx, call, f, head, t.path, st.seen); picture != nil || err != nil {
		return picture, err
	}
	w := newWindow(in, call.Caller.Kind == policy.Program)
	v, err := w.read(ctx, f, io.MultiReader(bytes.NewReader(head), f), t.path)
	if err != nil {
		return nil, err
	}
	value := w.value(t.path)
	if v == nil {
		return value, nil
	}
	return value, st.seen.saw(t.path, *v, w.seen...)
}

func (in readArgs) check() error {
	switch {
	case in.Offset < 0:
		return fail(tools.InvalidArgs, "offset is %d; lines are numbered from 1", in.Offset)
	case in.Limit < 0:
		return fail(tools.InvalidArgs, "limit is %d; want at least 1", in.Limit)
	case in.ByteOffset != nil && *in.ByteOffset < 0:
		return fail(tools.InvalidArgs, "byte_offset is %d; bytes are numbered from 0", *in.ByteOffset)
	case in.ByteOffset != nil && in.Offset > 0:
		return fail(tools.InvalidArgs, "offset and byte_offset exclude each other")
	}
	return nil
}

// renderRead shows a model the value of a read; of a larger one, which a
// program got, it shows as much as a model gets.
func renderRead(args, value json.RawMessage) []tools.Content {
	var probe struct{ Mime string }
	if json.Unmarshal(value, &probe) == nil && probe.Mime != "" {
		return tools.Renderer(func(_ readArgs, v imageValue) []tools.Content {
			return []tools.Content{tools.Text(fmt.Sprintf("%s: %s, %d x %d, %d bytes", shownPath(v.Path), v.Mime, v.Width, v.Height, v.Bytes))}
		})(args, value)
	}
	return tools.Renderer(func(in readArgs, v readValue) []tools.Content {
		return []tools.Content{tools.Text(shownLines(in, v))}
	})(args, value)
}

func shownLines(in readArgs, v readValue) string {
	lines, cut := modelLimits(in).fit(v.Lines)
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%6d\t%s", l.Number, l.Text)
		if l.RestOffset > 0 {
			fmt.Fprintf(&b, " [line cut; its rest: byte_offset %d]", l.RestOffset)
		}
		b.WriteByte('\n')
	}
	if cut {
		fmt.Fprintf(&b, "[cut here for display, after %d of the %d lines that were returned]\n", len(lines), len(v.Lines))
	}
	b.WriteString(v.footer(in))
	return b.String()
}

// footer says what the lines are of, and how to go on.
func (v readValue) footer(in readArgs) string {
	of := "a file that is too large to count its lines"
	if v.TotalLines != nil {
		of = fmt.Sprintf("%d", *v.TotalLines)
	}
	where := "no lines"
	if n := len(v.Lines); n > 0 {
		where = fmt.Sprintf("lines %d-%d", v.Lines[0].Number, v.Lines[n-1].Number)
	} else if v.TotalLines != nil && *v.TotalLines == 0 {
		return strings.Join(append([]string{"[the file is empty]"}, v.notes()...), "\n")
	} else if in.Offset > 1 && !v.Truncated {
		where = fmt.Sprintf("nothing from line %d on", in.Offset)
	}
	next := "end of file"
	switch {
	case v.NextOffset > 0:
		next = fmt.Sprintf("go on with offset %d", v.NextOffset)
	case v.NextByteOffset > 0:
		next = fmt.Sprintf("go on with byte_offset %d", v.NextByteOffset)
	}
	return strings.Join(append([]string{fmt.Sprintf("[%s of %s; %s]", where, of, next)}, v.notes()...), "\n")
}

func (v readValue) notes() []string {
	notes := make([]string, len(v.Notes))
	for i, n := range v.Notes {
		notes[i] = "[" + n + "]"
	}
	return notes
}
