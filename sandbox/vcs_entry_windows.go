package sandbox

import (
	"io/fs"
	"os"
)

const nonblocking = 0

// stampOf tells nothing, so that everything is read again.
func stampOf(fs.FileInfo) stamp { return stamp{} }

func keepOwner(*os.Root, string, fs.FileInfo) {}
