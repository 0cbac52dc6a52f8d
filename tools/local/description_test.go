package local_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-run/dsh/tools/local"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The golden file is what a model is told of the tools for files and searches.
func TestDescriptionsOfFileToolsAreReviewed(t *testing.T) {
	set := local.New(nil)
	defer set.Close()
	var b bytes.Buffer
	for _, tool := range set.Tools() {
		if !slices.Contains([]string{"read", "write", "edit", "glob", "grep"}, tool.Name) {
			continue
		}
		fmt.Fprintf(&b, "# %s (effect %s, confined %v)\n\n%s\n", tool.Name, tool.Effect, tool.Confined, tool.Description)
		var schema bytes.Buffer
		if err := json.Indent(&schema, tool.Input, "", "  "); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "arguments:\n%s\n\n", schema.String())
	}
	const golden = "testdata/file_tools.golden"
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
