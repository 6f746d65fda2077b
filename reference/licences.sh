#!/bin/sh
# Writes the licences of all modules in the binary of the pets server, for any system it is
# released for, and of Go, to a file: reference/licences.sh LICENCES.txt
set -eu
out=$(realpath "$1")
cd "$(dirname "$0")"
export GOWORK="${GOWORK:-off}"
found=$(for os in linux darwin windows; do
	GOOS=$os go list -deps -f '{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}' . || exit
done)
modules=$(echo "$found" | grep -v '^github.com/animalstore/gatehouse' | sort -u)
{
	printf 'Licences of what petstore contains\n\n===== Go %s\n\n' "$(go env GOVERSION)"
	cat "$(go env GOROOT)/LICENSE"
	echo "$modules" | while read -r path version dir; do
		files=$(find -L "$dir" -type f -not -path "*/testdata/*" -not -name "*.go" | grep -iE '/(licen[cs]e|copying|notice|patents)[^/]*$' | sort)
		# A notice alone grants nothing.
		echo "$files" | grep -qiE '/(licen[cs]e|copying)[^/]*$' || { echo "no licence in $path $version" >&2; exit 1; }
		echo "$files" | while read -r file; do
			printf '\n===== %s %s: %s\n\n' "$path" "$version" "${file#"$dir"/}"
			cat "$file"
		done
	done
} >"$out"
