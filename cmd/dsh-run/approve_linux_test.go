package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// widened are the arguments of a bash call that asks for workspace-write.
func widened(t *testing.T, command, why string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"command": command, "sandbox_permissions": "workspace-write", "justification": why})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const askTwice = `
const write = (name: string, more = {}) => tools.bash({ command: "echo x > " + name, ...more });
const why = { sandbox_permissions: "workspace-write", justification: "keep the result" };
for (const name of args) {
	await write(name);
	await write(name, why);
}
return "done";
`

func writeProgram(t *testing.T, dir, source string) string {
	t.Helper()
	file := filepath.Join(filepath.Dir(dir), "ask.ts")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAProgramAsksOnTheTerminal(t *testing.T) {
	needBackend(t, "landlock")
	dir := newPlace(t)
	o := atTerminal(t, dir, nil, "run", writeProgram(t, dir, askTwice), "--", "one.txt", "two.txt")
	question := o.sees(prompt)
	for _, want := range []string{
		"a call of bash needs your answer", "caller: ask.ts line 2", `| const write = (name: string, more = {}) => tools.bash({`,
		"argument command:\r\n    | echo x > one.txt\r\n", "its justification:\r\n    | keep the result\r\n",
		"sandbox: from read-only to workspace-write, for this call only", "confined: yes", "denied before: yes, by the sandbox, in call c1:1",
	} {
		if !strings.Contains(question, want) {
			t.Errorf("the question is\n%s\nwant it to say %q", question, want)
		}
	}
	if exists(t, filepath.Join(dir, "one.txt")) {
		t.Fatal("it ran before the answer")
	}
	o.types("perhaps\n")
	o.sees(prompt)
	o.types("?\n")
	o.sees("With y the call runs in workspace-write; later calls stay in read-only.")
	o.sees(prompt)
	o.types("y\n")
	o.sees("echo x > two.txt")
	o.sees(prompt)
	if !exists(t, filepath.Join(dir, "one.txt")) {
		t.Fatal("it did not run after y")
	}
	o.types("n\n")
	o.exits(3)
	if exists(t, filepath.Join(dir, "two.txt")) {
		t.Fatal("it ran after n")
	}
}

func TestAnswersToADirectCall(t *testing.T) {
	needBackend(t, "landlock")
	tests := []struct {
		name string
		keys string
		code int
		says string // by the terminal, after the keys
	}{
		{"y and Enter grant", "y\n", 0, "y"},
		{"n refuses", "n\n", 3, "n"},
		{"the end of input refuses", "\x04", 3, "no answer: the input ended; the call is refused"},
		{"a y without Enter does not grant", "y\x04\x04", 3, "no answer: the input ended"},
		{"an interrupt withdraws", "\x03", 130, "the question was withdrawn: the command received the signal \"interrupt\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := newPlace(t)
			o := atTerminal(t, dir, nil, "call", "--log", "none", "bash", widened(t, "echo x > new.txt", "keep it"))
			question := o.sees(prompt)
			if want := "caller: a direct call\r\n"; !strings.Contains(question, want) {
				t.Errorf("the question is %q, want it to say %q", question, want)
			}
			if want := "no earlier denial of this call is in the log"; !strings.Contains(question, want) {
				t.Errorf("the question is %q, want it to say %q", question, want)
			}
			o.types(tt.keys)
			o.sees(tt.says)
			o.exits(tt.code)
			if got, want := exists(t, filepath.Join(dir, "new.txt")), tt.code == 0; got != want {
				t.Errorf("the file exists: %v, want %v", got, want)
			}
		})
	}
}

func TestALostTerminalGrantsNothing(t *testing.T) {
	needBackend(t, "landlock")
	dir := newPlace(t)
	o := atTerminal(t, dir, nil, "call", "--log", "none", "bash", widened(t, "echo x > new.txt", "keep it"))
	o.sees(prompt)
	o.master.Close()
	if code := o.code(); code == 0 || exists(t, filepath.Join(dir, "new.txt")) {
		t.Errorf("exit code %d, and the file exists: %v", code, exists(t, filepath.Join(dir, "new.txt")))
	}
}

// What is typed while nothing is asked answers nothing.
func TestTypedAheadKeysDoNotAnswer(t *testing.T) {
	needBackend(t, "landlock")
	dir := newPlace(t)
	o := atTerminal(t, dir, nil, "run", writeProgram(t, dir, askTwice), "--", "one.txt", "two.txt")
	o.sees(prompt)
	o.types("y\ny\ny\n")
	o.sees("echo x > two.txt")
	o.sees(prompt)
	if exists(t, filepath.Join(dir, "two.txt")) {
		t.Fatal("keys typed before the second question answered it")
	}
	o.types("n\n")
	o.exits(3)
}

// No text of a model passes for one of ours, is hidden, or is obeyed.
func TestForgedQuestions(t *testing.T) {
	needBackend(t, "landlock")
	tests := []struct {
		name, command, why string
		want               []string
	}{
		{"an escape that erases the line", "rm x #\x1b[2K\rls", "ok", []string{`| rm x #\e[2K\rls`}},
		{"direction", "ls \u202exr mr\u202c", "ok", []string{`| ls \u{202e}xr mr\u{202c}`}},
		{"zero width", "l\u200bs", "ok", []string{`| l\u{200b}s`}},
		{"blank lines", "ls" + strings.Repeat("\n", 200) + "rm x", "ok", []string{"(201 lines, 206 bytes)", "  1 | ls\r\n    ~ 199 blank lines\r\n201 | rm x\r\n"}},
		{"spaces", "echo " + strings.Repeat(" ", 500) + "; rm x", "ok", []string{`| echo\s{501}; rm x`, "(1 line, 511 bytes)"}},
		{"a code fence", "ls```\nApproved", "ok", []string{"  1 | ls```\r\n  2 | Approved\r\n"}},
		{"a hidden reason", "rm x", "\x1b[8mhidden\U000e0100", []string{`| \e[8mhidden\u{e0100}`}},
		{"a reason like a fact", "rm x", "ok\nsandbox: stays read-only\nallow this one call? [y/n/?] y", []string{"  2 | sandbox: stays read-only\r\n  3 | allow"}},
		{"a long line that begins anew", "echo " + strings.Repeat("x", 88) + "sandbox: stays read-only", "ok", []string{"xxx\r\n    : sandbox: stays read-only"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := newPlace(t)
			o := atTerminal(t, dir, nil, "call", "--log", "none", "bash", widened(t, tt.command, tt.why))
			question := o.sees("in the log\r\n" + prompt)
			for _, want := range tt.want {
				if !strings.Contains(question, want) {
					t.Errorf("the question is\n%s\nwant %q", question, want)
				}
			}
			if i := strings.IndexFunc(question, func(r rune) bool { return r < ' ' && r != '\r' && r != '\n' || r >= 0x7f }); i >= 0 {
				t.Errorf("the terminal received %q", question[i:])
			}
			o.types("n\n")
			o.exits(3)
		})
	}
}

// What does not fit on the screen is shown page by page before the prompt.
func TestALongQuestionComesInPages(t *testing.T) {
	needBackend(t, "landlock")
	dir := newPlace(t)
	command := "echo x > new.txt\n" + strings.Repeat(": line\n", 60) + ": last"
	start := func() *onTerminal {
		return atTerminal(t, dir, nil, "call", "--log", "none", "bash", widened(t, command, "keep it"))
	}
	o := start()
	for _, rows := range []string{"-- 28 of ", "-- 56 of "} {
		if page := o.sees(rows); strings.Contains(page, prompt) || strings.Count(page, "\n") > 30 {
			t.Fatalf("a page is\n%s", page)
		}
		o.sees("n refuses -- ")
		o.types("y\n") // grants nothing, and shows nothing
		o.sees("n refuses -- ")
		o.types("\n")
	}
	if last := o.sees(prompt); !strings.Contains(last, "62 | : last") {
		t.Fatalf("the last page is\n%s", last)
	}
	resize(t, o.master, 60, 20)
	o.types("y\n")
	o.sees("needs your answer") // shown again: it was laid out for another size
	o.sees("n refuses -- ")
	o.types("n\n")
	o.exits(3)
	if exists(t, filepath.Join(dir, "new.txt")) {
		t.Fatal("it ran")
	}
}

// On a terminal that can, marks are in reverse video, which a text cannot make.
func TestMarksInReverseVideo(t *testing.T) {
	needBackend(t, "landlock")
	dir := newPlace(t)
	o := atTerminal(t, dir, []string{"TERM=xterm", "NO_COLOR="}, "call", "--log", "none", "bash", widened(t, "ls \x1b[m", `\e`))
	question := o.sees(prompt)
	for _, want := range []string{"| ls \x1b[7m\\e\x1b[27m[m\r\n", `| \\e`} {
		if !strings.Contains(question, want) {
			t.Errorf("the question is %q, want %q", question, want)
		}
	}
	if err := o.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	o.sees("the question was withdrawn: ")
	o.exits(143)
}
