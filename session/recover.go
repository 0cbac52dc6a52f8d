package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// recoveredData is the data of log/recovered.
type recoveredData struct {
	Torn Ref `json:"torn"`
}

// recovery moves what stands behind the events of a log to a blob and records
// it as log/recovered. Wherever a crash ends it, the next opening has all it
// needs: the torn end stays in the file until its blob, and a note that the
// event is due, are on the disk, and the note stays until the event is.
type recovery struct {
	log  *Log
	torn Ref
	// What an error has to undo: noted and fresh say which files are there
	// because of this recovery, and wasCut that the log's file is shorter.
	noted, fresh, wasCut bool
}

// setAside makes the file end behind its last event. On an error the file is
// as it was, and so is the folder.
func (l *Log) setAside() error {
	r := &recovery{log: l}
	for _, step := range r.steps() {
		if err := step(); err != nil {
			err = fmt.Errorf("set its torn end aside: %w", bare(err))
			return &OpenError{Path: l.path, Err: errors.Join(err, r.undo())}
		}
	}
	return nil
}

func (r *recovery) steps() []func() error {
	return []func() error{r.keep, r.note, r.cut, r.record, r.forget}
}

// keep stores the torn end durably, however long it is.
func (r *recovery) keep() error {
	dir := r.log.blobDir()
	f, err := os.CreateTemp(dir, unfinished+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.NewSectionReader(r.log.file, r.log.size, 1<<62))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	r.torn = Ref{SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: n}
	// An earlier end may have had the same bytes; then its event needs the blob.
	r.fresh = !isStored(r.log.blobPath(r.torn), r.torn)
	if err := os.Rename(f.Name(), r.log.blobPath(r.torn)); err != nil {
		return err
	}
	return syncDir(dir)
}

func (r *recovery) note() error {
	f, err := os.OpenFile(r.log.notePath(r.torn), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	r.noted = true
	return errors.Join(f.Close(), syncDir(r.log.blobDir()))
}

func (r *recovery) cut() error {
	err := r.log.file.Truncate(r.log.size)
	r.wasCut = err == nil
	return err
}

func (r *recovery) record() error {
	if _, err := r.log.Append(Recovered, recoveredData{r.torn}); err != nil {
		return err
	}
	r.log.torn = &r.torn
	r.noted, r.fresh, r.wasCut = false, false, false
	return r.log.file.Sync()
}

func (r *recovery) forget() error { return os.Remove(r.log.notePath(r.torn)) }

// undo makes file and folder what they were. What of that fails leaves the
// blob and the note.
func (r *recovery) undo() error {
	if r.wasCut {
		if err := r.putBack(); err != nil {
			return fmt.Errorf("put back its torn end: %w", bare(err))
		}
	}
	var err error
	if r.noted {
		err = r.forget()
	}
	if r.fresh {
		err = errors.Join(err, os.Remove(r.log.blobPath(r.torn)))
	}
	return err
}

func (r *recovery) putBack() error {
	f, err := os.Open(r.log.blobPath(r.torn))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(r.log.file, f)
	return err
}

const (
	unfinished = ".new-"  // begins the name of a blob that is being written
	noted      = ".torn-" // begins the name of a note; the blob's follows
)

func (l *Log) blobDir() string { return filepath.Join(l.dir, "blobs") }

func (l *Log) notePath(torn Ref) string { return filepath.Join(l.blobDir(), noted+torn.SHA256) }

// finishEarlier ends what a crash left in the blobs' folder: it removes blobs
// that were never finished, and records the torn ends of which the event is
// still due. last is the event that the log ended with when it was opened.
func (l *Log) finishEarlier(last Event) error {
	entries, err := os.ReadDir(l.blobDir())
	for _, entry := range entries {
		hash, isNote := strings.CutPrefix(entry.Name(), noted)
		switch {
		case isNote:
			err = errors.Join(err, l.recordEarlier(hash, last))
		case strings.HasPrefix(entry.Name(), unfinished):
			err = errors.Join(err, os.Remove(filepath.Join(l.blobDir(), entry.Name())))
		}
	}
	if err != nil {
		return &OpenError{Path: l.path, Err: fmt.Errorf("finish an earlier opening: %w", bare(err))}
	}
	return nil
}

func (l *Log) recordEarlier(hash string, last Event) error {
	r := &recovery{log: l, torn: Ref{SHA256: hash}}
	info, err := os.Lstat(l.blobPath(r.torn))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return r.forget()
	case err != nil:
		return err
	}
	r.torn.Bytes = info.Size()
	var recorded recoveredData
	if last.Type != Recovered || json.Unmarshal(last.Data, &recorded) != nil || recorded.Torn != r.torn {
		if err := r.record(); err != nil {
			return err
		}
	}
	return r.forget()
}
