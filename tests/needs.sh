#!/usr/bin/env bash
# Gets what tests need beside the control plane: needs.sh browser|valgrind.
#
#   browser   Chromium with its driver, and axe-core, which looks for what people who see or hear differently stumble over
#   valgrind  counts instructions
#
# Exit code 1, with the missing program, where it cannot be had.
set -euo pipefail

axe=4.14.1
out=target/tools/axe

say() { echo "needs: $*" >&2; }

# Installs PACKAGE... of Debian unless each of these PROGRAMs is there: debian PROGRAM,... PACKAGE...
debian() {
    local programs=${1//,/ } missing=() program
    for program in $programs; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    shift
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
        say "${missing[*]} is not here: install Debian's packages $*, or such"
        return 1
    fi
    say "installing Debian's $*"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"; } >/dev/null ||
        { say "$* cannot be installed"; return 1; }
}

browser() {
    debian chromium,chromedriver chromium chromium-driver fonts-dejavu-core
    if [[ ! -f $out/axe-$axe.js ]]; then
        command -v npm >/dev/null || { say "npm is not here, by which axe-core is had"; exit 1; }
        mkdir -p "$out"
        package=$(cd "$out" && npm pack --silent "axe-core@$axe") || { say "axe-core $axe cannot be had"; exit 1; }
        tar -xzf "$out/$package" -C "$out" package/axe.min.js
        mv "$out/package/axe.min.js" "$out/axe-$axe.js"
        rm -r "$out/package" "${out:?}/$package"
    fi
    ln -sfn "axe-$axe.js" "$out/axe.js"
}

case ${1-} in
browser) browser ;;
valgrind) debian valgrind valgrind ;;
*) say "usage: needs.sh browser|valgrind"; exit 2 ;;
esac
