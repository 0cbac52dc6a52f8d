package policy

import "io/fs"

const pairFlags = 0

// pipesWork is false: a named pipe is no file in a directory here.
const pipesWork = false

// notOursAlone cannot tell from a file's mode who else can write here.
func notOursAlone(fs.FileInfo) string { return "" }

func (p *pairFile) tryRead([]byte) (int, error) {
	return 0, &FilePairError{p.path, "it is no regular file"}
}

func (p *pairFile) tryWrite(b []byte) (int, error) { return p.file.Write(b) }
