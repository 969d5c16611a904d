//! A TCP proxy that delays, cuts and loses: a slow or broken network to the API server, or the Service of two
//! rolegates.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A proxy; it ends on drop.
pub struct Proxy {
    /// The listen address.
    pub address: SocketAddr,
    link: Arc<Link>,
    task: JoinHandle<()>,
}

struct Link {
    targets: Mutex<Vec<SocketAddr>>,
    /// Delay of bytes from the target.
    delay: Mutex<Duration>,
    /// Whether requests are lost.
    silent: watch::Sender<bool>,
    /// A change ends all connections.
    cuts: watch::Sender<u64>,
}

impl Proxy {
    /// Starts a proxy for a target.
    pub async fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let link = Arc::new(Link {
            targets: Mutex::new(vec![target]),
            delay: Mutex::new(Duration::ZERO),
            silent: watch::Sender::new(false),
            cuts: watch::Sender::new(0),
        });
        let accepting = link.clone();
        let task = tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().serve(caller));
            }
        });
        Self { address, link, task }
    }

    /// Connects new connections to the first of these targets that answers.
    pub fn lead_to(&self, targets: &[SocketAddr]) {
        *self.link.targets.lock().unwrap() = targets.to_vec();
    }

    /// Delays bytes from the target from now on, also on open connections. Their order is kept.
    pub fn delay(&self, delay: Duration) {
        *self.link.delay.lock().unwrap() = delay;
    }

    /// Loses requests from now on, on open and new connections. Answers in progress continue, so watches do too: no
    /// requests follow on their connections.
    pub fn silence(&self) {
        self.link.silent.send_replace(true);
    }

    /// Answers requests again. Lost requests stay lost, and so do their connections.
    pub fn speak(&self) {
        self.link.silent.send_replace(false);
    }

    /// Ends every open connection. New connections are accepted.
    pub fn cut(&self) {
        self.link.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        self.cut();
    }
}

impl Link {
    async fn serve(self: Arc<Self>, caller: TcpStream) {
        let mut cut = self.cuts.subscribe();
        let targets = self.targets.lock().unwrap().clone();
        for target in targets {
            let Ok(target) = TcpStream::connect(target).await else { continue };
            let (mut caller_in, mut caller_out) = caller.into_split();
            let (target_in, mut target_out) = target.into_split();
            let (late, mut due) = mpsc::channel::<(Instant, Vec<u8>)>(1024);
            let there = self.ask(&mut caller_in, &mut target_out);
            let back = async {
                while let Some((at, bytes)) = due.recv().await {
                    tokio::time::sleep_until(at).await;
                    if caller_out.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                // The target has closed its side: the caller is told, and closes its own side when it is done.
                _ = caller_out.shutdown().await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = there => {}
                () = back => {}
                // Ends the delayed bytes only when the target has closed and all bytes have arrived.
                () = async { self.read(target_in, late).await; std::future::pending().await } => {}
                _ = cut.changed() => {}
            }
            return;
        }
    }

    /// Forwards bytes from the caller until a request is lost. Ends with the caller.
    async fn ask(&self, caller: &mut OwnedReadHalf, target: &mut OwnedWriteHalf) {
        let mut buffer = vec![0; 64 << 10];
        let mut lost = false;
        while let Ok(count @ 1..) = caller.read(&mut buffer).await {
            lost |= *self.silent.borrow();
            if !lost && target.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    }

    async fn read(&self, mut target: OwnedReadHalf, late: mpsc::Sender<(Instant, Vec<u8>)>) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = target.read(&mut buffer).await {
            let at = Instant::now() + *self.delay.lock().unwrap();
            if late.send((at, buffer[..count].to_vec())).await.is_err() {
                return;
            }
        }
    }
}
