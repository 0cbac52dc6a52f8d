//go:build !linux && !darwin

package local

import "io/fs"

// identify knows nothing here: the content hash alone identifies a version.
func identify(fs.FileInfo) identity { return identity{} }
