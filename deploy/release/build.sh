#!/usr/bin/env bash
# Builds what a release consists of: build.sh FOLDER [ARCH...]. The same commit gives the same bytes, whoever builds it and
# where, with the toolchain of rust-toolchain.toml and the C compilers of one distribution.
#
# amd64 and arm64 by default. What the machine is not needs a cross compiler (Debian: gcc-aarch64-linux-gnu and
# libc6-dev-arm64-cross, or gcc-x86-64-linux-gnu and libc6-dev-amd64-cross). RELEASE_URL is where the archives will be, for
# the manifest of krew. RELEASE_PROFILE=quick builds in a fraction of the time what is not to be released. Where qemu's user
# mode is (Debian: qemu-user-static), the binary for the other machine is run as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${1:?build.sh FOLDER [ARCH...]}
shift
archs=("$@")
[ $# -gt 0 ] || archs=(amd64 arm64)
profile=${RELEASE_PROFILE:-release}
tools=${RELEASE_TOOLS:-target/tools/bin}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

say() { echo "release: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

# The time of everything in the archives.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
# Where it was built says the binary nowhere, in Rust or in C.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
remapped="--remap-path-prefix=$PWD=/rolegate --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$sysroot=/rust"
export CFLAGS="-ffile-prefix-map=$PWD=/rolegate -ffile-prefix-map=$cargo_home=/cargo"
export RUSTFLAGS="-C target-feature=+crt-static $remapped"
export LC_ALL=C TZ=UTC

triple() {
    case $1 in
    amd64) echo x86_64-unknown-linux-gnu ;;
    arm64) echo aarch64-unknown-linux-gnu ;;
    *) fail "$1 is neither amd64 nor arm64" ;;
    esac
}

machine=$(case $(uname -m) in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) fail "no release is for $(uname -m)" ;; esac)

# Runs the binary of an architecture: run ARCH ARGUMENT...
run() {
    local arch=$1 emulator=()
    shift
    if [ "$arch" != "$machine" ]; then
        emulator=("$(emulator "$arch")")
    fi
    "${emulator[@]}" "$work/$arch/rolegate" "$@"
}

# What runs binaries of another architecture; nothing where there is none.
emulator() {
    local name=qemu-$(triple "$1")
    name=${name%%-unknown*}
    command -v "$name-static" || command -v "$name" || true
}

# A tar archive whose bytes depend on the files alone: pack ARCHIVE FOLDER NAME...
pack() {
    local archive=$1 from=$2
    shift 2
    tar --create --directory "$from" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w,a+X \
        --mtime="@$SOURCE_DATE_EPOCH" "$@" | gzip --no-name --best >"$archive"
}

rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say "licences of what is built in"
"$tools/cargo-about" generate --locked --fail --config deploy/release/about.toml \
    --output-file "$folder/THIRD-PARTY-LICENSES.txt" deploy/release/about.hbs

for arch in "${archs[@]}"; do
    target=$(triple "$arch")
    if [ "$target" != "$(rustc -vV | sed -n 's/^host: //p')" ]; then
        compiler=${target/-unknown/}-gcc
        command -v "$compiler" >/dev/null || fail "$arch takes the cross compiler $compiler"
        rustup target add "$target" >/dev/null 2>&1 || fail "the Rust library for $target cannot be had"
        upper=$(tr a-z- A-Z_ <<<"$target")
        export "CC_${target//-/_}=$compiler" "CARGO_TARGET_${upper}_LINKER=$compiler"
    fi
    say "rolegate for $arch"
    "$tools/cargo-auditable" auditable build --locked --profile "$profile" --bin rolegate --target "$target"
    into=$work/$arch
    mkdir -p "$into"
    install -m 755 "${CARGO_TARGET_DIR:-target}/$target/$profile/rolegate" "$into/rolegate"
    if readelf -lW "$into/rolegate" | grep -q INTERP; then
        fail "the binary for $arch is not static"
    fi
    cp LICENSE "$folder/THIRD-PARTY-LICENSES.txt" "$into/"
    pack "$folder/rolegate_linux_$arch.tar.gz" "$into" LICENSE THIRD-PARTY-LICENSES.txt rolegate
    "$tools/cargo-cyclonedx" cyclonedx --format json --spec-version 1.5 --no-build-deps --target "$target" \
        --override-filename "rolegate_linux_$arch.cdx"
    # When, where and under which number it was made is not what it says.
    rm -f "src/core/rolegate_linux_$arch.cdx.json"
    mv "rolegate_linux_$arch.cdx.json" "$folder/"
    sed -i -e '/"serialNumber"/d' -e '/"timestamp"/d' -e "s|file://$PWD|file:///rolegate|g" \
        "$folder/rolegate_linux_$arch.cdx.json"
done

say "manifests, chart and the manifest of krew"
# Of the binary that runs here; those that an emulator runs must print the same.
[ -x "$work/$machine/rolegate" ] || fail "build for this machine as well: its binary writes the manifests"
manifests() {
    run "$1" manifests >"$2/rolegate.yaml"
    run "$1" manifests --certificates cert-manager >"$2/rolegate-cert-manager.yaml"
    run "$1" manifests --part crds >"$2/rolegate-crds.yaml"
}
manifests "$machine" "$folder"
for arch in "${archs[@]}"; do
    [ "$arch" != "$machine" ] || continue
    if [ -z "$(emulator "$arch")" ]; then
        say "the binary for $arch was not run: no qemu is here"
        continue
    fi
    mkdir "$work/printed-$arch"
    manifests "$arch" "$work/printed-$arch"
    for printed in "$work/printed-$arch"/*; do
        cmp "$printed" "$folder/${printed##*/}" || fail "the binary for $arch prints another ${printed##*/}"
    done
    say "the binary for $arch was run under $(emulator "$arch"): it prints the same manifests"
done
cp -r deploy/chart "$work/rolegate"
pack "$folder/rolegate-$version.tgz" "$work" rolegate
pack "$folder/rolegate-policies.tar.gz" . policies
if [ -e "$folder/rolegate_linux_amd64.tar.gz" ] && [ -e "$folder/rolegate_linux_arm64.tar.gz" ]; then
    deploy/krew/release.sh "${RELEASE_URL:-RELEASE_URL}" "$folder" >"$folder/rolegate-krew.yaml"
    [ -n "${RELEASE_URL:-}" ] || say "rolegate-krew.yaml has RELEASE_URL where the address of the archives belongs"
else
    say "no manifest of krew: it names amd64 and arm64"
fi

deploy/release/provenance.sh "$folder" "$(git rev-parse HEAD)" "$profile" "${archs[@]}" >"$work/rolegate.intoto.json"
mv "$work/rolegate.intoto.json" "$folder/"
(cd "$folder" && sha256sum -- * >SHA256SUMS)
say "$folder:"
cat "$folder/SHA256SUMS" >&2
