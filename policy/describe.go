package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// Describe returns the paragraph that tells a model what it may do. It is
// computed from the state at each request and belongs behind the history; its
// bytes change only when the mode, the approval policy, the root or the fixed
// scope of a sub-session does.
func Describe(s State) string {
	sentences := []string{describeMode(s), describeApproval(s)}
	if s.Mode == ReadOnly {
		sentences = append(sentences, "Do not refuse a task because of this paragraph: try the tool, and follow what it returns.")
	}
	if s.Fixed {
		sentences = append(sentences, "This scope is fixed: neither mode nor policy changes during this session.")
	}
	return strings.Join(sentences, " ")
}

func describeMode(s State) string {
	switch s.Mode {
	case ReadOnly:
		return fmt.Sprintf("Sandbox mode: read-only. Commands and file tools can read everything and change nothing but the session's temporary directory (TMPDIR); the workspace is %s.", shownRoot(s.Root))
	case WorkspaceWrite:
		return fmt.Sprintf("Sandbox mode: workspace-write. Commands and file tools can read everything and change files below %s and in the temporary directories, except git hooks, git configuration and dsh-run.yaml.", shownRoot(s.Root))
	default:
		return fmt.Sprintf("Sandbox mode: danger-full-access. Commands and file tools are not confined; the workspace is %s.", shownRoot(s.Root))
	}
}

func describeApproval(s State) string {
	switch {
	case s.Approval != Ask:
		return "Approval policy: never. Nobody will be asked, so do not ask to widen the sandbox."
	case s.Mode == DangerFullAccess:
		return "Approval policy: ask. A person may be asked before a call runs."
	default:
		return "Approval policy: ask. After a real denial, the same call may be repeated once with sandbox_permissions and justification, and a person decides."
	}
}

// shownRoot quotes a root whose characters could pass for part of the
// paragraph.
func shownRoot(root string) string {
	if strings.ContainsFunc(root, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(root)
	}
	return root
}
