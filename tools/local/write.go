package local

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

//go:embed write.md
var writeDescription string

// widening are the arguments of a tool that can ask for a wider mode.
type widening struct {
	Permissions   *string `json:"sandbox_permissions,omitempty" jsonschema:"only after the sandbox denied this very call: the narrowest mode that is enough for it, workspace-write or danger-full-access"`
	Justification *string `json:"justification,omitempty" jsonschema:"goes with sandbox_permissions: one sentence that tells a person why"`
}

func widen(args json.RawMessage) (*policy.Widening, error) {
	var w widening
	if err := json.Unmarshal(args, &w); err != nil {
		return nil, err
	}
	return policy.ParseWidening(w.Permissions, w.Justification)
}

type writeArgs struct {
	FilePath string `json:"file_path" jsonschema:"the file; a relative path starts at the working directory"`
	Content  string `json:"content" jsonschema:"all that the file shall hold"`
	widening
}

type writeValue struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	// Operation is create or overwrite.
	Operation string `json:"operation"`
	diffValue
	Sandbox confinementValue `json:"sandbox"`
}

func (s *Set) writeTool() tools.Tool {
	return tools.New(tools.Tool{
		Name: "write", Description: writeDescription, Render: tools.Renderer(renderWrite),
		Effect: tools.Local, Atomic: true, Confined: true, Widen: widen,
		Preview: s.previewWrite,
	}, s.write)
}

func (s *Set) write(ctx context.Context, call *tools.Call, in writeArgs) (v writeValue, err error) {
	done, err := s.change(ctx, call, in.FilePath, false, in.plan)
	if err != nil {
		return v, err
	}
	v = writeValue{Operation: "create", diffValue: done.diff(), Sandbox: newConfinementValue(done.confinement)}
	v.Path, v.PathBytes = nameText(done.path)
	if done.existed {
		v.Operation = "overwrite"
	}
	return v, nil
}

// plan replaces all of a file that is known in full.
func (in writeArgs) plan(_ []byte, seen observation) (revision, error) {
	if seen.Version != nil && !seen.complete() {
		return revision{}, fail(NotObserved, "%s: only %d of its %d bytes have been read in this session; read the rest before you overwrite it, or use edit to change a part",
			shownPath(in.FilePath), seen.seenBytes(), seen.Version.Size)
	}
	return whole([]byte(in.Content)), nil
}

func (s *Set) previewWrite(ctx context.Context, call *tools.Call) (string, error) {
	var in writeArgs
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return "", err
	}
	return s.preview(ctx, call, in.FilePath, false, in.plan)
}

func renderWrite(in writeArgs, v writeValue) []tools.Content {
	if v.Operation == "create" {
		return []tools.Content{tools.Text(fmt.Sprintf("created %s (%d bytes)", shownPath(v.Path), len(in.Content)))}
	}
	if v.Diff == "" {
		return []tools.Content{tools.Text(fmt.Sprintf("%s already held exactly that", shownPath(v.Path)))}
	}
	return []tools.Content{tools.Text(fmt.Sprintf("overwrote %s\n%s", shownPath(v.Path), v.shown()))}
}
