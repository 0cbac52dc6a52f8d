package ptc

import (
	"encoding/json"
	"fmt"
	"strings"
)

// render is what a model sees of a run: the printed lines, then the value or
// the failure.
func render(r Report) string {
	var b strings.Builder
	for _, line := range r.Logs {
		b.WriteString(line.Text)
		b.WriteByte('\n')
	}
	if r.LogsTrimmed > 0 {
		fmt.Fprintf(&b, "[%d printed lines were left out in the middle]\n", r.LogsTrimmed)
	}
	switch {
	case r.Failure != nil:
		renderFailure(&b, r)
	case r.Value == nil:
		b.WriteString("[the program returned nothing]\n")
	default:
		b.WriteString(valueText(r.Value))
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// valueText is a string as it is, and anything else as JSON.
func valueText(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil && len(value) > 0 && value[0] == '"' {
		return s
	}
	return string(value)
}

func renderFailure(b *strings.Builder, r Report) {
	f := r.Failure
	fmt.Fprintf(b, "[program failed: %s", f.Kind)
	if f.Clock != "" {
		fmt.Fprintf(b, " (%s clock)", f.Clock)
	}
	if f.Line > 0 {
		fmt.Fprintf(b, " at line %d, column %d", f.Line, f.Column)
	}
	fmt.Fprintf(b, "]\n%s\n", f.Message)
	if f.Stack != "" {
		b.WriteString(f.Stack + "\n")
	}
	if len(r.Effects) == 0 {
		return
	}
	if r.SafeToRetry {
		b.WriteString("[nothing was changed; the program can be run again]\n")
		return
	}
	b.WriteString("[calls that may have changed something:")
	for _, e := range r.Effects {
		fmt.Fprintf(b, " %s %s %s;", e.ID, e.Tool, e.State)
	}
	b.WriteString(" look before running the program again]\n")
}
