package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
)

// typist is a terminal at which lines are typed, each when one is asked for.
type typist struct {
	strings.Builder
	lines []string
	rows  int
	atEnd func() error
}

func (c *typist) line() (string, error) {
	if len(c.lines) == 0 {
		return "", c.atEnd()
	}
	line := c.lines[0]
	c.lines = c.lines[1:]
	return line, nil
}

func (c *typist) discard() {}

func (c *typist) size() screenSize { return screenSize{80, c.rows} }

func TestOnlyAnExplicitYesGrants(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		rows  int
		want  policy.Outcome
	}{
		{"y", []string{"y"}, 24, policy.AllowedOnce},
		{"yes in any case, with spaces", []string{" Yes "}, 24, policy.AllowedOnce},
		{"n", []string{"n"}, 24, policy.Rejected},
		{"anything else asks again", []string{"", "yy", "ok", "1", "true", "n"}, 24, policy.Rejected},
		{"a question for help asks again", []string{"?", "y"}, 24, policy.AllowedOnce},
		{"the end of input", nil, 24, policy.Unavailable},
		{"n on the first page", []string{"n", "y"}, 5, policy.Rejected},
		{"y on the first page does not count", []string{"y"}, 5, policy.Unavailable},
		{"the end of input on the first page", nil, 5, policy.Unavailable},
		{"y after all pages", []string{"", "", "", "y"}, 5, policy.AllowedOnce},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &typist{lines: tt.lines, rows: tt.rows, atEnd: func() error { return io.EOF }}
			q := policy.Question{Tool: "bash", Args: []byte(`{"command":"ls"}`), To: policy.WorkspaceWrite, Confined: true, Reason: "look"}
			got, err := dialogue{console: c}.ask(t.Context(), q)
			if got != tt.want {
				t.Errorf("the outcome is %v (%v), want %v\n%s", got, err, tt.want, c)
			}
			if ended := err != nil; ended != (tt.want == policy.Unavailable) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// A question whose call has ended says so, and grants nothing that was typed
// at that moment.
func TestAQuestionIsWithdrawn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &typist{rows: 24, lines: []string{"?"}}
	c.atEnd = func() error {
		cancel(fmt.Errorf("the call\x1b took too long"))
		return errors.New("the terminal was left")
	}
	got, err := dialogue{console: c}.ask(ctx, policy.Question{Tool: "bash"})
	if got != policy.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("the outcome is %v, %v", got, err)
	}
	if want := "\nthe question was withdrawn: the call\\e took too long\n"; !strings.HasSuffix(c.String(), want) {
		t.Errorf("the terminal shows %q, want %q", c, want)
	}
	again := &typist{rows: 24, lines: []string{"y"}}
	if got, _ := (dialogue{console: again}).ask(ctx, policy.Question{Tool: "bash"}); got != policy.Unavailable || again.Len() > 0 {
		t.Errorf("a question of a call that has ended: %v, %q", got, again)
	}
}

func TestStyles(t *testing.T) {
	tests := []struct {
		name, term, noColor string
		marks, calms        bool
	}{
		{"a terminal with colour", "xterm", "", true, true},
		{"no colour is wanted", "xterm", "1", false, true},
		{"a dumb terminal", "dumb", "", false, false},
		{"an unknown terminal", "", "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := styleOf(tt.term, tt.noColor)
			if (s.mark != "") != tt.marks || (s.unmark != "") != tt.marks || (s.calm != "") != tt.calms {
				t.Errorf("the style is %+q", s)
			}
		})
	}
}
