package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/dsh-run/dsh/sandbox"
)

// catchSignals ends the context at the first signal; the second ends the
// process at once, and the commands it started. The function says which exit code a signal demands, 0 when
// none came.
func catchSignals(ctx context.Context) (context.Context, func() int) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A reader that went away is an error of writing, which ends the run in
	// good order, and not the end of this process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var code atomic.Int32
	go func() {
		for s := range signals {
			if !code.CompareAndSwap(0, int32(signalCode(s))) {
				sandbox.KillAll()
				os.Exit(int(code.Load()))
			}
			cancel(fmt.Errorf("the command received the signal %q", s))
		}
	}()
	return ctx, func() int { return int(code.Load()) }
}

func signalCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 128 + int(syscall.SIGINT)
}
