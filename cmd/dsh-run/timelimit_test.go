package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestStdinIsReadUntilItOrTheCommandEnds(t *testing.T) {
	if data, err := readStdin(t.Context(), strings.NewReader("return 1"), "the program"); err != nil || string(data) != "return 1" {
		t.Errorf("read %q, %v", data, err)
	}
	endless, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the command received the signal"))
	_, err := readStdin(ctx, endless, "the program")
	if err == nil || !strings.Contains(err.Error(), "received the signal") || exitCodeOf(err) != exitFailed {
		t.Errorf("error is %v with exit code %d", err, exitCodeOf(err))
	}
	writer.CloseWithError(errors.New("broken"))
	if _, err := readStdin(t.Context(), endless, "the program"); exitCodeOf(err) != exitUsage {
		t.Errorf("error is %v, want one of usage", err)
	}
}
