//! The provenance of a release.

use std::fs;
use std::process::Command;

use ring::digest;
use serde_json::{Value, json};

fn sha256(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[test]
fn the_statement_names_every_file_by_its_digest_and_the_commit() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("rolegate.yaml", "a"), ("rolegate_linux_amd64.tar.gz", "b"), ("SHA256SUMS", "c")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/release/provenance.sh");
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let run = || {
        let arguments = [commit, "release", "amd64", "arm64"];
        let output = Command::new(script).arg(folder.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let statement: Value = serde_json::from_slice(&run()).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    // The checksums are made after the statement, and include it.
    let subjects = [("rolegate.yaml", "a"), ("rolegate_linux_amd64.tar.gz", "b")];
    let subjects = subjects.map(|(name, text)| json!({ "name": name, "digest": { "sha256": sha256(text) } }));
    assert_eq!(statement["subject"], json!(subjects));
    let built = &statement["predicate"]["buildDefinition"];
    assert_eq!(built["externalParameters"]["architectures"], json!(["amd64", "arm64"]));
    assert_eq!(built["resolvedDependencies"][0]["digest"]["gitCommit"], commit);
    assert_eq!(run(), run(), "two builds say the same");
}
