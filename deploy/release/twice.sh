#!/usr/bin/env bash
# Builds the release twice, in two clones of this commit at two paths, and fails where a byte differs: twice.sh [ARCH...].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD
work=$(mktemp -d)
# Each build is a process group of its own, so that one that fails takes the other with it.
set -m
builds=()
stop() {
    for build in "${builds[@]}"; do
        kill -- "-$build" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap stop EXIT
export RELEASE_TOOLS=$repository/target/tools/bin
unset CARGO_TARGET_DIR
build() {
    local clone=$work/$1
    shift
    git clone --quiet --no-hardlinks "$repository" "$clone"
    "$clone/deploy/release/build.sh" "$clone/target/dist" "$@"
}
# Beside each other: most of a build keeps one core busy.
for clone in one another/place; do
    build "$clone" "$@" &
    builds+=($!)
done
wait -n
wait -n
builds=()
diff -r "$work/one/target/dist" "$work/another/place/target/dist" || {
    echo "release: the two differ" >&2
    exit 1
}
rm -rf target/dist
mkdir -p target
mv "$work/one/target/dist" target/dist
echo "release: both builds are the same; one of them is in target/dist" >&2
