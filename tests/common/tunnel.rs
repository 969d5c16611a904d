//! An HTTP CONNECT or SOCKS 5 proxy, as in companies. Only the proxy can resolve the name of the API server, which is
//! on this machine.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// First byte of a SOCKS 5 client.
const SOCKS: u8 = 5;

/// A proxy; it ends on drop.
pub struct Tunnel {
    /// The listen address.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl Tunnel {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::default();
        let told = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(serve(BufReader::new(caller), Arc::clone(&told)));
            }
        });
        Self { address, asked, _task: AbortOnDropHandle::new(task) }
    }

    /// Returns protocol, host and port of each request since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

async fn serve(mut caller: BufReader<TcpStream>, asked: Arc<Mutex<Vec<String>>>) -> std::io::Result<()> {
    let is_socks = caller.fill_buf().await?.first() == Some(&SOCKS);
    let (target, answer) = if is_socks {
        (socks(&mut caller).await?, &[SOCKS, 0, 0, 1, 0, 0, 0, 0, 0, 0][..])
    } else {
        (connect(&mut caller).await?, &b"HTTP/1.1 200 OK\r\n\r\n"[..])
    };
    asked.lock().unwrap().push(format!("{} {target}", if is_socks { "SOCKS" } else { "CONNECT" }));
    let port = target.rsplit(':').next().unwrap().parse().unwrap();
    let mut server = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    caller.write_all(answer).await?;
    copy_bidirectional(&mut caller, &mut server).await.map(|_| ())
}

/// Reads a CONNECT request; returns its target.
async fn connect(caller: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| line != "\r\n") {
        let mut line = String::new();
        caller.read_line(&mut line).await?;
        lines.push(line);
    }
    Ok(lines[0].split(' ').nth(1).unwrap().to_owned())
}

/// Accepts a SOCKS client without a password; returns the requested name and port (RFC 1928).
async fn socks(caller: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let [_, methods] = read(caller).await?;
    caller.read_exact(&mut vec![0; methods.into()]).await?;
    caller.write_all(&[SOCKS, 0]).await?;
    let [_, _, _, kind, length] = read(caller).await?;
    assert_eq!(kind, 3, "a name, which is not looked up here");
    let mut name = vec![0; length.into()];
    caller.read_exact(&mut name).await?;
    let port = u16::from_be_bytes(read(caller).await?);
    Ok(format!("{}:{port}", String::from_utf8(name).unwrap()))
}

async fn read<const N: usize>(caller: &mut BufReader<TcpStream>) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    caller.read_exact(&mut bytes).await?;
    Ok(bytes)
}
