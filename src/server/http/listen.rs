//! The sockets that callers come to.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// The kernel would keep some MiB for each caller who sends faster than is read.
const RECEIVE_BUFFER: u32 = 64 << 10;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// A socket that listens, and where: the port that was chosen, where any was asked for.
#[derive(Debug)]
pub struct Listening {
    /// Accepts.
    pub socket: TcpListener,
    /// Its address.
    pub address: SocketAddr,
}

impl Listening {
    /// Listens at the address.
    ///
    /// # Errors
    /// It is taken, or not this machine's.
    pub fn at(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        socket.bind(address)?;
        let socket = socket.listen(BACKLOG)?;
        Ok(Self { address: socket.local_addr()?, socket })
    }
}
