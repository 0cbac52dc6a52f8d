//go:build !linux

package sandbox

func kernelRelease() string { return "" }
func landlockVersion() int  { return 0 }
