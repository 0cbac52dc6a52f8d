package dsh

import (
	"os/exec"
	"sync"

	"github.com/dsh-run/dsh/runtime"
	_ "github.com/dsh-run/dsh/runtime/worker" // makes this program its own worker
	"github.com/dsh-run/dsh/sandbox"
)

// shared is the engine of all sessions that bring none of their own. Its idle
// workers end when the last of them closes.
var shared struct {
	sync.Mutex
	engine *runtime.ProcessEngine
	users  int
}

// sharedEngine returns the engine and what gives it back.
func sharedEngine() (runtime.Engine, func(), error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.engine == nil {
		engine, err := runtime.NewProcess(&runtime.ProcessOptions{Start: startWorker})
		if err != nil {
			return nil, func() {}, err
		}
		shared.engine = engine
	}
	shared.users++
	return shared.engine, sync.OnceFunc(releaseEngine), nil
}

func releaseEngine() {
	shared.Lock()
	defer shared.Unlock()
	if shared.users--; shared.users == 0 {
		shared.engine.Close()
		shared.engine = nil
	}
}

// startWorker is how the sandbox starts what the runtime needs.
func startWorker(cmd *exec.Cmd, exe string) (runtime.Confinement, error) {
	seal, err := sandbox.StartSealed(cmd, exe)
	if err != nil {
		return runtime.Confinement{}, err
	}
	return runtime.Confinement{
		Isolation: runtime.Process, Backend: seal.Backend,
		Enforcement: runtime.Enforcement(seal.Enforcement), Reasons: seal.Reasons,
	}, nil
}
