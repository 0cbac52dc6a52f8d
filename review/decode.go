package review

import (
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = 256 << 10

// maxNesting is how deep brackets may be nested in a file.
const maxNesting = 64

// FileError says what is wrong with a file, and where.
type FileError struct {
	Name string
	// Line and Column, from 1; 0: the whole file.
	Line, Column int
	Reason       string
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Name, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Column, e.Reason)
}

// Decode reads one YAML document into the struct that into points to. Keys
// that the struct does not have, keys given twice, anchors, aliases, a second
// document, and files over 256 KiB are refused. An empty file is the zero struct.
// name is the file's in errors, which are *FileError.
func Decode(name string, data []byte, into any) error {
	if err := check(data); err != nil {
		return locate(name, err)
	}
	err := yaml.UnmarshalWithOptions(data, into, yaml.Strict())
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return locate(name, err)
}

// check refuses what could mean something else than it seems to, or cost more
// than it is worth.
func check(data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("it has %d bytes, at most %d are read", len(data), maxFile)
	}
	if deep(data) {
		return fmt.Errorf("brackets are nested more than %d deep", maxNesting)
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return err
	}
	if len(file.Docs) > 1 {
		return errors.New("it holds more than one document")
	}
	for _, doc := range file.Docs {
		finder := &aliases{}
		ast.Walk(finder, doc)
		if n := finder.found; n != nil {
			at := n.GetToken().Position
			return &FileError{Line: at.Line, Column: at.Column, Reason: "anchors and aliases are not read; write the value out"}
		}
	}
	return nil
}

// deep counts brackets wherever they stand, so that no parser has to recurse
// to find out.
func deep(data []byte) bool {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			if depth++; depth > maxNesting {
				return true
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return false
}

type aliases struct{ found ast.Node }

func (a *aliases) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		a.found = n
	}
	if a.found != nil {
		return nil
	}
	return a
}

// locate puts an error into its file.
func locate(name string, err error) error {
	var own *FileError
	if errors.As(err, &own) {
		own.Name = name
		return own
	}
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		position := at.GetToken().Position
		return &FileError{Name: name, Line: position.Line, Column: position.Column, Reason: at.GetMessage()}
	}
	return &FileError{Name: name, Reason: err.Error()}
}
