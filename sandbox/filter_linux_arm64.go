package sandbox

// This architecture's table has none of the old calls.
var oldMetadataCalls, portCalls []uint32
