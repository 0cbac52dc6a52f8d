package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dsh-run/dsh/policy"
)

// questionRows is all that is decided, in rows that fit.
func questionRows(q policy.Question, columns int, style style) []string {
	s := newSheet(columns, style)
	s.rows = append(s.rows, "")
	s.fact("-- a call of " + visible(q.Tool) + " needs your answer --")
	s.caller(q.Caller)
	s.arguments(q)
	if q.Preview != "" {
		s.block("what it would change", diffText(q.Preview))
	}
	s.reason(q)
	for _, fact := range permissionFacts(q) {
		s.fact(fact)
	}
	return s.rows
}

// diffText is a diff whose empty lines do not end in the space that stands
// before what both sides have.
func diffText(preview string) string {
	lines := strings.Split(strings.TrimSuffix(preview, "\n"), "\n")
	for i, line := range lines {
		if line == " " {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

func (s *sheet) caller(c policy.Caller) {
	s.fact("caller: " + visible(callerText(c)))
	if c.Source != "" {
		s.block("its line", c.Source)
	}
}

func callerText(c policy.Caller) string {
	switch c.Kind {
	case policy.Direct:
		return "a direct call"
	case policy.Client:
		return "a client, which is another process"
	case policy.Program:
		return programText(c)
	default:
		return string(c.Kind)
	}
}

func programText(c policy.Caller) string {
	name := c.Program
	if name == "" {
		name = "the program"
	}
	if c.Line == 0 {
		return name
	}
	return fmt.Sprintf("%s line %d", name, c.Line)
}

func (s *sheet) reason(q policy.Question) {
	switch {
	case q.Reason == "":
		s.fact("reason: none was given")
	case q.Widens():
		s.block("its justification", q.Reason)
	default:
		s.block("why you are asked", q.Reason)
	}
}

func permissionFacts(q policy.Question) []string {
	facts := []string{fmt.Sprintf("sandbox: stays %s", q.Mode)}
	if q.Widens() {
		facts = []string{fmt.Sprintf("sandbox: from %s to %s, for this call only", q.Mode, q.To)}
	}
	if q.Confined {
		facts = append(facts, "confined: yes, the sandbox governs what this tool changes")
	} else {
		facts = append(facts, "confined: NO, this tool runs with its own rights")
	}
	if q.Denied != "" {
		facts = append(facts, "denied before: yes, by the sandbox, in call "+visible(q.Denied))
	} else if q.Widens() {
		facts = append(facts, "denied before: no earlier denial of this call is in the log")
	}
	return facts
}

// argument is one argument as it is shown: a string as its text, anything else
// as JSON.
type argument struct{ name, text string }

func (s *sheet) arguments(q policy.Question) {
	for _, a := range argumentsOf(q) {
		s.block(a.name, a.text)
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,39}$`)

// argumentsOf returns all arguments, the telling ones first. Those of a
// widening are shown as sandbox and justification.
func argumentsOf(q policy.Question) []argument {
	var members map[string]json.RawMessage
	if json.Unmarshal(q.Args, &members) != nil {
		return []argument{{"arguments", string(q.Args)}}
	}
	var list []argument
	for name, value := range members {
		switch {
		case !plainName.MatchString(name):
			return []argument{{"arguments", string(q.Args)}}
		case q.Widens() && (name == "sandbox_permissions" || name == "justification"):
		default:
			list = append(list, argument{"argument " + name, argumentText(value)})
		}
	}
	slices.SortFunc(list, func(a, b argument) int {
		if first := leads(b.name) - leads(a.name); first != 0 {
			return first
		}
		return strings.Compare(a.name, b.name)
	})
	return list
}

func leads(name string) int {
	switch name {
	case "argument command", "argument file_path", "argument path":
		return 1
	}
	return 0
}

func argumentText(value json.RawMessage) string {
	var text string
	if bytes.HasPrefix(value, []byte{'"'}) && json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

func helpRows(q policy.Question, columns int) []string {
	s := newSheet(columns, style{})
	s.fact("y: run exactly this call, once. n: refuse it; the caller is told, and that it is final.")
	if q.Widens() {
		s.fact(fmt.Sprintf("With y the call runs in %s; later calls stay in %s.", q.To, q.Mode))
	}
	s.fact(`Marks: \e \t \r \u{...} \x{...} are characters that do not show, or look like others; \s{8} are 8 spaces; \\e is the text \e.`)
	return s.rows
}
