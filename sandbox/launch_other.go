//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"fmt"
	goruntime "runtime"
)

// Launch needs Linux on amd64 or arm64; elsewhere nothing is executed.
func Launch(LaunchOptions) error { return launchFailure(errNoLaunch()) }

// ProbeLaunch says that nothing can be launched here.
func ProbeLaunch() (LaunchFacts, error) { return LaunchFacts{}, errNoLaunch() }

func errNoLaunch() error {
	return fmt.Errorf("the launcher needs Landlock, on Linux on amd64 or arm64; this is %s on %s", goruntime.GOOS, goruntime.GOARCH)
}
