//! The manifest for krew, kubectl's plugin manager, which installs the program as `kubectl rolegate`.
//! `deploy/krew/release.sh` fills in the URL and the sums of the release.

use serde_json::{Value, json};

/// Platforms of the release archives.
const PLATFORMS: &[(&str, &str)] = &[("linux", "amd64"), ("linux", "arm64")];

const DESCRIPTION: &str = "Shows which pods rolegate holds at admission, why, and what releases them: `status` groups with \
their batches, `explain` a pod or a group, `fit` how many batches have room and where, `doctor` whether an installation is \
well, `release` pods by hand in an emergency. `check`, `mutate` and `plan` answer for files, without a cluster.";

const CAVEATS: &str = "For completions, put a link kubectl_complete-rolegate to the same program on your PATH.";

/// Returns the manifest with the placeholders `RELEASE_URL` and `SHA256_…`.
pub(super) fn manifest() -> Value {
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let platform = |(os, arch): &(&str, &str)| {
        json!({
            "selector": { "matchLabels": { "os": os, "arch": arch } },
            "uri": format!("RELEASE_URL/{version}/rolegate_{os}_{arch}.tar.gz"),
            "sha256": format!("SHA256_{os}_{arch}"),
            "bin": "rolegate",
        })
    };
    json!({
        "#": "RELEASE_URL and the sums are filled in at a release, by release.sh beside this file.",
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": { "name": "rolegate" },
        "spec": {
            "version": version,
            "homepage": "RELEASE_URL",
            "shortDescription": "Show and explain pods that rolegate holds",
            "description": DESCRIPTION,
            "caveats": CAVEATS,
            "platforms": PLATFORMS.iter().map(platform).collect::<Vec<_>>(),
        },
    })
}
