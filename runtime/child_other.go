//go:build !linux

package runtime

import (
	"errors"
	"os"
)

const selfExe = ""

var errNoWorkers = errors.New("worker processes need Linux: run programs that you trust in process")

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errNoWorkers }

func (c *child) quiet() bool { return false }

func limitProcess(int, Limits, memoryStatus) error { return errNoWorkers }

func readMemory(int) (memoryStatus, error) { return memoryStatus{}, errNoWorkers }

func deathOf(*os.ProcessState) death { return death{code: -1, signal: "unknown"} }
