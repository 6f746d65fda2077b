package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
)

// A mutation is one small change of a source file.
type mutation struct {
	file       string
	line       int
	start, end int    // bytes of the file that are replaced
	with       string // by this
	was        string
	text       string // the line, without the space around it
	changed    string // and with the mutation
}

func (m mutation) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.change()) }

// key names the mutation wherever in its file the line stands.
func (m mutation) key() string { return filepath.Base(m.file) + ": " + m.change() }

func (m mutation) change() string { return m.text + "  ->  " + m.changed }

// apply returns the source with the mutation.
func (m mutation) apply(source []byte) []byte {
	return append(append(append([]byte{}, source[:m.start]...), m.with...), source[m.end:]...)
}

// lineAt returns the line that begins at first, without the space around it.
func lineAt(source []byte, first int) string {
	line, _, _ := bytes.Cut(source[first:], []byte("\n"))
	return string(bytes.TrimSpace(line))
}

// operators are replaced by their neighbours: the mistakes that people make.
var operators = map[token.Token][]string{
	token.LSS: {"<=", ">"}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<"}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"/"},
	token.OR: {"&"}, token.AND: {"|"}, token.AND_NOT: {"&"}, token.SHL: {">>"}, token.SHR: {"<<"},
	token.ADD_ASSIGN: {"-="}, token.SUB_ASSIGN: {"+="}, token.OR_ASSIGN: {"&^="}, token.AND_NOT_ASSIGN: {"|="},
	token.INC: {"--"}, token.DEC: {"++"},
}

// words are replaced where they stand for a call or a value.
var words = map[string]string{"min": "max", "max": "min", "true": "false", "false": "true"}

// mutations returns those of a file.
func mutations(file string) ([]mutation, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []mutation
	replace := func(start, end token.Pos, with string) {
		from, to := set.Position(start), set.Position(end).Offset
		m := mutation{file: file, line: from.Line, start: from.Offset, end: to, with: with, was: string(source[from.Offset:to])}
		first := bytes.LastIndexByte(source[:m.start], '\n') + 1
		m.text, m.changed = lineAt(source, first), lineAt(m.apply(source), first)
		found = append(found, m)
	}
	operator := func(at token.Pos, op token.Token) {
		for _, with := range operators[op] {
			replace(at, at+token.Pos(len(op.String())), with)
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR // constants and types are not decisions
		case *ast.BinaryExpr:
			operator(n.OpPos, n.Op)
		case *ast.IncDecStmt:
			operator(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			operator(n.TokPos, n.Tok)
			if n.Tok == token.ASSIGN {
				replace(n.Pos(), n.End(), "{}")
			}
		case *ast.ExprStmt:
			replace(n.Pos(), n.End(), "{}")
		case *ast.IfStmt:
			cond := string(source[set.Position(n.Cond.Pos()).Offset:set.Position(n.Cond.End()).Offset])
			replace(n.Cond.Pos(), n.Cond.End(), "true || ("+cond+")")
			replace(n.Cond.Pos(), n.Cond.End(), "false && ("+cond+")")
		case *ast.Ident:
			if with := words[n.Name]; with != "" {
				replace(n.Pos(), n.End(), with)
			}
		}
		return true
	})
	return found, nil
}
