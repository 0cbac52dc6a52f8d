package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Fork copies the events 1 to seq of the log at source into a new log at path,
// which must not exist, owner-only, and returns when the copy is on the disk.
// The copy goes on by itself with [Open].
//
// Its session/start has its own id and names the source and seq as its parent;
// cwd, version and, of a sub-session, the fixed permissions are the source's.
// The other events keep number, time, type and data; the chain of hashes is
// new. The blobs that the events name come along as far as the source has
// them; spill files and the temporary directory stay with the source.
//
// Fork takes no lock, so that source may be open for writing. What stands in
// the source behind event seq does not matter.
//
// Errors leave nothing behind: a *SeqError when source has no such event, a
// *LineError for damage before it, a *ReadOnlyError for events that this
// version could not continue, a *PlaceError for a path that cannot be used.
func Fork(source string, seq uint64, path string) error {
	if seq == 0 {
		return noSuchEvent(source, seq)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	reserved, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return &PlaceError{Path: path, Err: err}
	}
	err = reserved.Close()
	if err == nil {
		err = forkInto(source, seq, path)
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}

// noSuchEvent counts the events of a log for the error that tells it.
func noSuchEvent(source string, seq uint64) error {
	last := uint64(0)
	if err := Read(source, func(e Event) bool { last = e.Seq; return true }); err != nil {
		return err
	}
	return &SeqError{Path: source, Seq: seq, Last: last}
}

// forkInto makes the folder of the log at path and then replaces the empty
// file there by the whole log.
func forkInto(source string, seq uint64, path string) error {
	folder := Folder(path)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return &PlaceError{Path: path, Err: err}
	}
	err := makeFolder(folder, nil)
	if err == nil {
		err = forkFolder(source, seq, path, folder)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	return nil
}

func forkFolder(source string, seq uint64, path, folder string) error {
	f, err := os.CreateTemp(folder, ".fork-*")
	if err != nil {
		return err
	}
	c := copier{from: Folder(source), to: folder, id: ID(path), seq: seq, source: source, blobs: map[string]bool{}}
	if err := errors.Join(c.copy(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := syncFiles(c.blobs, filepath.Join(folder, "blobs")); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return errors.Join(syncDir(folder), syncDir(filepath.Dir(path)))
}

// copier writes the events of one log as those of another.
type copier struct {
	source   string
	from, to string // folders
	id       string // of the new session
	seq      uint64 // of the last event
	chain    chain
	blobs    map[string]bool // paths of those in the new folder
}

func (c *copier) copy(to io.Writer) error {
	w := bufio.NewWriterSize(to, 64<<10)
	var copyErr error
	err := Read(c.source, func(e Event) bool {
		copyErr = c.event(w, e)
		return copyErr == nil && e.Seq < c.seq
	})
	if err := errors.Join(err, copyErr); err != nil {
		return err
	}
	if c.chain.seq != c.seq {
		return &SeqError{Path: c.source, Seq: c.seq, Last: c.chain.seq}
	}
	return w.Flush()
}

func (c *copier) event(w io.Writer, e Event) error {
	if err := continuable(c.source, e); err != nil {
		return err
	}
	if e.Seq == 1 {
		if err := c.start(&e); err != nil {
			return err
		}
	}
	if err := c.takeBlobs(e.Data); err != nil {
		return fmt.Errorf("copy the blobs of event %d: %w", e.Seq, err)
	}
	if len(e.Data) == 0 {
		e.Data = json.RawMessage("null")
	}
	e.Prev = c.chain.prev
	line := e.encode()
	if len(line)-1 > MaxLine {
		return &LineTooLongError{Type: e.Type, Bytes: len(line) - 1, Limit: MaxLine}
	}
	c.chain.take(e, line[:len(line)-1])
	_, err := w.Write(line)
	return err
}

// start makes the source's first event that of the fork.
func (c *copier) start(e *Event) error {
	h, err := headerOf(*e)
	if err != nil {
		return err
	}
	sub := h.Parent != nil && h.Parent.Sub
	h.ID, h.Parent = c.id, &Parent{ID: h.ID, Seq: c.seq, Sub: sub}
	e.Data, err = marshalData(h)
	return err
}

func (c *copier) takeBlobs(data []byte) error {
	for _, ref := range refsIn(data) {
		from, to := filepath.Join(c.from, "blobs", ref.SHA256), filepath.Join(c.to, "blobs", ref.SHA256)
		if c.blobs[to] || !isStored(from, ref) {
			continue
		}
		if err := linkOrCopy(from, to); err != nil {
			return err
		}
		c.blobs[to] = true
	}
	return nil
}

// linkOrCopy gives a file a second name, or a copy where that cannot be.
func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return publish(to, data)
}
