package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
)

// hashLimit is the largest file that is hashed and counted, and so the largest
// one that can be changed.
const hashLimit = 256 << 20

// identity is what a file system knows of a file beside its content.
type identity struct {
	known    bool
	dev, ino uint64
	links    uint64
	uid, gid int
	ctime    int64 // nanoseconds
}

// version identifies one state of a file. Only the hash says whether two
// states differ: a touched or copied file is not a changed one.
type version struct {
	Dev     uint64 `json:"dev"`
	Ino     uint64 `json:"ino"`
	Size    int64  `json:"size"`
	MtimeNS int64  `json:"mtime_ns"`
	CtimeNS int64  `json:"ctime_ns"`
	SHA256  string `json:"sha256"`
}

func versionOf(info fs.FileInfo, size int64, sum []byte) version {
	id := identify(info)
	return version{
		Dev: id.dev, Ino: id.ino, Size: size,
		MtimeNS: info.ModTime().UnixNano(), CtimeNS: id.ctime,
		SHA256: hex.EncodeToString(sum),
	}
}

// load reads all of f, which must not be larger than hashLimit.
func load(ctx context.Context, f *os.File, path string) ([]byte, version, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, version{}, osFailure(path, err)
	}
	if info.Size() > hashLimit {
		return nil, version{}, tooLarge(path, info.Size())
	}
	data := make([]byte, 0, info.Size()+512)
	for {
		if err := ctx.Err(); err != nil {
			return nil, version{}, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(cap(data), len(data)+1<<20)])
		data = data[:len(data)+n]
		if len(data) > hashLimit {
			return nil, version{}, tooLarge(path, int64(len(data)))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, version{}, osFailure(path, err)
		}
	}
	sum := sha256.Sum256(data)
	return data, versionOf(info, int64(len(data)), sum[:]), nil
}

func tooLarge(path string, size int64) error {
	return fail(TooLarge, "%s has %d bytes; a file over %d MiB cannot be changed with this tool", shownPath(path), size, hashLimit>>20)
}
