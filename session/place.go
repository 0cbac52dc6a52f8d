package session

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Suffix of a log file.
const Suffix = ".jsonl"

// Folder returns the folder that belongs to the log at path: the path without
// its suffix, with ".d".
func Folder(path string) string { return strings.TrimSuffix(path, Suffix) + ".d" }

// ID returns the session id of the log at path: its base name without suffix.
func ID(path string) string { return strings.TrimSuffix(filepath.Base(path), Suffix) }

// canonical is path, absolute, with the links of its directory followed. A
// process that is confined to the session's folder, or finds its temporary
// directory there, needs the name of the directory itself.
func canonical(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return path, nil // what is wrong with it shows when it is opened
}

// NewPath returns an unused path for a new log in the user's state directory:
// $XDG_STATE_HOME/dsh-run/sessions, by default under ~/.local/state. It makes
// the directory. Its error is a *PlaceError.
func NewPath(now time.Time) (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return "", &PlaceError{Err: errors.New("neither XDG_STATE_HOME nor HOME names an absolute directory")}
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir := filepath.Join(state, "dsh-run", "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &PlaceError{Err: err}
	}
	return filepath.Join(dir, newID(now)+Suffix), nil
}

func newID(now time.Time) string {
	var random [4]byte
	rand.Read(random[:])
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random[:])
}
