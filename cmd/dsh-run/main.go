// Command dsh-run runs programs that call tools, single tools, and other
// commands, confined by the kernel and written down in a log.
//
// This package parses flags and shows results. What a run may do is decided
// below it.
package main

import (
	"context"
	"os"
)

func main() { os.Exit(execute(context.Background(), os.Args[1:])) }
