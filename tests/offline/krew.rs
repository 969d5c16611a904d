//! The krew manifest of a release has the shape of krew's types, and valid values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use ring::digest;
use serde::Deserialize;

/// The manifest; krew refuses unknown fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Plugin {
    api_version: String,
    kind: String,
    metadata: BTreeMap<String, String>,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    version: String,
    homepage: String,
    short_description: String,
    description: String,
    caveats: String,
    platforms: Vec<Platform>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Platform {
    selector: Selector,
    uri: String,
    sha256: String,
    bin: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

const URL: &str = "https://example.com/rolegate/releases";

fn release(folder: &Path) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/krew/release.sh");
    Command::new(script).arg(URL).arg(folder).output().unwrap()
}

#[test]
fn a_release_has_a_manifest_that_krew_takes() {
    let folder = tempfile::tempdir().unwrap();
    let archives = ["linux_amd64", "linux_arm64"];
    let sums: Vec<_> = archives
        .iter()
        .map(|platform| {
            fs::write(folder.path().join(format!("rolegate_{platform}.tar.gz")), platform).unwrap();
            let sum = digest::digest(&digest::SHA256, platform.as_bytes());
            sum.as_ref().iter().fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").unwrap();
                text
            })
        })
        .collect();
    let output = release(folder.path());
    assert!(output.status.success(), "{output:?}");
    let plugin: Plugin = serde_saphyr::from_str(&String::from_utf8(output.stdout).unwrap()).unwrap();

    assert_eq!(plugin.api_version, "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((plugin.kind.as_str(), plugin.metadata["name"].as_str()), ("Plugin", "rolegate"));
    let Spec { version, homepage, short_description, description, caveats, platforms } = plugin.spec;
    assert_eq!(version, format!("v{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(homepage, URL);
    // Rules of krew's index: one short line without a full stop.
    assert!(short_description.len() <= 50 && !short_description.ends_with('.'), "{short_description}");
    assert!(!description.is_empty() && !caveats.is_empty());
    let labels: BTreeSet<_> = platforms.iter().map(|platform| platform.selector.match_labels.clone()).collect();
    assert_eq!((labels.len(), platforms.len()), (archives.len(), archives.len()), "one archive for each platform");
    for ((platform, archive), sum) in platforms.iter().zip(archives).zip(&sums) {
        let labels = &platform.selector.match_labels;
        assert_eq!(labels.keys().collect::<Vec<_>>(), ["arch", "os"]);
        assert_eq!(format!("{}_{}", labels["os"], labels["arch"]), archive);
        assert_eq!(platform.uri, format!("{URL}/{version}/rolegate_{archive}.tar.gz"));
        assert_eq!((&platform.sha256, platform.bin.as_str()), (sum, "rolegate"));
    }
}

#[test]
fn a_release_that_lacks_an_archive_has_no_manifest() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rolegate_linux_amd64.tar.gz"), "").unwrap();
    let output = release(folder.path());
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}
