#!/bin/sh
# Builds the image: build.sh BINARY NAME. Takes buildah, podman or docker, whichever is there.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
binary=$1 name=$2

say() { echo "image: $*" >&2; }

# The image has no libraries: a binary that asks for one would not start.
if readelf -lW "$binary" | grep -q INTERP; then
	say "$binary is not static"
	exit 1
fi

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
install -m 755 "$binary" "$context/rolegate"

if command -v buildah >/dev/null; then
	buildah build --file "$here/Containerfile" --tag "$name" "$context"
elif command -v podman >/dev/null; then
	podman build --file "$here/Containerfile" --tag "$name" "$context"
elif docker info >/dev/null 2>&1; then
	docker build --file "$here/Containerfile" --tag "$name" "$context"
else
	say "neither buildah nor podman nor a docker daemon is here; the static binary is $binary"
	exit 1
fi
say "built $name"
