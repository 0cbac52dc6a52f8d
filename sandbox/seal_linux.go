//go:build linux && (amd64 || arm64)

package sandbox

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Seal says how a process started by [StartSealed] is confined.
type Seal struct {
	Backend     string // "landlock"
	Enforcement string // "full"
	// Reasons name what this kernel's Landlock does not govern, so that it
	// rests on [LockDown] alone.
	Reasons []string
}

// StartSealed starts cmd, without waiting for it, so that no file is open to
// it but the program exe itself, which it may read and execute; a dynamically
// linked one also its loader and library directories. Where the kernel's
// Landlock knows them, TCP, abstract sockets and signals to the outside are
// refused too. The process gets a new session, no_new_privs, core size 0, and
// no descriptors but its streams and cmd.ExtraFiles.
//
// exe is what cmd executes: a file's own path, or "/proc/self/exe", which is
// this program also after its file was replaced or deleted. No other path in
// /proc works: the kernel hides other processes from a sealed one, and its
// descriptors are closed before it executes. cmd's streams must be files or
// nil. The calling process and its other threads stay as they are.
//
// The process is expected to call [LockDown] before it touches anything that
// is not trusted. On an error nothing runs; it says what was missing and what
// to do.
func StartSealed(cmd *exec.Cmd, exe string) (Seal, error) {
	abi, err := usableABI()
	if err != nil {
		return Seal{}, fmt.Errorf("sandbox: %w; nothing else was tried. Programs that you trust can run in process", err)
	}
	ruleset, err := sealRuleset(abi, exe)
	if err != nil {
		return Seal{}, err
	}
	defer ruleset.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return Seal{}, fmt.Errorf("sandbox: the sealed process needs %s for its streams: %w", os.DevNull, err)
	}
	defer null.Close()
	fillStreams(cmd, null)
	prepareCommand(cmd)
	learnPidfd()
	if err := onOwnThread(func() error { return enterDomain(ruleset) }, cmd.Start); err != nil {
		return Seal{}, fmt.Errorf("sandbox: start the sealed process: %w", err)
	}
	if err := dropCores(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return Seal{}, fmt.Errorf("sandbox: set the core size of the sealed process to 0: %w", err)
	}
	return Seal{Backend: "landlock", Enforcement: "full", Reasons: sealReasons(abi)}, nil
}

// fillStreams leaves nothing for Start to open: it runs where opening fails.
func fillStreams(cmd *exec.Cmd, null *os.File) {
	if cmd.Stdin == nil {
		cmd.Stdin = null
	}
	if cmd.Stdout == nil {
		cmd.Stdout = null
	}
	if cmd.Stderr == nil {
		cmd.Stderr = null
	}
}

// sealReasons lists what Landlock of this version leaves to the filter.
func sealReasons(abi int) []string {
	var reasons []string
	for _, step := range []struct {
		since  int
		reason string
	}{{3, "truncate"}, {4, "network"}, {6, "signals"}, {6, "unix_sockets"}} {
		if abi < step.since {
			reasons = append(reasons, step.reason)
		}
	}
	return reasons
}

// sealAttr handles everything that version abi can refuse.
func sealAttr(abi int) ll.RulesetAttr {
	attr := handledRights(abi)
	if abi >= 4 {
		attr.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	return attr
}

func sealRuleset(abi int, exe string) (*os.File, error) {
	if strings.HasPrefix(exe, "/proc/") && exe != "/proc/self/exe" {
		return nil, fmt.Errorf("sandbox: the program to seal is given as %s, which cannot be followed by a sealed process; name the file itself, or /proc/self/exe", exe)
	}
	grants, err := sealGrants(exe)
	if err != nil {
		return nil, err
	}
	ruleset, err := createRuleset(sealAttr(abi))
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	for _, grant := range grants {
		if err := sealGrant(ruleset, grant); err != nil {
			ruleset.Close()
			return nil, err
		}
	}
	return ruleset, nil
}

// A sealGrantRule opens one file or directory to the sealed process.
type sealGrantRule struct {
	path   string
	rights uint64
	needed bool
}

func sealGrant(ruleset *os.File, grant sealGrantRule) error {
	fd, err := unix.Open(grant.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if grant.needed {
			return fmt.Errorf("sandbox: open %s for the sealed process: %w", grant.path, err)
		}
		return nil
	}
	defer unix.Close(fd)
	if err := allowBeneath(ruleset, fd, grant.rights); err != nil {
		return fmt.Errorf("sandbox: landlock: grant %s: %w", grant.path, err)
	}
	return nil
}

// sealGrants is the whole list of what exe needs in order to start.
func sealGrants(exe string) ([]sealGrantRule, error) {
	const run = ll.AccessFSExecute | ll.AccessFSReadFile
	grants := []sealGrantRule{{exe, run, true}}
	file, err := elf.Open(exe)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %s must be an ELF binary to be sealed: %w", exe, err)
	}
	defer file.Close()
	loader := sealLoader(file)
	if loader == "" {
		return grants, nil
	}
	grants = append(grants,
		sealGrantRule{loader, run, true},
		sealGrantRule{"/etc/ld.so.cache", ll.AccessFSReadFile, false})
	for _, dir := range sealLibraryDirs(file, exe, loader) {
		grants = append(grants, sealGrantRule{dir, run | ll.AccessFSReadDir, false})
	}
	return grants, nil
}

// sealLoader is the program interpreter of a dynamic binary, "" of a static one.
func sealLoader(file *elf.File) string {
	for _, prog := range file.Progs {
		if prog.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, min(prog.Filesz, unix.PathMax))
		if n, err := prog.ReadAt(text, 0); err != nil && n == 0 {
			return ""
		}
		return strings.TrimRight(string(text), "\x00")
	}
	return ""
}

func sealLibraryDirs(file *elf.File, exe, loader string) []string {
	dirs := []string{filepath.Dir(loader), "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		paths, err := file.DynString(tag)
		if err != nil {
			continue
		}
		origin := filepath.Dir(sealRealPath(exe))
		for _, dir := range filepath.SplitList(strings.Join(paths, ":")) {
			dir = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(dir)
			if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" {
				dirs = append(dirs, filepath.Clean(dir))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func sealRealPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
