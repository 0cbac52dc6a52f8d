package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// prepare fills in the defaults of a run and refuses misuse by the caller.
func prepare(program Program, host Host) (Program, Host, error) {
	if program.Language == "" {
		program.Language = TypeScript
	}
	if program.Name == "" {
		program.Name = "program.ts"
	}
	if program.Args == nil {
		program.Args = json.RawMessage("[]")
	}
	if program.Clock.IsZero() {
		program.Clock = time.Now()
	}
	program.Limits = program.Limits.WithDefaults()
	if host.Object == "" {
		host.Object = "tools"
	}
	if host.Human == nil {
		host.Human = func() time.Duration { return 0 }
	}
	return program, host, misuse(program, host)
}

// identifier is what a global name must look like to be of use to a program.
var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{L}_$][\p{L}\p{N}_$]*$`) })

func misuse(program Program, host Host) error {
	switch {
	case program.Language != TypeScript:
		return fmt.Errorf("runtime: this engine runs the language %q, the program is in %q", TypeScript, program.Language)
	case host.Start == nil:
		return errors.New("runtime: Host.Start is needed: a function that starts a call")
	case !json.Valid(program.Args):
		return errors.New("runtime: Program.Args is no valid JSON")
	case host.Object != "tools" && !identifier().MatchString(host.Object):
		return fmt.Errorf("runtime: Host.Object %q is no identifier", host.Object)
	}
	for _, class := range host.ErrorClasses {
		if !identifier().MatchString(class) {
			return fmt.Errorf("runtime: error class %q is no identifier", class)
		}
	}
	return checkFunctions(host.Functions)
}

// checkFunctions refuses two functions with one path, which would make calls
// go to the wrong one.
func checkFunctions(functions []Function) error {
	seen := make(map[string]bool, len(functions))
	for _, f := range functions {
		if len(f.Path) == 0 {
			return fmt.Errorf("runtime: a function without a path (name %q)", f.Name)
		}
		key := strings.Join(f.Path, "\x00")
		if seen[key] {
			return fmt.Errorf("runtime: two functions have the path %q", f.Path)
		}
		seen[key] = true
	}
	return nil
}
