//go:build linux && (amd64 || arm64)

package sandbox

var (
	bwrap    = new(bwrapBackend)
	landlock = new(landlockBackend)
)

func backends() []backend { return []backend{bwrap, landlock} }

// threadBackends are those whose restrictions are threadRestrictions.
func threadBackends() []backend { return []backend{landlock} }

// unsupported is empty: this platform has backends, and each speaks for itself.
func unsupported() []Attempt { return nil }
