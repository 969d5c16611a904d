//! Certificates from a pair of files, as in a mounted Secret.

use std::path::PathBuf;

use crate::tls::acceptor::CertStore;
use crate::tls::cert_info::CertError;
use crate::tls::files::PolledFiles;

/// Keeps a store equal to a pair of files.
pub fn cert_files(cert: impl Into<PathBuf>, key: impl Into<PathBuf>, store: CertStore) -> PolledFiles<2, CertError> {
    PolledFiles::new("certificate", [cert.into(), key.into()], move |[cert, key]| {
        let info = store.set(cert, key)?;
        tracing::info!(not_after = %info.not_after, fingerprint = info.fingerprint, "serving the certificate from files");
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

    use jiff::Timestamp;
    use tokio_util::sync::CancellationToken;

    use super::{
        super::{
            authority::{Issued, LeafSpec, new_ca, new_leaf},
            files::FilesError,
        },
        *,
    };

    fn leaf(name: &str) -> Issued {
        let now = Timestamp::now();
        new_leaf(&new_ca(now).unwrap(), &LeafSpec::for_names([name]), now).unwrap()
    }

    /// Writes a version of the Secret as the kubelet does: a new directory, then `..data` renamed over the old link.
    fn publish(volume: &Path, version: &str, cert: &str, key: &str) {
        let dir = volume.join(version);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("tls.crt"), cert).unwrap();
        fs::write(dir.join("tls.key"), key).unwrap();
        symlink(version, volume.join("..data_tmp")).unwrap();
        fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
        for name in ["tls.crt", "tls.key"] {
            let _ = symlink(Path::new("..data").join(name), volume.join(name));
        }
    }

    fn names(store: &CertStore) -> Vec<String> {
        store.info().map(|info| info.dns_names).unwrap_or_default()
    }

    #[tokio::test]
    async fn a_swapped_symlink_is_seen_and_a_broken_pair_keeps_the_old() {
        let volume = tempfile::tempdir().unwrap();
        let store = CertStore::empty();
        let mut files = cert_files(volume.path().join("tls.crt"), volume.path().join("tls.key"), store.clone());
        assert!(matches!(files.load().await, Err(FilesError::Read { .. })));
        let (one, two) = (leaf("one.example"), leaf("two.example"));
        publish(volume.path(), "..1", &one.cert_pem, &one.key_pem);
        assert!(files.load().await.unwrap());
        assert!(!files.load().await.unwrap());
        assert_eq!(names(&store), ["one.example"]);
        publish(volume.path(), "..2", &two.cert_pem, &one.key_pem);
        assert!(matches!(files.load().await, Err(FilesError::Refused(CertError::Pair(_)))));
        assert_eq!(names(&store), ["one.example"]);
        publish(volume.path(), "..3", &two.cert_pem, &two.key_pem);
        assert!(files.load().await.unwrap());
        assert_eq!(names(&store), ["two.example"]);
    }

    #[tokio::test]
    async fn the_loop_picks_up_changes_and_stops() {
        let volume = tempfile::tempdir().unwrap();
        let store = CertStore::empty();
        let stop = CancellationToken::new();
        let files = cert_files(volume.path().join("tls.crt"), volume.path().join("tls.key"), store.clone());
        let running = tokio::spawn(files.every(Duration::from_millis(5)).run(stop.clone()));
        let mut changes = store.changes();
        for (version, name) in [("..1", "one.example"), ("..2", "two.example")] {
            let leaf = leaf(name);
            publish(volume.path(), version, &leaf.cert_pem, &leaf.key_pem);
            tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.unwrap().unwrap();
            assert_eq!(names(&store), [name]);
        }
        stop.cancel();
        running.await.unwrap();
    }
}
