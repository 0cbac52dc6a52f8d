package sandbox

// The old calls of this architecture's table that take other arguments.
const (
	oldChmod, oldChown, oldLchown, oldFutimesat = 90, 92, 94, 261
)
