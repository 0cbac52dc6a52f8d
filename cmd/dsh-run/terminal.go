package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dsh-run/dsh/policy"
)

// What a question on the terminal looks like
//
// It is asked on /dev/tty, never on stdin or stdout, which belong to the
// program and to whoever reads its results. Where there is no terminal it is
// not asked, and nothing is granted.
//
// It shows all that is decided, in one form, and nothing shorter: the tool, who
// calls, every argument, what would change, why, and from which mode to which.
//
// Text that is not ours, a command or a reason, stands behind a gutter: a
// number and |, or : where a long line goes on, or ~ where blank lines are
// counted. No row of it begins at the left edge, so none can pass for one of
// ours. Rows are broken here and not by the terminal. What a terminal would
// hide, obey or confuse is a mark (see visible), in reverse video where the
// terminal has that.
//
// Nothing scrolls away unseen: a long question comes page by page, and the
// prompt only after the last one. When the terminal changes its size the
// question is shown again.
//
// Only y and Enter grant; n and Enter refuse; ? explains; anything else asks
// again. What was typed before a prompt does not answer it. The end of input
// grants nothing. A question that nobody waits for any more says so.

func terminalAnswerer() policy.Answerer {
	return policy.Answerer{Name: "terminal", Answer: askOnTerminal}
}

func askOnTerminal(ctx context.Context, q policy.Question) (outcome policy.Outcome, err error) {
	tty, err := openTerminal(ctx)
	if err != nil {
		return policy.Unavailable, nil
	}
	defer tty.Close()
	d := dialogue{console: tty, style: styleOf(os.Getenv("TERM"), os.Getenv("NO_COLOR"))}
	screen.aside(func() { outcome, err = d.ask(ctx, q) })
	return outcome, err
}

// console is what a dialogue needs of a terminal.
type console interface {
	io.Writer
	// line waits for a line and returns it without its end. An error means
	// that there was no whole line.
	line() (string, error)
	// discard forgets what has been typed.
	discard()
	size() screenSize
}

type screenSize struct{ columns, rows int }

// dialogue puts one question.
type dialogue struct {
	console
	style style
}

var errNoAnswer = errors.New("the terminal's input ended without an answer")

func (d dialogue) ask(ctx context.Context, q policy.Question) (policy.Outcome, error) {
	if ctx.Err() != nil {
		return policy.Unavailable, ctx.Err()
	}
	outcome, err := d.converse(q)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(d, "\nthe question was withdrawn: %s\n", visible(context.Cause(ctx).Error()))
		return policy.Unavailable, ctx.Err()
	case errors.Is(err, io.EOF):
		fmt.Fprint(d, "\nno answer: the input ended; the call is refused\n")
		return policy.Unavailable, errNoAnswer
	}
	return outcome, err
}

const prompt = "allow this one call? [y/n/?] "

func (d dialogue) converse(q policy.Question) (policy.Outcome, error) {
	var shown screenSize
	for {
		if size := d.size(); size != shown {
			shown = size
			refused, err := d.pages(questionRows(q, size.columns, d.style), size.rows)
			if err != nil || refused {
				return refusal(err)
			}
		}
		answer, err := d.prompt(prompt)
		switch {
		case err != nil || answer == "n":
			return refusal(err)
		case answer == "y" && d.size() == shown:
			return policy.AllowedOnce, nil
		case answer == "?":
			err = d.rows(helpRows(q, shown.columns))
		}
		if err != nil {
			return policy.Unavailable, err
		}
	}
}

func refusal(err error) (policy.Outcome, error) {
	if err != nil {
		return policy.Unavailable, err
	}
	return policy.Rejected, nil
}

// prompt asks for one line, which can only have been typed after it was asked.
// It returns y or n for any way to say so.
func (d dialogue) prompt(text string) (string, error) {
	d.discard()
	if _, err := io.WriteString(d, text); err != nil {
		return "", err
	}
	answer, err := d.line()
	switch answer = strings.ToLower(strings.TrimSpace(answer)); answer {
	case "yes":
		answer = "y"
	case "no":
		answer = "n"
	}
	return answer, err
}

// pages shows rows as far as they fit, and the next ones when asked to. It
// reports whether the question was refused before its end was seen.
func (d dialogue) pages(rows []string, height int) (refused bool, err error) {
	fit := max(height-2, 1)
	for from := 0; ; {
		to := min(from+fit, len(rows))
		if err := d.rows(rows[from:to]); err != nil || to == len(rows) {
			return false, err
		}
		more, err := d.more(to, len(rows))
		if err != nil || !more {
			return !more, err
		}
		from = to
	}
}

// more waits until the next page is wanted.
func (d dialogue) more(shown, all int) (bool, error) {
	for {
		answer, err := d.prompt(fmt.Sprintf("-- %d of %d rows; more: Enter; n refuses -- ", shown, all))
		switch {
		case err != nil || answer == "n":
			return false, err
		case answer == "":
			return true, nil
		}
	}
}

func (d dialogue) rows(rows []string) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := io.WriteString(d, d.style.calm+strings.Join(rows, "\n")+"\n")
	return err
}

// style is what a terminal can do.
type style struct {
	// mark and unmark surround a mark; calm ends what others may have left on,
	// such as text without a colour.
	mark, unmark, calm string
}

func styleOf(term, noColor string) style {
	switch {
	case term == "" || term == "dumb":
		return style{}
	case noColor != "":
		return style{calm: "\x1b(B\x1b[m"}
	default:
		return style{mark: "\x1b[7m", unmark: "\x1b[27m", calm: "\x1b(B\x1b[m"}
	}
}
