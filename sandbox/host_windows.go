package sandbox

// Nothing is confined here, so nothing could have been denied.
func hostCouldWrite(string, effect) bool  { return false }
func hostCouldChangeMetadata(string) bool { return false }
func hostCouldRun(string) bool            { return false }
func hostNeedsPrivilege(string) bool      { return false }
func onSameDevice(string, string) bool    { return false }
func onReadOnlyFileSystem(string) bool    { return true }
