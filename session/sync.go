package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// pending is what is not yet on the disk beside the log's file.
type pending struct {
	mu    sync.Mutex
	blobs map[string]bool // paths of blobs
	named bool            // the names of log and folder are on the disk

	syncing sync.Mutex // held while one Sync works, so that a second waits for it
}

func (p *pending) add(blob string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blobs == nil {
		p.blobs = map[string]bool{}
	}
	p.blobs[blob] = true
}

func (p *pending) take() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	blobs := p.blobs
	p.blobs = nil
	return blobs
}

// Sync returns when everything appended so far is on the disk, with the blobs
// that this Log was given and the names of its files. Without a new blob it
// costs one fsync; each new blob costs one more. After an error the next Sync
// tries again. It is a *RemovedError where the file was removed meanwhile.
func (l *Log) Sync() error {
	l.mu.Lock()
	f := l.file
	l.mu.Unlock()
	if f == nil {
		return ErrClosed
	}
	l.pending.syncing.Lock()
	defer l.pending.syncing.Unlock()
	if l.temporary == "" && isNameless(f) {
		return &RemovedError{Path: l.path}
	}
	// The line that names a blob must not outlive it.
	err := errors.Join(l.syncBlobs(), l.syncNames())
	if err == nil {
		err = f.Sync()
	}
	if errors.Is(err, os.ErrClosed) {
		return ErrClosed
	}
	if err != nil {
		return fmt.Errorf("sync the session log: %w", err)
	}
	return nil
}

func (l *Log) syncBlobs() error {
	blobs := l.pending.take()
	err := syncFiles(blobs, filepath.Join(l.dir, "blobs"))
	if err != nil {
		for path := range blobs {
			l.pending.add(path)
		}
	}
	return err
}

// syncFiles brings files, and their names in dir, to the disk.
func syncFiles(paths map[string]bool, dir string) error {
	if len(paths) == 0 {
		return nil
	}
	for path := range paths {
		if err := syncFile(path); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

// syncNames brings the names of log, folder and blobs to the disk, once.
func (l *Log) syncNames() error {
	if l.pending.named {
		return nil
	}
	if err := errors.Join(syncDir(filepath.Dir(l.dir)), syncDir(l.dir)); err != nil {
		return err
	}
	l.pending.named = true
	return nil
}
