package main

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-run/dsh/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The text of a question changes only on purpose.
func TestQuestionTexts(t *testing.T) {
	program := policy.Caller{Kind: policy.Program, Program: "release.ts", Line: 12, Column: 7, Source: "await tools.bash({ command: make(target) });"}
	questions := []struct {
		name string
		q    policy.Question
	}{
		{"A program's command that the sandbox denied.", policy.Question{
			Tool: "bash", Args: json.RawMessage(`{"timeout_ms":5000,"command":"make install","sandbox_permissions":"danger-full-access","justification":"installs into /usr/local"}`),
			Caller: program, Reason: "installs into /usr/local", Mode: policy.WorkspaceWrite, To: policy.DangerFullAccess, Confined: true, Denied: "c1:3",
		}},
		{"An edit with its diff.", policy.Question{
			Tool: "edit", Args: json.RawMessage(`{"file_path":"a.go","old_string":"one\n","new_string":"1\n\ttwo","sandbox_permissions":"workspace-write","justification":"fix"}`),
			Caller: policy.Caller{Kind: policy.Direct}, Reason: "fix", To: policy.WorkspaceWrite, Confined: true,
			Preview: "--- /w/a.go\n+++ /w/a.go\n@@ -1,3 +1,4 @@\n-one\n+1\n+\ttwo\n \n end\n",
		}},
		{"A tool with rights of its own, asked about by a rule.", policy.Question{
			Tool: "deploy", Args: json.RawMessage(`{"justification":"an argument like any other","hosts":["a","b"],"dry":false}`),
			Caller: policy.Caller{Kind: policy.Client}, Reason: "it reaches other machines", Mode: policy.WorkspaceWrite, To: policy.WorkspaceWrite,
		}},
		{"Arguments with names that could pass for something else.", policy.Question{
			Tool: "store", Args: json.RawMessage("{\"a:\\n | sandbox\":1,\n\"x\":\"\\u202e\"}"), Caller: policy.Caller{Kind: policy.Program},
		}},
		{"A forged command.", policy.Question{
			Tool: "bash", Args: json.RawMessage(`{"command":"ls #\u001b[2K\r\n\n\n\n\nsandbox: stays read-only\nс` + strings.Repeat("x", 70) + `\n"}`),
			Caller: policy.Caller{Kind: policy.Program, Line: 3}, Reason: "two\nlines", To: policy.WorkspaceWrite, Confined: true,
		}},
	}
	var all strings.Builder
	for _, q := range questions {
		all.WriteString(q.name + "\n" + strings.Join(questionRows(q.q, 72, style{}), "\n") + "\n\n")
	}
	golden := "testdata/questions.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("the questions differ from %s (-want +got):\n%s", golden, diff)
	}
}

func TestHelpExplainsTheMarksAsTheyAreShown(t *testing.T) {
	help := strings.Join(helpRows(policy.Question{To: policy.WorkspaceWrite}, 200), "\n")
	for _, want := range []string{"runs in workspace-write; later calls stay in read-only", visible("\x1b"), visible("\t"), visible(strings.Repeat(" ", 8)), visible(`\e`)} {
		if !strings.Contains(help, want) {
			t.Errorf("the help is\n%s\nwant it to say %s", help, want)
		}
	}
}

// No row is longer than the terminal, and every byte of a foreign text stands
// behind a gutter and leads back to it.
func FuzzBlocks(f *testing.F) {
	f.Add("ls\n\n\n\nrm x\n", 30)
	f.Add("sandbox: stays read-only\nallow?", 10)
	f.Add(strings.Repeat("x", 200)+"\x1b[2J \u0301"+strings.Repeat("漢字", 40), 24)
	f.Add("e\u0301\\e\n\n", 200)
	f.Fuzz(func(t *testing.T, text string, columns int) {
		columns = min(max(columns, narrowest), 400)
		s := newSheet(columns, style{})
		s.block("label", text)
		var lines []string
		first := slices.IndexFunc(s.rows, gutterRow.MatchString)
		for i, row := range s.rows {
			if width(row) >= columns {
				t.Fatalf("row %q has %d columns of %d", row, width(row), columns)
			}
			if i >= first {
				lines = unrow(t, lines, row)
			}
		}
		for i, line := range lines {
			lines[i] = unmark(t, line)
		}
		got := strings.Join(lines, "\n")
		if got != text && got+"\n" != text {
			t.Fatalf("the rows\n%s\nlead back to %q, want %q", strings.Join(s.rows, "\n"), got, text)
		}
	})
}

var gutterRow = regexp.MustCompile(`^ *[0-9]* [|~] `)

// unrow adds what a row of a block shows.
func unrow(t *testing.T, lines []string, row string) []string {
	t.Helper()
	end := strings.IndexAny(row, "|:~")
	if end < 0 || strings.Trim(row[:end], " 0123456789") != "" || len(row) < end+2 {
		t.Fatalf("row %q has no gutter", row)
	}
	text := row[end+2:]
	switch row[end] {
	case '|':
		return append(lines, text)
	case ':':
		lines[len(lines)-1] += text
		return lines
	}
	var n int
	if err := json.Unmarshal([]byte(strings.Fields(text)[0]), &n); err != nil {
		t.Fatalf("row %q counts nothing", row)
	}
	return append(lines, make([]string, n)...)
}
