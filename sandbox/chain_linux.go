//go:build linux && (amd64 || arm64)

package sandbox

func backends() []backend { return []backend{new(landlockBackend)} }

// unsupported is empty: this platform has backends, and each speaks for itself.
func unsupported() []Attempt { return nil }
