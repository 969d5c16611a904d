//! Viewers of a group's status page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::common::http::handshake;

/// Streams of pictures of one group, read as fast as they arrive.
pub struct Viewers {
    readers: JoinSet<()>,
    pictures: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
}

impl Viewers {
    /// Opens the streams of a page: `/page/groups/NAMESPACE/GROUP`.
    pub async fn look(admin: SocketAddr, path: &str, count: usize) -> Self {
        let mut viewers = Self { readers: JoinSet::new(), pictures: Arc::default(), bytes: Arc::default() };
        for _ in 0..count {
            let mut sender = handshake(TcpStream::connect(admin).await.unwrap()).await.unwrap();
            let request = Request::get(path).header("host", admin.to_string());
            let answer = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            let (mut body, pictures, bytes) = (answer.into_body(), viewers.pictures.clone(), viewers.bytes.clone());
            viewers.readers.spawn(async move {
                let _connection = sender;
                while let Some(Ok(frame)) = body.frame().await {
                    let data = frame.into_data().unwrap_or_default();
                    pictures.fetch_add(usize::from(data.ends_with(b"\n\n")), Ordering::Relaxed);
                    bytes.fetch_add(data.len(), Ordering::Relaxed);
                }
            });
        }
        viewers
    }

    /// Describes what the viewers received.
    pub fn seen(self) -> String {
        let (viewers, of) = (self.readers.len(), |count: &AtomicUsize| count.load(Ordering::Relaxed));
        let megabytes = of(&self.bytes) as f64 / f64::from(1 << 20);
        format!("{viewers} viewers were sent {} pictures, {megabytes:.1} MiB", of(&self.pictures))
    }
}
