// Command floors checks what the packages of this module import: only lower
// floors, never a neighbour's, and a third-party family only from its owner.
// Tests are exempt.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/dsh-run/dsh"

// floors by directory; what lies below one of them shares its floor.
var floors = map[string]int{
	"session": 0,
	"policy":  1,
	"tools":   2, "sandbox": 2, "runtime": 2,
	"ptc": 3, "tools/local": 3, "tools/mcp": 3, "review": 3, "runtime/worker": 3,
	"":    4, // the module's root
	"cmd": 5, "scripts": 5,
}

// owners of third-party families. Everybody may use golang.org/x/sys; what
// nobody owns must not be imported.
var owners = map[string][]string{
	"github.com/dop251/goja":                 {"runtime"},
	"github.com/dop251/goja_nodejs":          {"runtime"},
	"github.com/evanw/esbuild":               {"runtime"},
	"github.com/go-sourcemap/sourcemap":      {"runtime"},
	"github.com/tetratelabs/wazero":          {"runtime"},
	"golang.org/x/text":                      {"tools/local"},
	"github.com/landlock-lsm/go-landlock":    {"sandbox"},
	"golang.org/x/net":                       {"sandbox"},
	"github.com/santhosh-tekuri/jsonschema":  {"tools"},
	"github.com/google/jsonschema-go":        {"tools"},
	"go.opentelemetry.io/otel":               {"tools"},
	"github.com/bmatcuk/doublestar":          {"tools/local"},
	"github.com/charlievieth/fastwalk":       {"tools/local"},
	"github.com/aymanbagabas/go-udiff":       {"tools/local"},
	"github.com/modelcontextprotocol/go-sdk": {"tools/mcp"},
	"github.com/expr-lang/expr":              {"review"},
	"mvdan.cc/sh":                            {"review"},
	"github.com/goccy/go-yaml":               {"review"},
	"github.com/spf13/cobra":                 {"cmd"},
	"golang.org/x/term":                      {"cmd"},
	"golang.org/x/sys":                       nil,
}

type listed struct {
	ImportPath string
	Imports    []string
}

func main() {
	var bad []string
	for _, platform := range []string{"linux", "darwin", "windows"} {
		packages, err := list(platform)
		if err != nil {
			fmt.Fprintln(os.Stderr, "floors:", err)
			os.Exit(1)
		}
		for _, p := range packages {
			bad = append(bad, judge(p)...)
		}
	}
	slices.Sort(bad)
	for _, line := range slices.Compact(bad) {
		fmt.Println(line)
	}
	if len(bad) > 0 {
		os.Exit(1)
	}
}

func list(platform string) (packages []listed, err error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+platform, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w", platform, err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// judge returns what is wrong with the imports of p.
func judge(p listed) (bad []string) {
	own, known := placeOf(p.ImportPath)
	if !known {
		return []string{p.ImportPath + ": on no floor; add it to the table"}
	}
	for _, imported := range p.Imports {
		if why := judgeImport(own, imported); why != "" {
			bad = append(bad, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, why))
		}
	}
	return bad
}

func judgeImport(own, imported string) string {
	if imported == module || strings.HasPrefix(imported, module+"/") {
		other, known := placeOf(imported)
		switch {
		case !known:
			return "it is on no floor"
		case other != own && floors[other] >= floors[own]:
			return fmt.Sprintf("floor %d is not below floor %d", floors[other], floors[own])
		}
		return ""
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return "" // the standard library
	}
	for family, of := range owners {
		if imported != family && !strings.HasPrefix(imported, family+"/") {
			continue
		}
		if of == nil || slices.Contains(of, own) {
			return ""
		}
		return "its owner is " + strings.Join(of, ", ")
	}
	return "nobody owns it; add it to the table"
}

// placeOf returns the longest directory of the table that holds the package.
func placeOf(path string) (string, bool) {
	dir := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
	for place := dir; place != ""; {
		if _, ok := floors[place]; ok {
			return place, true
		}
		if i := strings.LastIndex(place, "/"); i >= 0 {
			place = place[:i]
		} else {
			place = ""
		}
	}
	return "", dir == ""
}
