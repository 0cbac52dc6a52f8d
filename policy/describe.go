package policy

import (
	"fmt"
	"strings"
)

// Describe returns the paragraph that tells a model what it may do. It is
// computed from the state at each request; its bytes change only when the mode,
// the approval policy, the root or the fixed scope of a sub-session does.
func Describe(s State) string {
	sentences := []string{describeMode(s)}
	switch {
	case s.Approval == Ask && s.Mode != DangerFullAccess:
		sentences = append(sentences, "Approvals are on: after a real denial, the same call may be repeated once with sandbox_permissions and justification, and a person decides.")
	case s.Approval == Ask:
		sentences = append(sentences, "Approvals are on: a person may be asked before a call runs.")
	default:
		sentences = append(sentences, "Approvals are off: nobody will be asked, so do not ask to widen the sandbox.")
	}
	if s.Mode == ReadOnly {
		sentences = append(sentences, "Do not refuse a task because of this paragraph: try the tool, and follow what it returns.")
	}
	if s.Fixed {
		sentences = append(sentences, "This scope is fixed for the whole session.")
	}
	return strings.Join(sentences, " ")
}

func describeMode(s State) string {
	switch s.Mode {
	case ReadOnly:
		return fmt.Sprintf("Sandbox mode: read-only. Commands and file tools can read everything and change nothing but the session's temporary directory (TMPDIR); the workspace is %s.", s.Root)
	case WorkspaceWrite:
		return fmt.Sprintf("Sandbox mode: workspace-write. Commands and file tools can read everything and change files below %s and in the temporary directories, except git hooks and git configuration.", s.Root)
	default:
		return fmt.Sprintf("Sandbox mode: danger-full-access. Commands and file tools are not confined; the workspace is %s.", s.Root)
	}
}
