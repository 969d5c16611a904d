#!/usr/bin/env bash
# Builds the release twice, in two clones of this commit at two paths, and fails where a byte differs: twice.sh [ARCH...].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RELEASE_TOOLS=$repository/target/tools/bin
unset CARGO_TARGET_DIR
for clone in one another/place; do
    git clone --quiet --no-hardlinks "$repository" "$work/$clone"
    "$work/$clone/deploy/release/build.sh" "$work/$clone/target/dist" "$@"
    mv "$work/$clone/target/dist" "$work/dist-${clone//\//-}"
    rm -rf "$work/$clone"
done
diff -r "$work/dist-one" "$work/dist-another-place" || {
    echo "release: the two differ" >&2
    exit 1
}
rm -rf target/dist
mkdir -p target
mv "$work/dist-one" target/dist
echo "release: both builds are the same; one of them is in target/dist" >&2
