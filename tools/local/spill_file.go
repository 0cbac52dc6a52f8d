package local

import "os"

// spillLimit is the largest file that one stream is written to.
const spillLimit = 64 << 20

// spillFile is a file of the session that holds the first bytes of a stream.
// It is made when there is something to write.
type spillFile struct {
	dir  string // empty: there is no session, so nothing is written
	name string
	path string // of what was made
	size int64
	file *os.File
	err  error // why writing ended early
}

func (f *spillFile) write(p []byte) {
	p = p[:min(int64(len(p)), spillLimit-f.size)]
	if len(p) == 0 || f.dir == "" || f.err != nil {
		return
	}
	if f.file == nil {
		if f.file, f.err = createSpill(f.dir, f.name); f.err != nil {
			return
		}
		f.path = f.file.Name()
	}
	n, err := f.file.Write(p)
	f.size += int64(n)
	f.err = err
}

// close may be called again.
func (f *spillFile) close() {
	if f.file == nil {
		return
	}
	if err := f.file.Close(); f.err == nil {
		f.err = err
	}
	f.file = nil
}
