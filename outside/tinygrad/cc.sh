#!/bin/sh
# Stands in for clang: gcc has no --target and writes no object file to the standard output.
set -e
object=$(mktemp)
trap 'rm -f "$object"' EXIT
for argument; do
    shift
    case $argument in
        --target=*) ;;
        -o) set -- "$@" -o "$object"; skip=yes ;;
        *) [ -n "$skip" ] && skip= || set -- "$@" "$argument" ;;
    esac
done
gcc "$@"
cat "$object"
