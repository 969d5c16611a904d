//! Certificates from a pair of files, as a mounted Secret has them.
//!
//! The files are polled. A Secret volume changes by a swap of the `..data` symlink two levels up, which a watch on the file
//! does not see, and the kubelet itself is half a minute or more behind.

use std::{io, path::PathBuf, time::Duration};

use tokio_util::sync::CancellationToken;

use super::tls::{CertError, CertStore};

/// Why the files were not taken.
#[derive(Debug, thiserror::Error)]
pub enum CertFilesError {
    /// A file can't be read.
    #[error("{path}: {source}", path = path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// They are no usable pair.
    #[error(transparent)]
    Cert(#[from] CertError),
}

/// Keeps a [`CertStore`] equal to a pair of files.
#[derive(Debug)]
pub struct CertFiles {
    cert: PathBuf,
    key: PathBuf,
    store: CertStore,
    period: Duration,
    seen: Option<(Vec<u8>, Vec<u8>)>,
    complaint: Option<String>,
}

impl CertFiles {
    /// Looks at the files every five seconds.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>, store: CertStore) -> Self {
        Self { cert: cert.into(), key: key.into(), store, period: Duration::from_secs(5), seen: None, complaint: None }
    }

    /// Looks at the files this often instead.
    #[must_use]
    pub fn every(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Looks at the files once. `true` if they were new and are served now.
    ///
    /// # Errors
    /// [`CertFilesError`]; what was served before still is.
    pub async fn load(&mut self) -> Result<bool, CertFilesError> {
        let found = (read(&self.cert).await?, read(&self.key).await?);
        if self.seen.as_ref() == Some(&found) {
            return Ok(false);
        }
        let info = self.store.set(&found.0, &found.1)?;
        // Only now: a pair read half before and half after a swap must be looked at again.
        self.seen = Some(found);
        tracing::info!(not_after = %info.not_after, fingerprint = info.fingerprint, "serving the certificate from files");
        Ok(true)
    }

    /// Looks at the files until `stop` is cancelled. An error is logged when it appears, not at every look.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let complaint = self.load().await.err().map(|error| error.to_string());
            if complaint != self.complaint {
                if let Some(why) = &complaint {
                    tracing::warn!(why, serving = self.store.is_loaded(), "certificate files not taken");
                } else {
                    tracing::info!("certificate files are good again");
                }
                self.complaint = complaint;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.period) => {}
            }
        }
    }
}

async fn read(path: &PathBuf) -> Result<Vec<u8>, CertFilesError> {
    tokio::fs::read(path).await.map_err(|source| CertFilesError::Read { path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use jiff::Timestamp;

    use super::{
        super::authority::{Issued, LeafSpec, new_ca, new_leaf},
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
        let mut files = CertFiles::new(volume.path().join("tls.crt"), volume.path().join("tls.key"), store.clone());
        assert!(matches!(files.load().await, Err(CertFilesError::Read { .. })));
        let (one, two) = (leaf("one.example"), leaf("two.example"));
        publish(volume.path(), "..1", &one.cert_pem, &one.key_pem);
        assert!(files.load().await.unwrap());
        assert!(!files.load().await.unwrap());
        assert_eq!(names(&store), ["one.example"]);
        publish(volume.path(), "..2", &two.cert_pem, &one.key_pem);
        assert!(matches!(files.load().await, Err(CertFilesError::Cert(CertError::Pair(_)))));
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
        let files = CertFiles::new(volume.path().join("tls.crt"), volume.path().join("tls.key"), store.clone());
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
