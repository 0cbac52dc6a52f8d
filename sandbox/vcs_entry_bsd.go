//go:build unix && !linux

package sandbox

import "syscall"

// changeTime is 0: nothing is confined here, so nothing is compared.
func changeTime(*syscall.Stat_t) int64 { return 0 }
