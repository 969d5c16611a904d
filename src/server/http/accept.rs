//! The accept loop: accepts connections up to a limit, and ends without losing a request.
//!
//! The API server keeps sending on open connections, even to a pod that is no longer ready. So a draining server first serves
//! everything, and each answer tells its caller to close the connection. Then the port closes, and requests in flight are
//! finished.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::FutureExt;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::server::http::connection;
use crate::server::http::connection::{Phase, Shared};
use crate::server::http::limits::Limits;
use crate::server::http::metrics::ServerMetrics;
use crate::server::http::places::Places;
use crate::server::http::timeouts::Timeouts;

/// Times of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// Time of further accepting, in which callers learn that this endpoint ends.
    pub grace: Duration,
    /// Time after that for requests in flight, before they are cut.
    pub deadline: Duration,
}

impl Default for Drain {
    fn default() -> Self {
        Self { grace: Duration::from_secs(3), deadline: Duration::from_secs(20) }
    }
}

/// The result of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were busy at the deadline and were cut.
    pub cut: usize,
}

/// One port: its socket, protocol and application.
pub struct Listener {
    pub socket: TcpListener,
    /// HTTPS with it, plain HTTP without (for the admin port).
    pub tls: Option<Arc<ServerConfig>>,
    pub app: Router,
    pub limits: Limits,
    pub metrics: ServerMetrics,
    pub drain: Drain,
}

impl Listener {
    /// Serves until `draining` is cancelled, then drains and returns. Dropping the future cuts every connection.
    pub async fn run(self, draining: CancellationToken) -> Drained {
        let Self { socket, tls, app, limits, metrics, drain } = self;
        let (phase, watched) = watch::channel(Phase::Open);
        let mut connections = Connections {
            places: Places::new(&limits),
            are_taken: false,
            tasks: JoinSet::new(),
            shared: Arc::new(Shared { tls, app, limits, metrics, phase: watched }),
            phase,
        };
        connections.accept_until(&socket, draining.cancelled()).await;
        connections.phase.send_replace(Phase::Draining);
        tracing::info!(open = connections.tasks.len(), "draining: telling callers to go elsewhere");
        connections.accept_until(&socket, sleep_until(Instant::now() + drain.grace)).await;
        // Connections that the kernel has already accepted would get a reset.
        while let (Some(()), Some(Ok((stream, _)))) =
            (connections.places.one_more().now_or_never(), socket.accept().now_or_never())
        {
            connections.start(stream);
        }
        drop(socket);
        connections.phase.send_replace(Phase::Closing);
        let cut = connections.finish(Instant::now() + drain.deadline).await;
        tracing::info!(cut, "drained");
        Drained { cut }
    }
}

struct Connections {
    places: Places,
    /// True after the log has reported that the places of newcomers are taken.
    are_taken: bool,
    tasks: JoinSet<()>,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
}

impl Connections {
    async fn accept_until(&mut self, socket: &TcpListener, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        let mut next_pause = FIRST_PAUSE;
        loop {
            // First a place, then a connection: a connection that cannot be served waits in the kernel, under its caller's
            // own timeout, and is not dropped.
            tokio::select! {
                biased;
                () = &mut end => return,
                () = self.places.one_more() => {}
            }
            let accepted = tokio::select! {
                biased;
                () = &mut end => return,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    next_pause = FIRST_PAUSE;
                    self.start(stream);
                }
                Err(error) => {
                    self.shared.metrics.accept_errors.inc();
                    let Some(pause) = pause_after(&error, &mut next_pause) else { continue };
                    tracing::warn!(%error, ?pause, "accept failed");
                    tokio::select! {
                        () = &mut end => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn start(&mut self, stream: TcpStream) {
        let shared = Arc::clone(&self.shared);
        let (open, timeouts) = (Open::new(&shared.metrics), Timeouts::new());
        let (place, displaces) = self.places.take(timeouts.clone());
        if displaces {
            shared.metrics.displaced.inc();
        }
        self.tell(displaces);
        self.tasks.spawn(async move {
            let _open = open;
            connection::serve(stream, shared, timeouts, place).await;
        });
    }

    /// Logs once that the places are taken, not for each connection.
    fn tell(&mut self, displaces: bool) {
        if displaces && !std::mem::replace(&mut self.are_taken, true) {
            let newcomers = self.shared.limits.newcomers;
            tracing::warn!(newcomers, "more new connections than there are places: the first make room for the last");
        } else if !displaces && !self.places.are_taken() {
            self.are_taken = false;
        }
    }

    async fn finish(&mut self, deadline: Instant) -> usize {
        while let Ok(Some(_)) = timeout_at(deadline, self.tasks.join_next()).await {}
        let cut = self.tasks.len();
        self.tasks.shutdown().await;
        cut
    }
}

/// Counts a connection as open until it is dropped, even by a panic.
struct Open(ServerMetrics);

impl Open {
    fn new(metrics: &ServerMetrics) -> Self {
        metrics.connections.inc();
        Self(metrics.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}

/// First pause after an error of `accept`.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Returns the pause after an error of `accept`, and doubles the next one; `None` for an error of one connection. Other errors,
/// such as too many open files, last, and an immediate retry would only burn the processor.
fn pause_after(error: &io::Error, next: &mut Duration) -> Option<Duration> {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
        return None;
    }
    let doubled = (*next * 2).min(Duration::from_secs(1));
    Some(std::mem::replace(next, doubled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_errors_back_off_and_passing_ones_do_not() {
        let mut next = FIRST_PAUSE;
        assert_eq!(pause_after(&io::ErrorKind::ConnectionAborted.into(), &mut next), None);
        // EMFILE
        let pauses: Vec<_> = (0..9).filter_map(|_| pause_after(&io::Error::from_raw_os_error(24), &mut next)).collect();
        assert_eq!(pauses.first(), Some(&Duration::from_millis(10)));
        assert_eq!(pauses.last(), Some(&Duration::from_secs(1)));
        assert!(pauses.is_sorted());
    }
}
