//go:build linux && (amd64 || arm64)

package sandbox

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-run/dsh/policy"
)

// profile is what bubblewrap is told: everything read-only, its own devices
// and processes, no privileges, and then what this call may write.
func (r *bwrapRestriction) profile(dir string) []string {
	args := []string{
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--unshare-pid", "--unshare-ipc", "--unshare-uts",
		// As root, privileges would undo the read-only mounts.
		"--cap-drop", "ALL",
		"--new-session", "--die-with-parent",
	}
	for _, dir := range outermostFirst(r.roots.Dirs) {
		args = append(args, "--bind-try", dir, dir)
	}
	args = append(args, pins(r.roots)...)
	args = append(args, masks(socketsOf(os.Environ()))...)
	// Without it a directory that is hidden would become the home directory.
	return append(args, "--chdir", dir)
}

// outermostFirst orders directories so that none hides one before it.
func outermostFirst(dirs []string) []string {
	return slices.SortedFunc(slices.Values(dirs), func(a, b string) int {
		return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/"))
	})
}

// pins keeps the pinned entries from being moved, and the protected ones from
// being changed. Only what is there can be held: for the rest a mount point
// would have to be made on the host, so it is left to the check after the run.
func pins(roots policy.Roots) []string {
	var args []string
	for _, path := range roots.Pinned {
		if isPlain(path) {
			args = append(args, "--bind", path, path)
		}
	}
	for _, path := range roots.Protected {
		if isPlain(path) && isPlain(filepath.Dir(path)) {
			args = append(args, "--ro-bind", path, path)
		}
	}
	return args
}

// isPlain reports a file or a directory that is there itself, not as a link.
func isPlain(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && (info.IsDir() || info.Mode().IsRegular())
}

// programName is the name that the runner is to execute: the one that the
// program expects as its own, if that leads to the same file.
func programName(cmd *exec.Cmd, env []string) string {
	path := absoluteProgram(cmd)
	if len(cmd.Args) == 0 || strings.Contains(cmd.Args[0], "/") || filepath.Base(path) != cmd.Args[0] {
		return path
	}
	for _, dir := range filepath.SplitList(strings.TrimPrefix(lastEntry(env, "PATH="), "PATH=")) {
		if _, err := os.Stat(filepath.Join(dir, cmd.Args[0])); err != nil {
			continue
		}
		if dir == filepath.Dir(path) {
			return cmd.Args[0]
		}
		break
	}
	return path
}

// runnerEnvironment splits an environment into the part that the runner itself
// gets, without what would load code into it, and options that give the rest to
// the command.
func runnerEnvironment(env []string) (clean, options []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "LD_") || name == "GCONV_PATH" || name == "GLIBC_TUNABLES" {
			options = append(options, "--setenv", name, value)
			continue
		}
		clean = append(clean, entry)
	}
	return clean, options
}

func joinNUL(args []string) []byte {
	var b strings.Builder
	for _, arg := range args {
		b.WriteString(arg)
		b.WriteByte(0)
	}
	return []byte(b.String())
}
