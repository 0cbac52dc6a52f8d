package runtime

import (
	"fmt"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
)

// The wrapper turns the author's text into one async function. It adds no line
// before the text, so that only columns of the first line shift.
const (
	wrapperHead = "(async()=>{"
	wrapperTail = "\n})"
)

// compiled is a program ready to run: evaluating it starts it and yields the
// promise of its value.
type compiled struct {
	program *goja.Program
	places  *places
}

// compile makes a program of the author's text. Plain JavaScript is tried
// first, because it costs a tenth of the transformation.
func compile(name, text string, limit int) (*compiled, *Failure) {
	if failure := checkSource(text, limit); failure != nil {
		return nil, failure
	}
	text = unfence(text)
	found := survey(text)
	if found.tooDeep != 0 {
		line, column := lineColumn(text, found.tooDeep)
		return nil, &Failure{Kind: Syntax, Line: line, Column: column, Message: fmt.Sprintf("nested too deeply: more than %d open brackets", maxBrackets)}
	}
	body, tail := found.withoutExports(text)
	source := wrapperHead + body + tail + wrapperTail
	plain := &places{name: name, author: source}
	if !found.typeArguments {
		if c, err := compileJS(name, source, plain); err == nil {
			return c, nil
		}
	}
	code, places, failure := transform(name, source)
	if failure == nil {
		var c *compiled
		if c, failure = compileJS(name, code, places); failure == nil {
			return c, nil
		}
	}
	return nil, found.explain(text, failure)
}

// compileJS parses source, requires that it is one function literal, and makes
// the shapes that a program may have into one.
func compileJS(name, source string, places *places) (c *compiled, failure *Failure) {
	defer func() {
		if x := recover(); x != nil {
			c, failure = nil, &Failure{Kind: Syntax, Message: fmt.Sprintf("the source cannot be compiled: %v", x)}
		}
	}()
	tree, err := parser.ParseFile(nil, name, source, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, places.syntax(err)
	}
	if failure = shape(tree, places); failure != nil {
		return nil, failure
	}
	program, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, places.syntax(err)
	}
	return &compiled{program: program, places: places}, nil
}

// shape checks that the wrapper is still closed around the author's text, and
// edits its tree: a lone function is called, a last expression is returned,
// and the whole is called.
func shape(tree *ast.Program, places *places) *Failure {
	last := len(tree.Body) - 1
	for _, helper := range tree.Body[:max(last, 0)] {
		if _, declared := helper.(*ast.VariableStatement); !declared || !places.added(tree.File.Position(int(helper.Idx0())-tree.File.Base())) {
			return unbalanced(places, tree, helper)
		}
	}
	if last < 0 {
		return &Failure{Kind: Syntax, Message: "unexpected end of the source"}
	}
	statement, ok := tree.Body[last].(*ast.ExpressionStatement)
	if !ok {
		return unbalanced(places, tree, tree.Body[last])
	}
	function, ok := statement.Expression.(*ast.ArrowFunctionLiteral)
	if !ok {
		return unbalanced(places, tree, statement)
	}
	if block, ok := function.Body.(*ast.BlockStatement); ok {
		block.List = finish(block.List)
	}
	statement.Expression = &ast.CallExpression{Callee: function, LeftParenthesis: function.Idx0(), RightParenthesis: function.Idx1()}
	return nil
}

func unbalanced(places *places, tree *ast.Program, at ast.Node) *Failure {
	position := tree.File.Position(int(at.Idx1()) - tree.File.Base())
	line, column := places.source(position.Line, position.Column)
	return &Failure{Kind: Syntax, Line: line, Column: column, Message: "unexpected } or ): it closes more than the source opened"}
}

// finish gives a program that returns nothing the value of its last statement.
func finish(body []ast.Statement) []ast.Statement {
	last := len(body) - 1
	for last >= 0 && isEmpty(body[last]) {
		last--
	}
	if last < 0 || returns(body) {
		return body
	}
	var value ast.Expression
	switch s := body[last].(type) {
	case *ast.ExpressionStatement:
		value = s.Expression
	case *ast.FunctionDeclaration:
		if last == 0 && !s.Function.Generator {
			value = s.Function
		}
	}
	if value == nil {
		return body
	}
	if last == 0 && isFunction(value) {
		value = &ast.CallExpression{Callee: value, LeftParenthesis: value.Idx0(), RightParenthesis: value.Idx1()}
	}
	body[last] = &ast.ReturnStatement{Return: value.Idx0(), Argument: value}
	return body
}

func isEmpty(s ast.Statement) bool {
	_, empty := s.(*ast.EmptyStatement)
	return empty
}

func isFunction(e ast.Expression) bool {
	switch f := e.(type) {
	case *ast.ArrowFunctionLiteral:
		return true
	case *ast.FunctionLiteral:
		return !f.Generator
	}
	return false
}

// returns reports whether one of the statements, or one inside them, is a
// return of this function.
func returns(list []ast.Statement) bool {
	for _, s := range list {
		if returning(s) {
			return true
		}
	}
	return false
}

func returning(s ast.Statement) bool {
	switch s := s.(type) {
	case *ast.ReturnStatement:
		return true
	case *ast.BlockStatement:
		return s != nil && returns(s.List)
	case *ast.IfStatement:
		return returning(s.Consequent) || returning(s.Alternate)
	case *ast.ForStatement:
		return returning(s.Body)
	case *ast.ForInStatement:
		return returning(s.Body)
	case *ast.ForOfStatement:
		return returning(s.Body)
	case *ast.WhileStatement:
		return returning(s.Body)
	case *ast.DoWhileStatement:
		return returning(s.Body)
	case *ast.LabelledStatement:
		return returning(s.Statement)
	case *ast.WithStatement:
		return returning(s.Body)
	case *ast.TryStatement:
		return returning(s.Body) || s.Catch != nil && returning(s.Catch.Body) || returning(s.Finally)
	case *ast.SwitchStatement:
		for _, c := range s.Body {
			if returns(c.Consequent) {
				return true
			}
		}
	}
	return false
}

// unfence blanks a Markdown fence around the text, or a first line that names
// an interpreter. Lines keep their numbers.
func unfence(text string) string {
	text = strings.TrimPrefix(text, "\uFEFF")
	if strings.HasPrefix(text, "#!") {
		return "//" + text[2:]
	}
	head, rest, found := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	mark := fenceMark(head)
	if !found || mark == "" || strings.Contains(head[len(mark):], "`") {
		return text
	}
	body := strings.TrimRight(rest, " \t\r\n")
	last := strings.LastIndexByte(body, '\n') + 1
	if closing := strings.TrimSpace(body[last:]); !strings.HasPrefix(closing, mark) || strings.Trim(closing, mark[:1]) != "" {
		return text
	}
	before := strings.Count(text[:len(text)-len(rest)], "\n")
	return strings.Repeat("\n", before) + body[:last]
}

// fenceMark returns the run of backticks or tildes that opens a fence.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}
