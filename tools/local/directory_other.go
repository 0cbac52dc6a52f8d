//go:build !linux

package local

import (
	"errors"
	"os"
	"syscall"
)

func isLoop(err error) bool { return errors.Is(err, syscall.ELOOP) }

// openDirectoryAtOnce is not known here.
func openDirectoryAtOnce(string) (*os.Root, bool, error) { return nil, false, nil }
