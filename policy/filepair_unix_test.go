//go:build unix

package policy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// pair is a directory with a pipe for questions, so that a test can wait for
// one, and a file or a pipe for answers.
type pair struct {
	dir       string
	questions *bufio.Reader
	answers   *os.File
	session   *policy.Session
	approvals *policy.Approvals
}

func newPair(t *testing.T, pipeForAnswers bool) *pair {
	t.Helper()
	p := &pair{dir: pairDir(t), session: begin(t, policy.ReadOnly, policy.Ask)}
	pipe(t, filepath.Join(p.dir, "questions"))
	if pipeForAnswers {
		pipe(t, filepath.Join(p.dir, "answers"))
	}
	answerer, err := policy.FilePair(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	p.approvals = policy.NewApprovals(0, answerer)
	p.questions = bufio.NewReader(p.open(t, "questions", os.O_RDWR))
	p.answers = p.open(t, "answers", os.O_WRONLY|os.O_APPEND)
	return p
}

func pairDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func pipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) open(t *testing.T, name string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(p.dir, name), flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func (p *pair) write(t *testing.T, text string) {
	t.Helper()
	if _, err := p.answers.WriteString(text); err != nil {
		t.Error(err)
	}
}

// ask puts a question and returns its line, and a channel for the decision.
func (p *pair) ask(t *testing.T, ctx context.Context) (string, <-chan policy.Decision) {
	t.Helper()
	decided := make(chan policy.Decision, 1)
	go func() {
		d, err := p.approvals.Ask(ctx, p.session, policy.Question{CallID: "c1", Tool: "bash", Args: json.RawMessage(`{"command":"a\nb"}`),
			Caller: policy.Caller{Kind: policy.Program, Line: 3, Column: 7, Program: "p.ts", Source: "await x()"},
			Reason: "it has to", To: policy.WorkspaceWrite, Confined: true, Denied: "c0", Preview: "- a\n+ b"})
		if err != nil {
			t.Error(err)
		}
		decided <- d
	}()
	line, err := p.questions.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line, decided
}

const (
	yesToA1 = `{"session":"s","id":"a1","outcome":"allowed-once"}` + "\n"
	noToA1  = `{"session":"s","id":"a1","outcome":"rejected","why":"not today"}` + "\n"
)

func TestTheQuestionOnItsLine(t *testing.T) {
	p := newPair(t, false)
	line, decided := p.ask(t, t.Context())
	p.write(t, yesToA1)
	<-decided
	before, after, ok := strings.Cut(line, `,"asked_at":"`)
	want := `{"session":"s","id":"a1","call_id":"c1","tool":"bash","args":{"command":"a\nb"},` +
		`"caller":{"kind":"program","line":3,"column":7,"program":"p.ts","source":"await x()"},"reason":"it has to",` +
		`"mode":"read-only","to":"workspace-write","confined":true,"denied_call":"c0","preview":"- a\n+ b"`
	if !ok || before != want {
		t.Errorf("the line is %s\nwant %s", line, want)
	}
	if at, err := time.Parse(time.RFC3339Nano, strings.TrimSuffix(after, "\"}\n")); err != nil || time.Since(at) > time.Hour {
		t.Errorf("asked at %s: %v", after, err)
	}
}

func TestAnswersOfAScript(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for _, c := range []struct {
		name          string
		before, after string // the question
		want          policy.Outcome
		why           string
	}{
		{"a yes grants", "", yesToA1, policy.AllowedOnce, ""},
		{"a no refuses, with its reason", "", noToA1, policy.Rejected, "not today"},
		{"a withdrawal", "", `{"session":"s","id":"a1","outcome":"cancelled"}` + "\n", policy.Cancelled, ""},
		{"what stands beside the answer does not matter", "", `{"tool":"bash","session":"s","id":"a1","outcome":"rejected"}` + "\r\n", policy.Rejected, ""},
		{"another question's answer is skipped", "", `{"session":"s","id":"a2","outcome":"allowed-once"}` + "\n" + noToA1, policy.Rejected, "not today"},
		{"another session's answer is skipped", "", `{"session":"t","id":"a1","outcome":"allowed-once"}` + "\n" + noToA1, policy.Rejected, "not today"},
		{"the first answer counts", "", noToA1 + yesToA1, policy.Rejected, "not today"},
		{"an answer from before the question does not count", yesToA1, noToA1, policy.Rejected, "not today"},
		{"nor does one that was begun before it", yesToA1[:20], yesToA1[20:] + noToA1, policy.Rejected, "not today"},
		{"a line that is no JSON is no yes", "", "yes\n" + yesToA1, policy.Unavailable, "is not a JSON object"},
		{"an empty line is no yes", "", "\n" + yesToA1, policy.Unavailable, "is not a JSON object"},
		{"half an object is no yes", "", yesToA1[:40] + "\n", policy.Unavailable, "is not JSON"},
		{"two objects on a line are no yes", "", strings.TrimSpace(yesToA1) + yesToA1, policy.Unavailable, "more than one"},
		{"a list is no yes", "", `["s","a1","allowed-once"]` + "\n", policy.Unavailable, "is not a JSON object"},
		{"a member given twice is no yes", "", `{"session":"s","id":"a1","outcome":"rejected","outcome":"allowed-once"}` + "\n", policy.Unavailable, "twice"},
		{"a member in another case is none", "", `{"session":"s","id":"a1","Outcome":"allowed-once"}` + "\n", policy.Unavailable, "member outcome"},
		{"an answer without an id is no yes", "", `{"session":"s","outcome":"allowed-once"}` + "\n" + yesToA1, policy.Unavailable, "member id"},
		{"an unknown word is no yes", "", `{"session":"s","id":"a1","outcome":"yes"}` + "\n" + yesToA1, policy.Unavailable, `"yes"`},
		{"unavailable is no word of an answer", "", `{"session":"s","id":"a1","outcome":"unavailable"}` + "\n", policy.Unavailable, `"unavailable"`},
		{"a line that is too long is no yes", "", `{"why":"` + long + `",` + yesToA1[1:], policy.Unavailable, "65536"},
	} {
		for _, kind := range []string{"file", "pipe"} {
			t.Run(kind+": "+c.name, func(t *testing.T) {
				p := newPair(t, kind == "pipe")
				p.write(t, c.before)
				_, decided := p.ask(t, t.Context())
				written := make(chan struct{})
				go func() {
					defer close(written)
					p.write(t, c.after)
				}()
				d := <-decided
				if d.Outcome != c.want || d.By != "file-pair" || !strings.Contains(d.Why, c.why) {
					t.Errorf("decided %+v, want %v with %q", d, c.want, c.why)
				}
				<-written
			})
		}
	}
}

func TestATornAnswerIsWaitedFor(t *testing.T) {
	for _, kind := range []string{"file", "pipe"} {
		t.Run(kind, func(t *testing.T) {
			p := newPair(t, kind == "pipe")
			_, decided := p.ask(t, t.Context())
			p.write(t, strings.TrimSuffix(yesToA1, "\n"))
			select {
			case d := <-decided:
				t.Fatalf("half a line decided %+v", d)
			case <-time.After(120 * time.Millisecond):
			}
			p.write(t, "\n")
			if d := <-decided; d.Outcome != policy.AllowedOnce {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

// The rest of a line that was begun under one question is no answer to the next.
func TestALineThatWasBegunUnderAnotherQuestion(t *testing.T) {
	for _, kind := range []string{"file", "pipe"} {
		t.Run(kind, func(t *testing.T) {
			p := newPair(t, kind == "pipe")
			_, decided := p.ask(t, t.Context())
			p.write(t, noToA1+`{"session":"s",`)
			<-decided
			_, decided = p.ask(t, t.Context())
			p.write(t, `"id":"a2","outcome":"allowed-once"}`+"\n"+`{"session":"s","id":"a2","outcome":"rejected"}`+"\n")
			if d := <-decided; d.Outcome != policy.Rejected {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

func TestAQuestionToAScriptCanBeWithdrawn(t *testing.T) {
	for _, kind := range []string{"file", "pipe"} {
		t.Run(kind, func(t *testing.T) {
			p := newPair(t, kind == "pipe")
			ctx, cancel := context.WithCancel(t.Context())
			_, decided := p.ask(t, ctx)
			cancel()
			if d := <-decided; d.Outcome != policy.Cancelled {
				t.Errorf("decided %+v", d)
			}
			p.write(t, yesToA1)
			_, decided = p.ask(t, t.Context())
			p.write(t, `{"session":"s","id":"a2","outcome":"rejected"}`+"\n")
			if d := <-decided; d.Outcome != policy.Rejected {
				t.Errorf("the next was decided %+v", d)
			}
		})
	}
}

// A pipe that nobody reads fills up; the question that does not fit into it is
// given up with the call, and does not garble the next.
func TestAPipeThatNobodyReads(t *testing.T) {
	dir := pairDir(t)
	pipe(t, filepath.Join(dir, "questions"))
	answerer, err := policy.FilePair(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := begin(t, policy.ReadOnly, policy.Ask)
	a := policy.NewApprovals(300*time.Millisecond, answerer)
	d, err := a.Ask(t.Context(), s, policy.Question{CallID: "c1", Reason: strings.Repeat("x", 4<<20)})
	if err != nil || d.Outcome != policy.Cancelled {
		t.Errorf("decided %+v, %v", d, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "questions"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go a.Ask(ctx, s, policy.Question{CallID: "c2"})
	if torn, err := lines.ReadString('\n'); err != nil || json.Valid([]byte(torn)) {
		t.Errorf("the torn question is %.100s, %v", torn, err)
	}
	if next, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(next, `{"session":"s","id":"a2"`) || !json.Valid([]byte(next)) {
		t.Errorf("the next question is %.100s, %v", next, err)
	}
}

func TestFilesThatAreReplacedOrCutAreNoYes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(path string) error
		why    string
	}{
		{"replaced by another file", func(path string) error {
			if err := os.WriteFile(path+".new", []byte(yesToA1), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, "replaced"},
		{"replaced by a link", func(path string) error {
			if err := os.Rename(path, path+".old"); err != nil {
				return err
			}
			return os.Symlink(path+".old", path)
		}, "neither a regular file nor a named pipe"},
		{"cut", func(path string) error { return os.Truncate(path, 0) }, "cut to 0 bytes"},
		{"opened to others", func(path string) error { return os.Chmod(path, 0o622) }, "mode is 0622"},
		{"removed", os.Remove, "no such"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, false)
			p.write(t, "something older\n")
			_, decided := p.ask(t, t.Context())
			if err := c.change(filepath.Join(p.dir, "answers")); err != nil {
				t.Fatal(err)
			}
			if d := <-decided; d.Outcome != policy.Unavailable || !strings.Contains(d.Why, c.why) {
				t.Errorf("decided %+v, want unavailable with %q", d, c.why)
			}
		})
	}
}

func TestMissingFilesAreMadeForTheirOwnerAlone(t *testing.T) {
	dir := pairDir(t)
	if _, err := policy.FilePair(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"questions", "answers"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestWhereApprovalsThroughFilesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(dir string) error
		at      string // below dir
		why     string
	}{
		{"a directory that is missing", os.Remove, "", "no such file or directory"},
		{"a file", func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) }, "", "not a directory"},
		{"a directory that the group can write to", func(dir string) error { return os.Chmod(dir, 0o770) }, "", "mode is 0770"},
		{"a directory that all can write to", func(dir string) error { return os.Chmod(dir, 0o707) }, "", "mode is 0707"},
		{"questions as a link", func(dir string) error { return os.Symlink("elsewhere", filepath.Join(dir, "questions")) }, "questions", ""},
		{"answers as a link to a file", func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "x"), nil, 0o600), os.Symlink("x", filepath.Join(dir, "answers")))
		}, "answers", ""},
		{"answers as a directory", func(dir string) error { return os.Mkdir(filepath.Join(dir, "answers"), 0o700) }, "answers", ""},
		{"answers that all can write to", func(dir string) error {
			path := filepath.Join(dir, "answers")
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666))
		}, "answers", "mode is 0666"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(pairDir(t), "d")
			if err := errors.Join(os.Mkdir(dir, 0o700), c.prepare(dir)); err != nil {
				t.Fatal(err)
			}
			_, err := policy.FilePair(dir)
			var refused *policy.FilePairError
			if !errors.As(err, &refused) || refused.Path != filepath.Join(dir, c.at) || !strings.Contains(refused.Reason, c.why) {
				t.Errorf("the error is %v, want one of %s with %q", err, filepath.Join(dir, c.at), c.why)
			}
		})
	}
}

func FuzzAnswerLine(f *testing.F) {
	f.Add(`{"session":"s","id":"a1","outcome":"allowed-once"}`)
	f.Add(`{"session":"s","id":"a1","outcome":"rejected","outcome":"allowed-once"}`)
	f.Add("{}")
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") {
			return
		}
		a, err := policy.ParseAnswer([]byte(line))
		if err != nil {
			return
		}
		var plain map[string]any
		if err := json.Unmarshal([]byte(line), &plain); err != nil {
			t.Fatalf("%q was taken, but: %v", line, err)
		}
		for name, got := range map[string]string{"session": a.Session, "id": a.ID, "outcome": a.Outcome} {
			if got == "" || fmt.Sprint(plain[name]) != got {
				t.Errorf("%q gave %s as %q, but it is %v", line, name, got, plain[name])
			}
		}
	})
}
