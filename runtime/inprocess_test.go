package runtime_test

import (
	"testing"

	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/runtime/runtimetest"
)

func TestInProcessConforms(t *testing.T) {
	runtimetest.Run(t, func(*testing.T) runtime.Engine { return runtime.NewInProcess() }, nil)
}
