package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Ref names a blob of the session's folder.
type Ref struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Put stores data once, under its hash, and returns its name. The blob is
// durable when Put returns as far as a killed process goes.
func (l *Log) Put(data []byte) (Ref, error) {
	sum := sha256.Sum256(data)
	ref := Ref{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(data))}
	path := l.blobPath(ref)
	if _, err := os.Lstat(path); err == nil {
		return ref, nil
	}
	if err := publish(path, data); err != nil {
		return Ref{}, fmt.Errorf("store %d bytes beside the log: %w", len(data), err)
	}
	return ref, nil
}

// publish writes data under a temporary name and links it to path, so that
// nobody ever sees half a blob.
func publish(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Get returns the blob that ref names, after checking its hash.
func (l *Log) Get(ref Ref) ([]byte, error) { return readBlob(l.dir, ref) }

// ReadBlob returns a blob of the log at path, after checking its hash.
func ReadBlob(path string, ref Ref) ([]byte, error) { return readBlob(Folder(path), ref) }

func readBlob(folder string, ref Ref) ([]byte, error) {
	if len(ref.SHA256) != hex.EncodedLen(sha256.Size) {
		return nil, fmt.Errorf("blob name %q: want 64 hex digits", ref.SHA256)
	}
	if _, err := hex.DecodeString(ref.SHA256); err != nil {
		return nil, fmt.Errorf("blob name %q: %w", ref.SHA256, err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "blobs", ref.SHA256))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != ref.SHA256 {
		return nil, fmt.Errorf("blob %s: its content has the SHA-256 %x", ref.SHA256, sum)
	}
	return data, nil
}

func (l *Log) blobPath(ref Ref) string { return filepath.Join(l.dir, "blobs", ref.SHA256) }
