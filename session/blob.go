package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Ref names a blob of the session's folder.
type Ref struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// Put stores data once, under its hash, and returns its name; with a redactor
// that is the name of the redacted data. When Put returns, the blob survives
// the death of this process; see Sync for more. An error leaves no file.
func (l *Log) Put(data []byte) (Ref, error) {
	data = l.redactBlob(data)
	sum := sha256.Sum256(data)
	ref := Ref{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(data))}
	path := l.blobPath(ref)
	if !isStored(path, ref) {
		if err := publish(path, data); err != nil {
			return Ref{}, fmt.Errorf("store %d bytes beside the log: %w", len(data), err)
		}
	}
	l.pending.add(path)
	return ref, nil
}

// isStored says whether the blob is there. One that a power cut shortened is
// not.
func isStored(path string, ref Ref) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == ref.Bytes
}

// publish writes data under a temporary name and renames it to path, so that
// nobody ever sees half a blob.
func publish(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Get returns the blob that ref names, after checking its hash.
func (l *Log) Get(ref Ref) ([]byte, error) { return readBlob(l.dir, ref) }

// ReadBlob returns a blob of the log at path, after checking its hash.
func ReadBlob(path string, ref Ref) ([]byte, error) { return readBlob(Folder(path), ref) }

// CheckBlob says why a blob of the log at path is not there with the length and
// the hash that ref names. It holds no blob in memory.
func CheckBlob(path string, ref Ref) error {
	f, err := openBlob(Folder(path), ref)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	if n != ref.Bytes {
		return fmt.Errorf("blob %s: it has %d bytes, want %d", ref.SHA256, n, ref.Bytes)
	}
	return ref.verify(sum.Sum(nil))
}

func (r Ref) verify(sum []byte) error {
	if hex.EncodeToString(sum) != r.SHA256 {
		return fmt.Errorf("blob %s: its content has the SHA-256 %x", r.SHA256, sum)
	}
	return nil
}

func openBlob(folder string, ref Ref) (*os.File, error) {
	if len(ref.SHA256) != hex.EncodedLen(sha256.Size) {
		return nil, fmt.Errorf("blob name %q: want 64 hex digits", ref.SHA256)
	}
	if _, err := hex.DecodeString(ref.SHA256); err != nil {
		return nil, fmt.Errorf("blob name %q: %w", ref.SHA256, err)
	}
	f, err := os.OpenFile(filepath.Join(folder, "blobs", ref.SHA256), os.O_RDONLY|noWait|noFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", ref.SHA256, bare(err))
	}
	return f, nil
}

func readBlob(folder string, ref Ref) ([]byte, error) {
	f, err := openBlob(folder, ref)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", ref.SHA256, bare(err))
	}
	sum := sha256.Sum256(data)
	if err := ref.verify(sum[:]); err != nil {
		return nil, err
	}
	return data, nil
}

func (l *Log) blobPath(ref Ref) string { return filepath.Join(l.blobDir(), ref.SHA256) }
