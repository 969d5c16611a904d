//! Files that may change while we run, and what is made of them.
//!
//! They are polled. A Secret volume changes by a swap of the `..data` symlink two levels up, which a watch on the file does
//! not see, and the kubelet itself is half a minute or more behind.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use tokio_util::sync::CancellationToken;

/// Why files were not taken.
#[derive(Debug, thiserror::Error)]
pub enum FilesError<E> {
    /// A file can't be read.
    #[error("{path}: {source}", path = path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What they say can't be used.
    #[error(transparent)]
    Refused(E),
}

/// What takes the contents; on an error, what was taken before must stay in use.
type Take<const N: usize, E> = Box<dyn FnMut(&[Vec<u8>; N]) -> Result<(), E> + Send>;

/// Files that belong together, looked at again and again.
pub struct PolledFiles<const N: usize, E> {
    what: &'static str,
    paths: [PathBuf; N],
    take: Take<N, E>,
    period: Duration,
    seen: Option<[Vec<u8>; N]>,
    complaint: Option<String>,
}

impl<const N: usize, E: Error + Send + 'static> PolledFiles<N, E> {
    /// Looks at the files every five seconds. `what` names them in the log.
    pub fn new(
        what: &'static str,
        paths: [PathBuf; N],
        take: impl FnMut(&[Vec<u8>; N]) -> Result<(), E> + Send + 'static,
    ) -> Self {
        Self { what, paths, take: Box::new(take), period: Duration::from_secs(5), seen: None, complaint: None }
    }

    /// Looks at the files this often instead.
    #[must_use]
    pub fn every(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Looks at the files once. `true` if they were new and are taken.
    ///
    /// # Errors
    /// [`FilesError`]; what was taken before still is in use.
    pub async fn load(&mut self) -> Result<bool, FilesError<E>> {
        let mut found = [const { Vec::new() }; N];
        for (text, path) in found.iter_mut().zip(&self.paths) {
            *text = tokio::fs::read(path).await.map_err(|source| FilesError::Read { path: path.clone(), source })?;
        }
        if self.seen.as_ref() == Some(&found) {
            return Ok(false);
        }
        (self.take)(&found).map_err(FilesError::Refused)?;
        // Only now: files read half before and half after a swap must be looked at again.
        self.seen = Some(found);
        Ok(true)
    }

    /// Looks at the files until `stop` is cancelled. An error is logged when it appears, not at every look.
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

impl<const N: usize, E> fmt::Debug for PolledFiles<N, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolledFiles").field("paths", &self.paths).finish_non_exhaustive()
    }
}
