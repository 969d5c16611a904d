#!/usr/bin/env bash
# Gets what the tests of the status page need beside the control plane: Chromium with its driver, and axe-core, which looks for
# what people who see or hear differently stumble over. Exit code 1, with what is missing, where that cannot be had.
set -euo pipefail

axe=4.14.1
out=target/tools/axe

say() { echo "browser: $*" >&2; }

if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
    if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
        say "installing Debian's chromium and chromium-driver"
        { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium chromium-driver fonts-dejavu-core; } >/dev/null ||
            { say "chromium and chromium-driver cannot be installed"; exit 1; }
    else
        say "chromium and chromedriver are not here: install Debian's packages chromium and chromium-driver, or such"
        exit 1
    fi
fi

if [[ ! -f $out/axe-$axe.js ]]; then
    command -v npm >/dev/null || { say "npm is not here, by which axe-core is had"; exit 1; }
    mkdir -p "$out"
    package=$(cd "$out" && npm pack --silent "axe-core@$axe") || { say "axe-core $axe cannot be had"; exit 1; }
    tar -xzf "$out/$package" -C "$out" package/axe.min.js
    mv "$out/package/axe.min.js" "$out/axe-$axe.js"
    rm -r "$out/package" "${out:?}/$package"
fi
ln -sfn "axe-$axe.js" "$out/axe.js"
