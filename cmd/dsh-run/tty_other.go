//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package main

import "errors"

func flushInput(int) error { return errors.ErrUnsupported }
