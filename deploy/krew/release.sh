#!/usr/bin/env bash
# Prints the krew manifest of a release: release.sh URL FOLDER. The archives rolegate_OS_ARCH.tar.gz are in the folder, and
# will be at URL/vVERSION/.
set -euo pipefail
url=$1 folder=$2
manifest=$(grep -v '^#' "$(dirname "${BASH_SOURCE[0]}")/rolegate.yaml")
manifest=${manifest//RELEASE_URL/$url}
for platform in $(grep -o 'SHA256_[a-z0-9_]*' <<<"$manifest"); do
    archive=$folder/rolegate_${platform#SHA256_}.tar.gz
    sum=$(sha256sum "$archive")
    manifest=${manifest//$platform/${sum%% *}}
done
printf '%s\n' "$manifest"
