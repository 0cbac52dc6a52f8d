package sandbox

import (
	"strings"
	"syscall"

	"github.com/dsh-run/dsh/policy"
)

// denials are the errors that a backend gives where it refuses a file effect.
type denials struct {
	access      bool // EACCES
	permission  bool // EPERM
	crossDevice bool // EXDEV, for links and renames across the border
	readOnly    bool // EROFS, for every change
	metadata    bool // EROFS, for changes of metadata only
	busy        bool // EBUSY, for what is held in its place
	// protected: protected paths are held during the call.
	protected bool
}

func (d denials) gives(k errorKind) bool {
	switch k {
	case accessError:
		return d.access
	case permissionError:
		return d.permission
	case crossDeviceError:
		return d.crossDevice
	case readOnlyError:
		return d.readOnly || d.metadata
	case busyError:
		return d.busy
	}
	return false
}

// world is what the counterfactual needs to know of the host. Paths are
// canonical, except those that resolve takes.
type world struct {
	roots policy.Roots
	cwd   string
	// resolve makes a path from a diagnostic canonical, as far as it exists.
	resolve func(cwd, path string) string
	// writable: the host's user may write or create it, or remove it.
	writable func(path string, remove bool) bool
	// owned: the host's user may change its mode and times.
	owned func(path string) bool
	// sealed: it lies on a file system that is mounted read-only.
	sealed func(path string) bool
	// runnable: the host's user may execute it, or it does not exist.
	runnable func(path string) bool
	// sameDevice: both lie on one file system.
	sameDevice func(a, b string) bool
}

// verdict is what classify concludes; the zero value is no denial.
type verdict struct {
	denied     bool
	op, path   string
	confidence policy.Confidence
}

const (
	opWrite    = "write"
	opMetadata = "metadata"
)

// cannotExecute is the exit code of shells for a file that is there and cannot
// be executed.
const cannotExecute = 126

// classify concludes from what a command wrote and how it ended whether the
// sandbox denied it something. A path decides: the diagnostic that names it
// counts if the sandbox must refuse it and the host's user could have had it.
// The wording alone decides only where no diagnostic names any path.
func classify(stderr []byte, exit int, sig syscall.Signal, d denials, w world) verdict {
	if sig != 0 {
		return verdict{}
	}
	wording, explained := false, false
	for _, diag := range diagnose(string(stderr)) {
		if !d.gives(diag.kind) {
			continue
		}
		if v := w.judge(diag, exit, d); v.denied {
			return v
		}
		explained = explained || len(diag.paths) > 0
		wording = wording || diag.tells
	}
	if wording && !explained && exit != 0 && exit != cannotExecute {
		return verdict{denied: true, op: opWrite, confidence: policy.ByText}
	}
	return verdict{}
}

// judge applies the counterfactual to the paths of one diagnostic.
func (w world) judge(diag diagnostic, exit int, d denials) verdict {
	paths := make([]string, len(diag.paths))
	for i, p := range diag.paths {
		paths[i] = w.resolve(w.cwd, p)
	}
	for i, path := range paths {
		if diag.kind == crossDeviceError && !w.onOneDevice(path, paths) {
			return verdict{}
		}
		if exit == cannotExecute && !w.runnable(path) {
			continue // it was to be executed
		}
		if op := w.refused(diag, path, d); op != "" && strings.TrimSpace(diag.paths[i]) != "" {
			return verdict{denied: true, op: op, path: path, confidence: policy.ByPath}
		}
	}
	return verdict{}
}

// refused returns the operation on path that only the sandbox can have
// refused, or "".
func (w world) refused(diag diagnostic, path string, d denials) string {
	if w.sealed(path) {
		return ""
	}
	where := w.roots.Judge(path)
	held := where == policy.Outside || where == policy.Protected && d.protected
	metadata := diag.kind == readOnlyError && (d.metadata || d.readOnly && held)
	switch {
	case held && !(diag.kind == readOnlyError && d.metadata) && w.writable(path, diag.removes):
		return opWrite
	case metadata && w.owned(path):
		return opMetadata
	}
	return ""
}

func (w world) onOneDevice(path string, paths []string) bool {
	for _, other := range paths {
		if !w.sameDevice(path, other) {
			return false
		}
	}
	return w.sameDevice(path, w.cwd) || len(paths) > 1
}
