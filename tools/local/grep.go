package local

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dsh-run/dsh/tools"
)

//go:embed grep.md
var grepDescription string

type grepArgs struct {
	Pattern    string `json:"pattern" jsonschema:"a regular expression in RE2 syntax, compared with one line at a time"`
	Path       string `json:"path,omitempty" jsonschema:"the file or directory to search, taken literally; the working directory by default"`
	Include    string `json:"include,omitempty" jsonschema:"a glob of the files to search, such as *.go or src/**/*.{ts,tsx}"`
	Context    int    `json:"context,omitempty" jsonschema:"how many lines to give before and after each match; 0 by default, at most 100"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"match letters of either case"`
	Mode       string `json:"mode,omitempty" jsonschema:"regex (the default) or literal, which takes the pattern as plain text"`
	Hidden     bool   `json:"hidden,omitempty" jsonschema:"also search files and directories whose names begin with a dot"`
	NoIgnore   bool   `json:"no_ignore,omitempty" jsonschema:"also search what ignore files leave out"`
}

type grepValue struct {
	// Root is the directory that paths start at.
	Root          string      `json:"root"`
	Matches       []grepMatch `json:"matches"`
	FilesSearched int         `json:"files_searched"`
	SkippedBinary int         `json:"skipped_binary"`
	// Truncated says that Matches holds not all of the TotalMatches.
	Truncated    bool `json:"truncated,omitempty"`
	TotalMatches int  `json:"total_matches"`
	// Unreadable is the number of files and directories that could not be read.
	Unreadable int `json:"unreadable,omitempty"`
}

type grepMatch struct {
	Path       string `json:"path"`
	PathBytes  string `json:"path_bytes,omitempty"`
	LineNumber int    `json:"line_number"`
	Line       string `json:"line"`
	// Clipped says that Line is the part of a longer line around the match.
	Clipped bool     `json:"clipped"`
	Before  []string `json:"before"`
	After   []string `json:"after"`
}

func (s *Set) grepTool() tools.Tool {
	return tools.New(tools.Tool{
		Name: "grep", Description: grepDescription, Render: tools.Renderer(renderGrep),
		Overlaps: always, Effect: tools.NoEffect, Idempotent: true,
	}, s.grep)
}

const maxContext = 100

func (s *Set) grep(ctx context.Context, call *tools.Call, in grepArgs) (v grepValue, err error) {
	switch {
	case in.Mode != "" && in.Mode != "regex" && in.Mode != "literal":
		return v, fail(tools.InvalidArgs, "mode is %q; want regex or literal", in.Mode)
	case in.Context < 0 || in.Context > maxContext:
		return v, fail(tools.InvalidArgs, "context is %d; want 0 to %d", in.Context, maxContext)
	case in.Pattern == "":
		return v, fail(tools.InvalidArgs, "the pattern is empty")
	}
	m, err := newMatcher(in.Pattern, in.Mode == "literal", in.IgnoreCase)
	if err != nil {
		return v, err
	}
	t, err := s.resolve(call, cmp.Or(in.Path, "."))
	if err != nil {
		return v, err
	}
	if !t.exists() {
		return v, notFound(in.Path, t)
	}
	g := &grepping{matcher: m, context: in.Context}
	if t.info.IsDir() {
		err = g.tree(ctx, t.path, in)
	} else {
		err = g.one(ctx, t)
	}
	if err != nil {
		return v, err
	}
	v = g.value()
	if v.Root, _ = nameText(t.path); !t.info.IsDir() {
		v.Root, _ = nameText(filepath.Dir(t.path))
	}
	return v, nil
}

const (
	grepShown      = 250
	grepShownBytes = 47 << 10 // less than the default of what is spilled
)

func renderGrep(in grepArgs, v grepValue) []tools.Content {
	var b strings.Builder
	shown, last := 0, ""
	for _, m := range v.Matches {
		text := m.shown(m.Path != last)
		if shown == grepShown || b.Len()+len(text) > grepShownBytes {
			break
		}
		b.WriteString(text)
		shown, last = shown+1, m.Path
	}
	fmt.Fprintf(&b, "[%s]", v.summary(in, shown))
	return []tools.Content{tools.Text(b.String())}
}

// shown is the match as a model sees it, under the name of its file.
func (m grepMatch) shown(named bool) string {
	var b strings.Builder
	if named {
		b.WriteString(shownPath(m.Path) + "\n")
	}
	for i, l := range m.Before {
		fmt.Fprintf(&b, "%6d- %s\n", m.LineNumber-len(m.Before)+i, l)
	}
	clipped := ""
	if m.Clipped {
		clipped = " [part of a longer line]"
	}
	fmt.Fprintf(&b, "%6d: %s%s\n", m.LineNumber, m.Line, clipped)
	for i, l := range m.After {
		fmt.Fprintf(&b, "%6d- %s\n", m.LineNumber+1+i, l)
	}
	if len(m.Before)+len(m.After) > 0 {
		b.WriteString("--\n")
	}
	return b.String()
}

func (v grepValue) summary(in grepArgs, shown int) string {
	parts := []string{fmt.Sprintf("%d matches", v.TotalMatches)}
	switch {
	case v.TotalMatches == 0:
		parts[0] = "no match"
	case shown < v.TotalMatches:
		parts[0] = fmt.Sprintf("the first %d of %d matches; narrow the pattern, the path or include to see the rest", shown, v.TotalMatches)
	}
	parts[0] += fmt.Sprintf(" in %s; %d files searched", shownPath(v.Root), v.FilesSearched)
	if v.SkippedBinary > 0 {
		parts = append(parts, fmt.Sprintf("%d binary files skipped", v.SkippedBinary))
	}
	if v.Unreadable > 0 {
		parts = append(parts, fmt.Sprintf("%d could not be read", v.Unreadable))
	}
	if v.TotalMatches == 0 && !(in.Hidden && in.NoIgnore) {
		parts = append(parts, "hidden and ignored files were left out unless asked for with hidden and no_ignore")
	}
	return strings.Join(parts, "; ")
}
