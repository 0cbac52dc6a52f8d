package local

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsh-run/dsh/policy"
)

func TestInternalTranscriptOrder(t *testing.T) {
	whole := func(s string) outputValue { return newOutputValue(portion{int64(len(s)), []byte(s), nil}) }
	for _, c := range []struct {
		claim          string
		stdout, stderr string
		footer         []string
		want           string
	}{
		{"nothing", "", "", nil, ""},
		{"stdout alone", "a\nb\n", "", nil, "a\nb"},
		{"stderr alone has its heading", "", "b\n", nil, "[stderr]\nb"},
		{"a footer alone", "", "", []string{"[exit code: 1]"}, "[exit code: 1]"},
		{"stdout, stderr, footer", "a\n", "b\n", []string{"[x]", "[y]"}, "a\n[stderr]\nb\n[x]\n[y]"},
		{"without line endings too", "a", "b", []string{"[x]"}, "a\n[stderr]\nb\n[x]"},
		{"an empty line at the end stays one", "a\n\n", "b", nil, "a\n\n[stderr]\nb"},
		{"both are rendered as on a screen", "1%\r2%\n", "\x1b[31mred\x1b[0m\n", nil, "2%\n[stderr]\nred"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			text, cutOut, cutErr := transcript{whole(c.stdout), whole(c.stderr), c.footer}.text(4096)
			if text != c.want || cutOut || cutErr {
				t.Errorf("the text is %q, want %q; cut: %t, %t", text, c.want, cutOut, cutErr)
			}
		})
	}
}

// numbered is n lines that tell their numbers.
func numbered(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s line %06d €\n", name, i)
	}
	return b.String()
}

func TestInternalTranscriptIsWithinTheBudget(t *testing.T) {
	const budget = 8 << 10
	path := "/s/spill/bash-stdout-1.txt"
	footer := []string{"[sandbox: file access denied under read-only mode]", "[exit code: 1]"}
	for _, c := range []struct {
		claim          string
		stdout, stderr string
		cutOut, cutErr bool
	}{
		{"both fit", numbered("out", 10), numbered("err", 10), false, false},
		{"stdout is cut", numbered("out", 1000), numbered("err", 10), true, false},
		{"stderr is cut", numbered("out", 10), numbered("err", 1000), false, true},
		{"both are cut", numbered("out", 1000), numbered("err", 1000), true, true},
		{"more than the tail is cut", numbered("out", 10_000), numbered("err", 10_000), true, true},
		{"more than the head is cut", numbered("out", headLimit/20), "", true, false},
	} {
		for _, saved := range []*string{nil, &path} {
			t.Run(fmt.Sprintf("%s, saved: %t", c.claim, saved != nil), func(t *testing.T) {
				var out, err output
				_, _ = out.Write([]byte(c.stdout))
				_, _ = err.Write([]byte(c.stderr))
				tr := transcript{newOutputValue(out.take(true)), newOutputValue(err.take(true)), footer}
				tr.stdout.SpillPath, tr.stderr.SpillPath = saved, saved
				text, cutOut, cutErr := tr.text(budget)
				if len(text) > budget || !utf8.ValidString(text) || cutOut != c.cutOut || cutErr != c.cutErr {
					t.Errorf("the text has %d bytes, valid: %t; cut: %t, %t", len(text), utf8.ValidString(text), cutOut, cutErr)
				}
				if (c.cutOut || c.cutErr) && len(text) < budget-200 {
					t.Errorf("it is cut to %d bytes where %d fit", len(text), budget)
				}
				body, ended := strings.CutSuffix(text, "\n"+strings.Join(footer, "\n"))
				if !ended {
					t.Fatalf("the text ends in %q", text[len(text)-100:])
				}
				shownOut, shownErr, _ := strings.Cut(body, "\n"+stderrHeading)
				checkShown(t, shownOut, c.stdout, c.cutOut, saved)
				checkShown(t, shownErr, c.stderr, c.cutErr, saved)
			})
		}
	}
}

// checkShown fails unless shown is all of a stream, or a notice and the whole
// lines of its end.
func checkShown(t *testing.T, shown, all string, cut bool, saved *string) {
	t.Helper()
	lines := strings.Split(shown, "\n")
	if cut {
		if saved != nil && !strings.Contains(lines[0], *saved) || !strings.Contains(lines[0], fmt.Sprint(len(all))) {
			t.Errorf("the notice is %q, want the path and %d bytes", lines[0], len(all))
		}
		lines = lines[1:]
		if len(lines) == 0 {
			t.Error("nothing of the end is shown")
		}
	}
	rest := strings.TrimSuffix(all, "\n")
	end := strings.Join(lines, "\n")
	if !cut && end != rest || !strings.HasSuffix("\n"+rest, "\n"+end) {
		t.Errorf("%d bytes are shown, which are not the whole lines at the end of %d", len(end), len(rest))
	}
}

func TestInternalTranscriptOfOneLongLineSplitsNoCharacter(t *testing.T) {
	const budget = 1000
	text, cut, _ := transcript{stdout: outputValue{Text: strings.Repeat("€", 5000), Bytes: 15000}}.text(budget)
	_, end, _ := strings.Cut(text, "\n")
	if !cut || len(text) > budget || len(text) < budget-20 || strings.Trim(end, "€") != "" {
		t.Errorf("cut: %t; the text of %d bytes is %q", cut, len(text), text)
	}
}

func TestInternalTranscriptWithoutRoomKeepsTheFooter(t *testing.T) {
	footer := strings.Repeat("[a long marker]", 100)
	text, cut, _ := transcript{stdout: outputValue{Text: numbered("out", 100), Bytes: 2000}, footer: []string{footer}}.text(1000)
	if !cut || !strings.HasSuffix(text, "\n"+footer) || strings.Contains(text, "line") {
		t.Errorf("cut: %t; the text is %q", cut, text)
	}
}

func TestInternalMarkerOrder(t *testing.T) {
	exit := func(n int) *int { return &n }
	denied := policy.Confinement{Mode: policy.ReadOnly, Backend: "landlock", Denied: true, Op: "write", Path: "/x"}
	const (
		denial   = "[sandbox: file access denied"
		hint     = "[to go on: repeat"
		timeout  = "[timed out after 5 ms; it was killed]"
		code     = "[exit code: 3]"
		signal   = "[killed by signal: SIGTERM]"
		leftover = "[2 processes outlived"
	)
	for _, c := range []struct {
		claim    string
		end      ending
		approval policy.Approval
		timedOut bool
		want     []string // starts of the lines
	}{
		{"all is well", ending{exitCode: exit(0)}, policy.Ask, false, nil},
		{"an exit code", ending{exitCode: exit(3)}, policy.Ask, false, []string{code}},
		{"a signal", ending{signal: "SIGTERM"}, policy.Ask, false, []string{signal}},
		{"denial, hint, code", ending{exitCode: exit(3), confinement: denied}, policy.Ask, false, []string{denial, hint, code}},
		{"no hint where nobody is asked", ending{exitCode: exit(3), confinement: denied}, policy.Never, false, []string{denial, code}},
		{"a note beside success", ending{exitCode: exit(0), confinement: denied}, policy.Ask, false, []string{"[note: the sandbox denied a change of /x;"}},
		{"denial, hint, timeout, signal", ending{signal: "SIGTERM", confinement: denied}, policy.Ask, true, []string{denial, hint, timeout, signal}},
		{"denial, hint, timeout, code", ending{exitCode: exit(3), confinement: denied}, policy.Ask, true, []string{denial, hint, timeout, code}},
		{"a timeout and then success", ending{exitCode: exit(0)}, policy.Ask, true, []string{timeout}},
		{"a note, then the timeout", ending{exitCode: exit(0), confinement: denied}, policy.Ask, true, []string{"[note:", timeout}},
		{"leftovers come first", ending{exitCode: exit(3), leftovers: 2, confinement: denied}, policy.Ask, true, []string{leftover, denial, hint, timeout, code}},
		{"one leftover is one", ending{exitCode: exit(0), leftovers: 1}, policy.Ask, false, []string{"[1 process outlived the command and was ended]"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			lines := endMarkers(c.end, c.approval)
			if c.timedOut {
				lines = insertTimeout(lines, c.end, timeout)
			}
			if !slices.EqualFunc(lines, c.want, strings.HasPrefix) {
				t.Errorf("the markers are %q, want %q", lines, c.want)
			}
		})
	}
}
