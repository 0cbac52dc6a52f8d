// Package sessiontest is help for tests of this module and of its embedders.
package sessiontest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Need skips the test when have is false, with the reason why. Where the
// environment variable DSH_REQUIRE (a comma-separated list) names what, a
// missing need is a failure instead: a gate that must not skip sets it.
func Need(t testing.TB, what string, have bool, why string) {
	t.Helper()
	if have {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("DSH_REQUIRE"), ","), what) {
		t.Fatalf("DSH_REQUIRE names %q, but: %s", what, why)
	}
	t.Skipf("needs %s: %s", what, why)
}
