package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/dsh-run/dsh/tools"
)

// The codes of the file tools.
const (
	NotFound         tools.Code = "FS_NOT_FOUND"
	NotDirectory     tools.Code = "FS_NOT_DIRECTORY"
	NotText          tools.Code = "FS_NOT_TEXT"
	NotRegularFile   tools.Code = "FS_NOT_REGULAR_FILE"
	TooLarge         tools.Code = "FS_TOO_LARGE"
	PermissionDenied tools.Code = "FS_PERMISSION_DENIED"
	SandboxDenied    tools.Code = "FS_SANDBOX_DENIED"
	IOError          tools.Code = "FS_IO_ERROR"
	StaleVersion     tools.Code = "FS_STALE_VERSION"
	NotObserved      tools.Code = "FS_NOT_OBSERVED"
	AmbiguousEdit    tools.Code = "FS_AMBIGUOUS_EDIT"
	EditNotFound     tools.Code = "FS_EDIT_NOT_FOUND"
	FSAborted        tools.Code = "FS_ABORTED" // cancelled before anything was changed
)

// The codes of jobs.
const (
	UnknownJob tools.Code = "UNKNOWN_JOB"
	JobsFull   tools.Code = "JOBS_FULL"
)

func fail(code tools.Code, format string, args ...any) error {
	return &tools.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// failWith is fail with details, which must be encodable.
func failWith(code tools.Code, details any, format string, args ...any) error {
	raw, err := json.Marshal(details)
	if err != nil {
		panic(fmt.Sprintf("local: details %T cannot be encoded: %v", details, err))
	}
	return &tools.Error{Code: code, Message: fmt.Sprintf(format, args...), Details: raw}
}

// osFailure turns an error of the operating system into a typed one that
// keeps its reason. What is typed already, and the end of a context, pass.
func osFailure(path string, err error) error {
	var typed *tools.Error
	if err == nil || errors.As(err, &typed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fail(osCode(err), "%s: %s", shownPath(path), osReason(err))
}

func osCode(err error) tools.Code {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, syscall.ENOTDIR):
		return NotDirectory
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return PermissionDenied
	case errors.Is(err, os.ErrDeadlineExceeded):
		return NotRegularFile
	default:
		return IOError
	}
}

// osReason is the innermost reason, without the operations and paths that the
// standard library puts around it.
func osReason(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "reading it waits for something; it is not an ordinary file"
	case errors.As(err, &errno):
		return errno.Error()
	default:
		return err.Error()
	}
}
