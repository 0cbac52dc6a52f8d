package local_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-run/dsh/tools/local"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	fileTools  = []string{"read", "write", "edit", "glob", "grep"}
	shellTools = []string{"bash", "job_output", "job_list", "job_kill"}
)

// The golden files are what a model is told of the tools.
func TestDescriptionsAreReviewed(t *testing.T) {
	sameDescriptions(t, "testdata/file_tools.golden", fileTools...)
	if goruntime.GOOS != "windows" { // where the shell is another
		sameDescriptions(t, "testdata/shell_tools.golden", shellTools...)
	}
}

func TestNoToolIsLeftOutOfTheReview(t *testing.T) {
	set := local.New(nil)
	defer set.Close()
	for _, tool := range set.Tools() {
		if !slices.Contains(slices.Concat(fileTools, shellTools, []string{"pwsh"}), tool.Name) {
			t.Errorf("no golden file has %s", tool.Name)
		}
	}
}

func indented(t *testing.T, schema json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, schema, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sameDescriptions(t *testing.T, golden string, names ...string) {
	t.Helper()
	set := local.New(nil)
	defer set.Close()
	var b bytes.Buffer
	for _, tool := range set.Tools() {
		if !slices.Contains(names, tool.Name) {
			continue
		}
		fmt.Fprintf(&b, "# %s (effect %s, confined %v)\n\n%s\n", tool.Name, tool.Effect, tool.Confined, tool.Description)
		fmt.Fprintf(&b, "arguments:\n%s\n\nvalue:\n%s\n\n", indented(t, tool.Input), indented(t, tool.Output))
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("a model would be told something else (run with -update to accept):\n%s", diff)
	}
}
