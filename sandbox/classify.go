package sandbox

import (
	"slices"
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
	// privileges: those of root are dropped.
	privileges bool
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
	case unnamedError:
		return true
	}
	return false
}

// world is what the counterfactual needs to know of the host. Paths are
// canonical, except those that resolve takes.
type world struct {
	roots policy.Roots
	cwd   string
	// said are what the command line speaks of.
	said func() mentions
	// resolve makes a path from a diagnostic canonical, as far as it exists.
	resolve func(cwd, path string) string
	// writable: the host's user may have that effect on it.
	writable func(path string, how effect) bool
	// owned: the host's user may change its mode and times.
	owned func(path string) bool
	// sealed: it lies on a file system that is mounted read-only.
	sealed func(path string) bool
	// runnable: the host's user may execute it, or it does not exist.
	runnable func(path string) bool
	// privileged: only a privilege that the backend drops opens it.
	privileged func(path string) bool
	// sameDevice: both lie on one file system.
	sameDevice func(a, b string) bool
}

// effect is what was to become of a path.
type effect uint8

const (
	writeFile  effect = iota // written, or created in its directory
	makePath                 // created with the directories above it
	removePath               // taken out of its directory
	removeDir                // the same, if it is empty
)

func (d diagnostic) effect() effect {
	switch {
	case d.rmdir:
		return removeDir
	case d.removes:
		return removePath
	case d.makes:
		return makePath
	}
	return writeFile
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
	// opPrivilege: as root, a file that only a dropped privilege opens.
	opPrivilege = "privilege"
)

// cannotExecute is the exit code of shells for a file that is there and cannot
// be executed.
const cannotExecute = 126

// classify concludes from what a command wrote and how it ended whether the
// sandbox denied it something. A path decides: the diagnostic that names it
// counts if the sandbox must refuse it and the host's user could have had it.
// Where no diagnostic names a path, it may be one that the command line names.
// The wording alone decides only where it is that of a file operation.
func classify(stderr []byte, exit int, sig syscall.Signal, d denials, w world) verdict {
	if sig != 0 {
		return verdict{}
	}
	wording, explained := false, false
	var unnamed *diagnostic
	for _, diag := range diagnose(string(stderr)) {
		if !d.gives(diag.kind) {
			continue
		}
		if v := w.judge(diag, exit, d); v.denied {
			return v
		}
		explained = explained || len(diag.paths) > 0
		wording = wording || diag.tells
		if len(diag.paths) == 0 && !diag.foreign {
			unnamed = &diag
		}
	}
	if exit == 0 || exit == cannotExecute {
		return verdict{}
	}
	if unnamed != nil {
		if v := w.judgeMentioned(*unnamed, d); v.denied {
			return v
		}
	}
	if wording && !explained {
		return verdict{denied: true, op: opWrite, confidence: policy.ByText}
	}
	return verdict{}
}

// judge applies the counterfactual to the paths of one diagnostic. A relative
// one may start where the command line changes to.
func (w world) judge(diag diagnostic, exit int, d denials) verdict {
	for _, from := range w.froms(diag.paths) {
		paths := make([]string, len(diag.paths))
		for i, p := range diag.paths {
			paths[i] = w.resolve(from, p)
		}
		if v := w.judgeAll(diag, paths, exit, d); v.denied {
			return v
		}
	}
	return verdict{}
}

// froms are the directories that a diagnostic's paths may start at.
func (w world) froms(paths []string) []string {
	froms := []string{w.cwd}
	for _, p := range paths {
		if !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "~") {
			for _, dir := range slices.Concat(w.said().dirs, w.said().paths) {
				froms = append(froms, w.resolve(w.cwd, dir))
			}
			break
		}
	}
	return froms
}

func (w world) judgeAll(diag diagnostic, paths []string, exit int, d denials) verdict {
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

// judgeMentioned judges a diagnostic without a path by what the command line
// names.
func (w world) judgeMentioned(diag diagnostic, d denials) verdict {
	for _, said := range slices.Concat(w.said().paths, w.said().dirs) {
		path := w.resolve(w.cwd, said)
		if op := w.refused(diag, path, d); op != "" {
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
	free := diag.kind == readOnlyError && d.metadata // only metadata are refused so
	switch {
	case held && !free && w.writable(path, diag.effect()):
		return opWrite
	case diag.kind == readOnlyError && (free || held && diag.metadata) && w.owned(path):
		return opMetadata
	case diag.kind == accessError && d.privileges && w.privileged(path):
		return opPrivilege
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
