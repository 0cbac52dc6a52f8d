package sandbox

import (
	"io"
	"io/fs"
	"os"
	"time"
)

// entryKind is what a name in a directory stands for.
type entryKind uint8

const (
	entryMissing entryKind = iota
	entryRegular
	entryDirectory
	entryLink
	entryOther // also a file that cannot be read or is too long
)

// maxConfig is how much of a file is kept, in bytes: far more than hooks and
// configurations have.
const maxConfig = 1 << 20

// entryState is what a name stood for at one moment.
type entryState struct {
	kind    entryKind
	mode    fs.FileMode
	content []byte // of a regular file
	target  string // of a link
	info    fs.FileInfo
	stamp   stamp
	read    time.Time
}

// stamp changes whenever an entry does: the change time cannot be set.
type stamp struct {
	identity
	size, changed int64
}

// fresh is how long after a change another one might leave the same time.
const fresh = 50 * time.Millisecond

// readEntry reads what name stands for. Content that was read before and
// cannot have changed since is not read again.
func readEntry(dir *os.Root, name string, last entryState) entryState {
	info, err := dir.Lstat(name)
	if err != nil {
		return entryState{}
	}
	s := entryState{mode: info.Mode(), info: info, stamp: stampOf(info), read: time.Now()}
	if last.kind == entryRegular && last.stamp == s.stamp && s.stamp != (stamp{}) && last.read.Sub(time.Unix(0, s.stamp.changed)) > fresh {
		return last
	}
	switch {
	case info.IsDir():
		s.kind = entryDirectory
	case info.Mode()&fs.ModeSymlink != 0:
		s.kind = entryLink
		if s.target, err = dir.Readlink(name); err != nil {
			s.kind = entryOther
		}
	case info.Mode().IsRegular():
		if s.content, err = readSmall(dir, name, info); err != nil {
			s.kind = entryOther
			break
		}
		s.kind = entryRegular
	default:
		s.kind = entryOther
	}
	return s
}

// readSmall reads a regular file, which must still be the one of info.
func readSmall(dir *os.Root, name string, info fs.FileInfo) ([]byte, error) {
	if info.Size() > maxConfig {
		return nil, fs.ErrInvalid
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if now, err := file.Stat(); err != nil || !os.SameFile(now, info) {
		return nil, fs.ErrInvalid
	}
	content, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	if len(content) > maxConfig {
		return nil, fs.ErrInvalid
	}
	return content, err
}

// same reports whether two states are equal in what git acts on.
func (s entryState) same(other entryState) bool {
	switch {
	case s.kind != other.kind:
		return false
	case s.kind == entryRegular:
		return string(s.content) == string(other.content) && s.mode.Perm() == other.mode.Perm()
	case s.kind == entryLink:
		return s.target == other.target
	case s.kind == entryOther:
		return s.stamp == other.stamp
	}
	return true
}
