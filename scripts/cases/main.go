// Command cases runs the tests that are named by the ids of the tables of
// escapes and false denials, and prints for each what became of it: kept;
// reported, where a backend cannot hold it and its results say so; or skipped,
// with the reason. It exits 1 when a row fails, or is skipped although
// DSH_REQUIRE is set.
//
//	DSH_REQUIRE=kernel,bwrap,… go run ./scripts/cases
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// tests are those that are named by ids.
const tests = "^Test(SandboxCases|E[0-9]+|B[0-9]+|F[0-9]+|VCSAttacks|BwrapEndsWithItsHost)$"

type event struct {
	Action, Test, Output string
}

// outcome is what became of one way to run a row.
type outcome struct{ word, why string }

func main() {
	rows, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(2)
	}
	counts := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		o := rows[name]
		counts[o.word]++
		fmt.Printf("%-9s %s", o.word, name)
		if o.why != "" {
			fmt.Printf(": %s", o.why)
		}
		fmt.Println()
	}
	fmt.Printf("kept %d, reported %d, skipped %d, failed %d\n", counts["kept"], counts["reported"], counts["skipped"], counts["FAILED"])
	if len(rows) == 0 || counts["FAILED"] > 0 || counts["skipped"] > 0 && os.Getenv("DSH_REQUIRE") != "" {
		os.Exit(1)
	}
}

func run() (map[string]outcome, error) {
	cmd := exec.Command("go", "test", "-count=1", "-json", "-run", tests, "./sandbox")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	rows, err := read(out)
	_ = cmd.Wait() // the rows say what failed
	return rows, err
}

// said are the lines in which a test says why.
var said = regexp.MustCompile(`_test\.go:\d+: (.*)`)

// read collects the outcomes of the innermost tests.
func read(from io.Reader) (map[string]outcome, error) {
	rows, whys := map[string]outcome{}, map[string]string{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		if m := said.FindStringSubmatch(e.Output); m != nil {
			whys[e.Test] = m[1]
		}
		if word := words(e.Action, whys[e.Test]); word != "" {
			rows[strings.TrimPrefix(e.Test, "TestSandboxCases/")] = outcome{word, whys[e.Test]}
		}
	}
	for name := range rows {
		for parent := name; strings.Contains(parent, "/"); {
			parent = parent[:strings.LastIndex(parent, "/")]
			delete(rows, parent)
		}
	}
	delete(rows, "TestSandboxCases")
	return rows, lines.Err()
}

func words(action, why string) string {
	switch {
	case action == "pass" && strings.HasPrefix(why, "reported"):
		return "reported"
	case action == "pass":
		return "kept"
	case action == "skip":
		return "skipped"
	case action == "fail":
		return "FAILED"
	}
	return ""
}
