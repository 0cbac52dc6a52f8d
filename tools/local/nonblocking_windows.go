package local

const (
	nonBlocking = 0
	noFollow    = 0
)
