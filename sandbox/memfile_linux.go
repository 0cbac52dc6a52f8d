//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns a file without a name that holds data and stands at its
// beginning.
func memoryFile(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(data); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := file.Seek(0, 0); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// rawFilter is a filter as the kernel, and programs that load it, take it.
func rawFilter(filter []unix.SockFilter) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.NativeEndian, filter) // a Buffer takes everything
	return b.Bytes()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
