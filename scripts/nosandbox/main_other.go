//go:build !linux || !(amd64 || arm64)

package main

import (
	"fmt"
	"os"
	goruntime "runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "nosandbox: unsupported on %s/%s: it needs Linux on amd64 or arm64\n", goruntime.GOOS, goruntime.GOARCH)
	os.Exit(125)
}
