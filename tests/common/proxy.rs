//! A TCP proxy that delays, cuts and loses: a slow or broken network to the API server, or the Service before two rolegates.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A proxy; it ends with this handle.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    link: Arc<Link>,
    task: JoinHandle<()>,
}

struct Link {
    targets: Mutex<Vec<SocketAddr>>,
    /// How late bytes arrive that come from the target.
    delay: Mutex<Duration>,
    /// Requests get lost.
    silent: watch::Sender<bool>,
    /// Connections end when it changes.
    cuts: watch::Sender<u64>,
}

impl Proxy {
    /// Starts one before a target.
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

    /// New connections go to the first of these that answers.
    pub fn lead_to(&self, targets: &[SocketAddr]) {
        *self.link.targets.lock().unwrap() = targets.to_vec();
    }

    /// From now on bytes from the target arrive this late, on open connections too. Their order stays.
    pub fn delay(&self, delay: Duration) {
        *self.link.delay.lock().unwrap() = delay;
    }

    /// From now on a request is taken and never answered, on open connections and on new ones. What is still being answered
    /// goes on, as every watch does: nobody says anything on the connection of a watch.
    pub fn silence(&self) {
        self.link.silent.send_replace(true);
    }

    /// From now on requests are answered again. Those that were lost stay lost, with their connections.
    pub fn speak(&self) {
        self.link.silent.send_replace(false);
    }

    /// Ends every open connection. New ones are served.
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
                // The target is done: its caller is told so, and says for itself when it is.
                _ = caller_out.shutdown().await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = there => {}
                () = back => {}
                // Ends the bytes on their way only when the target is done and all have arrived.
                () = async { self.read(target_in, late).await; std::future::pending().await } => {}
                _ = cut.changed() => {}
            }
            return;
        }
    }

    /// Hands on what the caller says, up to the first request that gets lost. Ends with the caller.
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
