//! Files that may change at run time, and the use of their contents.
//!
//! The files are polled. A Secret volume changes by a swap of the `..data` symlink two levels up, which a watch on the file
//! does not see, and the kubelet itself is half a minute or more behind.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Reason for which files were not used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError<E> {
    /// A file can't be read.
    #[error("{path}: {source}", path = path.display())]
    Read {
        path: PathBuf,
        /// The error of the read.
        source: io::Error,
    },
    /// The contents can't be used.
    #[error(transparent)]
    Refused(E),
}

/// Uses the contents; on an error the former contents must stay in use.
type Take<const N: usize, E> = Box<dyn FnMut(&[Vec<u8>; N]) -> Result<(), E> + Send>;

/// A set of files that is polled.
pub struct PolledFiles<const N: usize, E> {
    what: &'static str,
    paths: [PathBuf; N],
    take: Take<N, E>,
    period: Duration,
    seen: Option<[Vec<u8>; N]>,
    complaint: Option<String>,
}

impl<const N: usize, E: Error + Send + 'static> PolledFiles<N, E> {
    /// Polls the files every five seconds. `what` names them in the log.
    pub fn new(
        what: &'static str,
        paths: [PathBuf; N],
        take: impl FnMut(&[Vec<u8>; N]) -> Result<(), E> + Send + 'static,
    ) -> Self {
        Self { what, paths, take: Box::new(take), period: Duration::from_secs(5), seen: None, complaint: None }
    }

    #[must_use]
    pub fn every(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Reads the files once; returns `true` if they were new and are used.
    ///
    /// # Errors
    /// [`FilesError`]; the former contents stay in use.
    pub async fn load(&mut self) -> Result<bool, FilesError<E>> {
        let mut found = [const { Vec::new() }; N];
        for (text, path) in found.iter_mut().zip(&self.paths) {
            *text = tokio::fs::read(path).await.map_err(|source| FilesError::Read { path: path.clone(), source })?;
        }
        if self.seen.as_ref() == Some(&found) {
            return Ok(false);
        }
        (self.take)(&found).map_err(FilesError::Refused)?;
        // Only on success: files read half before and half after a swap must be read again.
        self.seen = Some(found);
        Ok(true)
    }

    /// Polls the files until `stop` is cancelled. Logs an error when it appears, not at every poll.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let complaint = self.load().await.err().map(|error| error.to_string());
            if complaint != self.complaint {
                if let Some(why) = &complaint {
                    tracing::warn!(why, what = self.what, "files not taken; those before stay in use");
                } else {
                    tracing::info!(what = self.what, "files are good again");
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
