package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dsh-run/dsh/policy"
)

// What a question on the terminal looks like
//
// It is asked on /dev/tty, never on stdin or stdout, which belong to the
// program and to whoever reads its results. It shows all that is being decided:
// the tool, its exact arguments, from which mode to which, why, and who calls.
// Text that came from a model is shown with everything invisible made visible.
// Only y grants; n and the end of input refuse; ? explains. It never answers
// itself.

const terminalPath = "/dev/tty"

func haveTerminal() bool {
	tty, err := os.OpenFile(terminalPath, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

func terminalAnswerer() policy.Answerer {
	return policy.Answerer{Name: "terminal", Answer: askOnTerminal}
}

func askOnTerminal(ctx context.Context, q policy.Question) (outcome policy.Outcome, err error) {
	tty, err := os.OpenFile(terminalPath, os.O_RDWR, 0)
	if err != nil {
		return policy.Unavailable, nil
	}
	defer tty.Close()
	defer context.AfterFunc(ctx, func() { tty.Close() })()
	screen.aside(func() { outcome, err = ask(tty, q) })
	return outcome, err
}

func ask(tty io.ReadWriter, q policy.Question) (policy.Outcome, error) {
	if _, err := io.WriteString(tty, questionText(q)); err != nil {
		return policy.Unavailable, err
	}
	lines := bufio.NewScanner(tty)
	for {
		if _, err := io.WriteString(tty, "allow this one call? [y/n/?] "); err != nil {
			return policy.Unavailable, err
		}
		if !lines.Scan() {
			return policy.Unavailable, lines.Err()
		}
		switch strings.ToLower(strings.TrimSpace(lines.Text())) {
		case "y", "yes":
			return policy.AllowedOnce, nil
		case "n", "no":
			return policy.Rejected, nil
		case "?":
			if _, err := io.WriteString(tty, answerHelp(q)); err != nil {
				return policy.Unavailable, err
			}
		}
	}
}

func questionText(q policy.Question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s wants to run %s\n", callerText(q.Caller), visible(q.Tool))
	for _, line := range argumentLines(q.Args) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if q.Widens() {
		fmt.Fprintf(&b, "  sandbox: from %s to %s\n", q.Mode, q.To)
		if q.Denied != "" {
			fmt.Fprintf(&b, "  the sandbox denied this in call %s\n", q.Denied)
		} else {
			b.WriteString("  no earlier denial of this call is in the log\n")
		}
	} else {
		fmt.Fprintf(&b, "  sandbox: %s\n", q.Mode)
	}
	if !q.Confined {
		b.WriteString("  this tool is not confined by the sandbox\n")
	}
	fmt.Fprintf(&b, "  reason: %s\n", visible(q.Reason))
	return b.String()
}

func callerText(c policy.Caller) string {
	if c.Kind == policy.Program && c.Line > 0 {
		return fmt.Sprintf("the program, line %d,", c.Line)
	}
	if c.Kind == policy.Program {
		return "the program"
	}
	return "a " + string(c.Kind) + " call"
}

// argumentLines shows each argument in full, its own lines indented.
func argumentLines(args json.RawMessage) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return []string{visible(string(args))}
	}
	var names []string
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	var lines []string
	for _, name := range names {
		if name == "sandbox_permissions" || name == "justification" {
			continue
		}
		text := string(members[name])
		if s := ""; json.Unmarshal(members[name], &s) == nil {
			text = s
		}
		for i, line := range strings.Split(text, "\n") {
			label := visible(name) + ": "
			if i > 0 {
				label = strings.Repeat(" ", len(label))
			}
			lines = append(lines, label+visible(line))
		}
	}
	return lines
}

func answerHelp(q policy.Question) string {
	text := "  y: run exactly this call, once. n: refuse it; the caller is told.\n"
	if q.Widens() {
		text += fmt.Sprintf("  The call would run in %s; later calls stay in %s.\n", q.To, q.Mode)
	}
	return text
}

// visible escapes what a terminal would hide or obey: control characters,
// direction marks and other characters without a shape.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == unicode.ReplacementChar, r == '\t':
			b.WriteString(strings.Trim(strconv.QuoteToASCII(string(r)), `"`))
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs),
			unicode.IsSpace(r) && r != ' ':
			b.WriteString(strings.Trim(strconv.QuoteToASCII(string(r)), `"`))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
