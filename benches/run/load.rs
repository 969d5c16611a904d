//! The load: sixteen concurrent requests, each on its own connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use crate::common::http::Caller;

/// Concurrent requests.
const AT_A_TIME: usize = 16;

/// Opens the connections.
pub async fn connect(address: SocketAddr, ca: &[u8]) -> Vec<Caller> {
    let mut callers = Vec::new();
    for _ in 0..AT_A_TIME {
        callers.push(Caller::connect(address, ca).await);
    }
    callers
}

/// Callers, and the bodies that they send in turn.
pub struct Load {
    pub callers: Vec<Caller>,
    pub bodies: Vec<Bytes>,
}

impl Load {
    /// Sends requests as soon as a caller has its answer. Returns the time of each request.
    pub async fn closed(self, count: usize) -> (Self, Vec<Duration>) {
        let sent = Arc::new(AtomicUsize::new(0));
        let bodies = self.bodies.clone();
        self.each(move |mut caller| {
            let (sent, bodies) = (sent.clone(), bodies.clone());
            async move {
                let mut times = Vec::new();
                loop {
                    let number = sent.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return (caller, times);
                    }
                    let start = Instant::now();
                    post(&mut caller, &bodies[number % bodies.len()]).await;
                    times.push(start.elapsed());
                }
            }
        })
        .await
    }

    /// Sends requests at a fixed rate, regardless of answers, from the first free caller. Returns the time from due to
    /// answered of each request, so that a stall counts for all requests that come due during it.
    pub async fn open(self, rate: u32, time: Duration) -> (Self, Vec<Duration>) {
        let (due, queue) = mpsc::unbounded_channel();
        // A thread, because the runtime's timer has a resolution of milliseconds.
        let clock = std::thread::spawn(move || {
            let start = Instant::now();
            for moment in (0..).map(|number| start + Duration::from_secs(1) * number / rate) {
                if moment > start + time {
                    return;
                }
                std::thread::sleep(moment.saturating_duration_since(Instant::now()));
                _ = due.send(moment);
            }
        });
        let (queue, sent, bodies) = (Arc::new(Mutex::new(queue)), Arc::new(AtomicUsize::new(0)), self.bodies.clone());
        let done = self
            .each(move |mut caller| {
                let (queue, sent, bodies) = (queue.clone(), sent.clone(), bodies.clone());
                async move {
                    let mut times = Vec::new();
                    loop {
                        let next = queue.lock().await.recv().await;
                        let Some(moment) = next else { return (caller, times) };
                        let number = sent.fetch_add(1, Ordering::Relaxed);
                        post(&mut caller, &bodies[number % bodies.len()]).await;
                        times.push(moment.elapsed());
                    }
                }
            })
            .await;
        clock.join().unwrap();
        done
    }

    async fn each<F>(self, work: impl Fn(Caller) -> F) -> (Self, Vec<Duration>)
    where
        F: Future<Output = (Caller, Vec<Duration>)> + Send + 'static,
    {
        let tasks: Vec<_> = self.callers.into_iter().map(|caller| tokio::spawn(work(caller))).collect();
        let (callers, times): (_, Vec<_>) = join_all(tasks).await.into_iter().map(Result::unwrap).unzip();
        (Self { callers, bodies: self.bodies }, times.concat())
    }
}

/// Callers that send large reviews without a pause, until dropped.
pub struct Crowd(Vec<JoinHandle<()>>);

impl Crowd {
    /// Starts this number of callers.
    pub async fn start(address: SocketAddr, ca: &[u8], body: &Bytes, callers: usize) -> Self {
        let mut crowd = Self(Vec::new());
        for _ in 0..callers {
            let (mut caller, body) = (Caller::connect(address, ca).await, body.clone());
            crowd.0.push(tokio::spawn(async move {
                // An answer that asks to retry counts too.
                while caller.post("/validate", body.clone()).await.is_ok() {}
            }));
        }
        crowd
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

async fn post(caller: &mut Caller, body: &Bytes) {
    let (status, answer) = caller.post("/mutate", body.clone()).await.unwrap();
    assert_eq!(status, 200, "{answer:?}");
}
