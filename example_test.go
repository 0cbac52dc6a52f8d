package dsh_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/tools"
)

// A session, a tool of one's own, a program that calls it beside the built-in
// ones, a direct call, and the end.
func Example() {
	ctx := context.Background()
	session, err := dsh.Open(ctx, &dsh.Options{Dir: "testdata/programs", Temporary: true})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	type in struct {
		Text string `json:"text" jsonschema:"what to shout"`
	}
	type out struct {
		Text string `json:"text"`
	}
	tools.Add(session.Registry, tools.Tool{Name: "shout", Description: "Makes text loud.", Effect: tools.NoEffect},
		func(_ context.Context, _ *tools.Call, in in) (out, error) {
			return out{strings.ToUpper(in.Text) + "!"}, nil
		})

	report, err := session.Run(ctx, `
		const { paths } = await tools.glob({ pattern: "*.ts" });
		console.log(paths.length > 0);
		const { text } = await tools.shout({ text: "hello" });
		return text;
	`, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Logs[0].Text, string(report.Value))

	result := session.Call(ctx, "shout", in{Text: "bye"})
	fmt.Println(string(result.Value))

	result = session.Call(ctx, "write", map[string]string{"file_path": "new.txt", "content": "x"})
	fmt.Println(result.Error.Code)
	// This prints:
	// true "HELLO!"
	// {"text":"BYE!"}
	// FS_SANDBOX_DENIED
}

// How a program failed is in its report, with the position in its source and
// what it may have changed by then.
func ExampleSession_Run_failure() {
	session, err := dsh.Open(context.Background(), &dsh.Options{Temporary: true, Engine: runtime.NewInProcess()})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	report, err := session.Run(context.Background(), "const n: number = 1;\nthrow new Error(`n is ${n}`)", nil)
	if err != nil {
		log.Fatal(err)
	}
	f := report.Failure
	fmt.Println(f.Kind, f.Line, f.Message)
	fmt.Println("safe to run again:", report.SafeToRetry)
	// Output:
	// exception 2 Error: n is 1
	// safe to run again: true
}

// A guard vetoes calls, whatever else allows them.
func ExampleSession_guard() {
	session, err := dsh.Open(context.Background(), &dsh.Options{Temporary: true, Engine: runtime.NewInProcess()})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	session.Registry.Guard("no-secrets", func(_ context.Context, call tools.Call) error {
		if call.Tool == "read" && strings.Contains(string(call.Args), ".env") {
			return errors.New("files with secrets are not read here")
		}
		return nil
	})
	result := session.Call(context.Background(), "read", map[string]string{"file_path": ".env"})
	fmt.Println(result.Error.Code, result.Meta.DeniedBy.Rule)
	fmt.Println(result.Error.Message)
	// Output:
	// DENIED_BY_GUARD no-secrets
	// denied by the guard no-secrets: files with secrets are not read here
}

// Questions reach a Go function. It grants one call at a time.
func ExampleOptions_answerers() {
	session, err := dsh.Open(context.Background(), &dsh.Options{
		Temporary: true, Engine: runtime.NewInProcess(), Approval: policy.Ask,
		Answerers: []policy.Answerer{{Name: "operator", Answer: func(_ context.Context, q policy.Question) (policy.Outcome, error) {
			fmt.Printf("%s asks for %s: %s\n", q.Tool, q.To, q.Reason)
			return policy.Rejected, nil
		}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	result := session.Call(context.Background(), "write", map[string]string{
		"file_path": "notes.txt", "content": "x",
		"sandbox_permissions": "workspace-write", "justification": "the user asked for notes",
	})
	fmt.Println(result.Error.Code)
	// Output:
	// write asks for workspace-write: the user asked for notes
	// APPROVAL_REJECTED
}

// What a program prints and calls can be followed while it runs.
func ExampleSession_Run_live() {
	session, err := dsh.Open(context.Background(), &dsh.Options{Temporary: true, Engine: runtime.NewInProcess()})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	_, err = session.Run(context.Background(), `console.log("looking in", args[0]); await tools.glob({pattern: "doc.go"})`, &ptc.Run{
		Args:   []byte(`["."]`),
		OnLine: func(line runtime.Line) { fmt.Println(line.Text) },
		OnCall: func(id, tool string, ended *ptc.SubCall) {
			if ended != nil {
				fmt.Println(id, tool, ended.Status)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// looking in .
	// c1:1 glob ok
}

// A sub-agent gets a session of its own: some of the tools, a log beside the
// parent's, and never more than the parent may do.
func ExampleSession_Sub() {
	session, err := dsh.Open(context.Background(), &dsh.Options{
		Temporary: true, Engine: runtime.NewInProcess(), Mode: policy.WorkspaceWrite, Approval: policy.Ask,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	sub, err := session.Sub(context.Background(), &dsh.SubOptions{
		Temporary: true,
		Mode:      new(policy.Mode), // read-only, the zero mode
		View:      []tools.ViewOption{tools.Only("read", "glob")},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sub.Close()

	state := sub.Permissions().State()
	fmt.Println(state.Mode, state.Approval, "fixed:", state.Fixed)
	fmt.Println(sub.Call(context.Background(), "bash", map[string]string{"command": "true"}).Error.Code)
	// Output:
	// read-only never fixed: true
	// UNKNOWN_TOOL
}

// A session goes on from its log, in the same workspace, with the modes it had
// and with what it knew. What a process that died left open has been closed.
func ExampleOptions_resume() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	options := dsh.Options{Dir: dir, Log: filepath.Join(dir, "session.jsonl"), Engine: runtime.NewInProcess()}
	session, err := dsh.Open(context.Background(), &options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(session.Call(context.Background(), "glob", map[string]string{"pattern": "*"}).Meta.CallID)
	if err := session.Close(); err != nil {
		log.Fatal(err)
	}

	again, err := dsh.Open(context.Background(), &dsh.Options{Resume: options.Log, Engine: runtime.NewInProcess()})
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	fmt.Println(again.Call(context.Background(), "glob", map[string]string{"pattern": "*"}).Meta.CallID)
	fmt.Println("calls without an end:", len(again.Repairs().Calls))
	fmt.Println(policy.Describe(again.Permissions().State())[:len("Sandbox mode: read-only.")])
	// Output:
	// c1
	// c2
	// calls without an end: 0
	// Sandbox mode: read-only.
}
