//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// program is a binary of which a verdict is kept: another content has another
// change time.
type program struct {
	path           string
	is             identity
	size           int64
	changed, nanos int64
}

// findBwrap returns the first bwrap in PATH that no confined command could have
// put there. Those that lie where a command may write in any mode, such as the
// workspace, are passed over, whatever this call's mode is.
func findBwrap(s policy.Scope) (program, error) {
	s.Mode = policy.WorkspaceWrite
	roots := policy.WritableRoots(s)
	var refused []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, "bwrap")
		if !filepath.IsAbs(dir) || unix.Access(path, unix.X_OK) != nil {
			continue
		}
		p, ok := inspect(path)
		switch {
		case !ok:
		case reachable(roots, path) || reachable(roots, p.path):
			refused = append(refused, path)
		default:
			return p, nil
		}
	}
	if refused != nil {
		return program{}, fmt.Errorf("bubblewrap is found only as %s, where commands may write, so that it may be anything; install it in a system directory", strings.Join(refused, ", "))
	}
	return program{}, fmt.Errorf("bubblewrap is not installed: there is no bwrap in PATH. Install it with the system's packages (bubblewrap)")
}

// inspect follows the links of path and identifies the binary.
func inspect(path string) (program, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return program{}, false
	}
	var st unix.Stat_t
	if unix.Stat(real, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return program{}, false
	}
	return program{real, identityOf(&st), st.Size, st.Ctim.Sec, st.Ctim.Nsec}, true
}
