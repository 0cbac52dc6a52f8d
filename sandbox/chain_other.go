//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"fmt"
	goruntime "runtime"
)

// backends is empty: this version confines on Linux only.
func backends() []backend { return nil }

func threadBackends() []backend { return nil }

// unsupported says for a user of this platform why nothing runs and what to do.
func unsupported() []Attempt { return []Attempt{unsupportedOn(goruntime.GOOS, goruntime.GOARCH)} }

func unsupportedOn(goos, goarch string) Attempt {
	const instead = "Run it on Linux"
	switch goos {
	case "darwin":
		return Attempt{Backend: "seatbelt", Reason: "the Seatbelt backend of macOS is not in this version. " + instead}
	case "windows":
		return Attempt{Backend: "restricted-token", Reason: "the backend for Windows is not in this version. " + instead}
	case "linux":
		return Attempt{Backend: "landlock", Reason: fmt.Sprintf("the system call filter is written for amd64 and arm64, this is %s", goarch)}
	default:
		return Attempt{Backend: goos, Reason: "there is no backend for this system. " + instead}
	}
}
