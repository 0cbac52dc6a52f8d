package ptc_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/tools"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The golden files are what a model is told of run_code.
func TestDescriptionsAreReviewed(t *testing.T) {
	r := tools.NewRegistry(nil)
	ptc.Register(r, ptc.Options{Engine: runtime.NewInProcess()})
	t.Run("run_code itself", func(t *testing.T) { reviewed(t, "testdata/run_code.golden", described(t, r.Tools()[0])) })
	t.Run("how programs are written", func(t *testing.T) { reviewed(t, "testdata/describe.golden", ptc.Describe(newBench(t).Tools())) })
}

func described(t *testing.T, tool tools.Tool) string {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s (effect %s, confined %v)\n\n%s\n", tool.Name, tool.Effect, tool.Confined, tool.Description)
	for _, part := range []struct {
		name   string
		schema json.RawMessage
	}{{"arguments", tool.Input}, {"value", tool.Output}} {
		b.WriteString(part.name + ":\n")
		if err := json.Indent(&b, part.schema, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

func reviewed(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("a model would be told something else (run with -update to accept):\n%s", diff)
	}
}
