package sandbox

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// checkDirectory returns the error that a start in dir would end with.
func checkDirectory(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return &fs.PathError{Op: "chdir", Path: dir, Err: unwrapPath(err)}
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	return nil
}

// checkProgram returns the error that starting a missing program ends with.
func checkProgram(cmd *exec.Cmd) error {
	if _, err := os.Stat(absoluteProgram(cmd)); err != nil && os.IsNotExist(err) && programNamesAreExact {
		return &fs.PathError{Op: "fork/exec", Path: cmd.Path, Err: unwrapPath(err)}
	}
	return nil
}

// absoluteProgram is the path of cmd's program; a relative one starts at the
// command's own directory.
func absoluteProgram(cmd *exec.Cmd) string {
	if filepath.IsAbs(cmd.Path) {
		return cmd.Path
	}
	return filepath.Join(workingDirectory(cmd), cmd.Path)
}

func unwrapPath(err error) error {
	if pathErr, ok := err.(*fs.PathError); ok {
		return pathErr.Err
	}
	return err
}
