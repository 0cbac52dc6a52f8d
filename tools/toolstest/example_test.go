package toolstest_test

import (
	"context"
	"testing"

	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/toolstest"
)

// office allows calls while somebody is there to see them.
type office struct{ open func() bool }

func (o office) listen(_ context.Context, call tools.Call, next func() tools.Verdict) tools.Verdict {
	if call.Effect != tools.NoEffect && !o.open() {
		return tools.Verdict{Judgement: tools.Deny, Reason: "the office is closed; only look until it opens"}
	}
	return next()
}

// In a test of its own package this is func TestOffice(t *testing.T).
func ExampleListener() {
	_ = func(t *testing.T) {
		toolstest.Listener(t, office{open: func() bool { return true }}.listen)
	}
	// Output:
}
