package runtime

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConsolePrintsAsNode compares with what Node printed for the same
// statements; see testdata/console.txt.
func TestConsolePrintsAsNode(t *testing.T) {
	golden, err := os.ReadFile("testdata/console.txt")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split("\n"+string(golden), "\n> ")[1:]
	for _, block := range blocks {
		statement, want, _ := strings.Cut(block, "\n")
		o, err := NewInProcess().Run(context.Background(), Program{Source: statement}, Host{Start: refuse})
		if err != nil || o.Failure != nil || len(o.Logs) != 1 {
			t.Errorf("%s: %v, %v, %d lines; want one line", statement, err, o.Failure, len(o.Logs))
			continue
		}
		if diff := cmp.Diff(strings.TrimRight(want, "\n"), strings.TrimRight(o.Logs[0].Text, "\n")); diff != "" {
			t.Errorf("%s (-Node +ours):\n%s", statement, diff)
		}
	}
	if len(blocks) < 100 {
		t.Errorf("only %d statements were compared", len(blocks))
	}
}
