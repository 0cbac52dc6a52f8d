package worker

import (
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/sandbox"
)

func init() {
	if runtime.IsWorker() {
		runtime.ServeWorker(sandbox.LockDown)
	}
	runtime.RegisterWorker()
}
