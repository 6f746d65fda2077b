package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
)

// A mutation is one small change of a source file.
type mutation struct {
	file       string
	line       int
	start, end int    // bytes of the file that are replaced
	with       string // by this
	was        string
}

func (m mutation) String() string {
	return fmt.Sprintf("%s:%d: %s  ->  %s", m.file, m.line, m.was, m.with)
}

// apply returns the source with the mutation.
func (m mutation) apply(source []byte) []byte {
	return append(append(append([]byte{}, source[:m.start]...), m.with...), source[m.end:]...)
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
		found = append(found, mutation{file, from.Line, from.Offset, to, with, string(source[from.Offset:to])})
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
			replace(n.Cond.Pos(), n.Cond.Pos(), "true || ")
			replace(n.Cond.Pos(), n.Cond.Pos(), "false && ")
		case *ast.Ident:
			if with := words[n.Name]; with != "" {
				replace(n.Pos(), n.End(), with)
			}
		}
		return true
	})
	return found, nil
}
