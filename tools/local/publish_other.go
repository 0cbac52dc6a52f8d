//go:build !linux

package local

import "os"

// renameNoReplace renames within dir and fails when base exists.
func renameNoReplace(dir *os.Root, temp, base string) error { return linkNoReplace(dir, temp, base) }
