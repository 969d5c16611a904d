//! The sockets that callers come to.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// The kernel would keep some MiB for each caller who sends faster than is read.
const RECEIVE_BUFFER: u32 = 64 << 10;
/// Connections that wait to be accepted; the kernel allows no more by default. One for which there is no room here comes again a
/// second later.
const BACKLOG: u32 = 4096;

/// A socket that listens, and where: the port that was chosen, where any was asked for.
#[derive(Debug)]
pub struct Listening {
    /// Accepts.
    pub socket: TcpListener,
    /// Its address.
    pub address: SocketAddr,
}

impl Listening {
    /// Listens at the address. `[::]` is every address, also those of IPv4, whatever the machine does by default; where it has no
    /// IPv6 at all, those of IPv4.
    ///
    /// # Errors
    /// It is taken, or not this machine's.
    pub fn at(address: SocketAddr) -> io::Result<Self> {
        let every = address.is_ipv6() && address.ip().is_unspecified();
        match Self::bound(address, every) {
            Err(error) if every && error.kind() != io::ErrorKind::AddrInUse => {
                Self::bound(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()), false).map_err(|_| error)
            }
            bound => bound,
        }
    }

    fn bound(address: SocketAddr, every: bool) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if every {
            rustix::net::sockopt::set_ipv6_v6only(&socket, false)?;
        }
        socket.set_reuseaddr(true)?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        socket.bind(address)?;
        let socket = socket.listen(BACKLOG)?;
        Ok(Self { address: socket.local_addr()?, socket })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    fn port(listening: &Listening) -> u16 {
        listening.address.port()
    }

    #[tokio::test]
    async fn every_address_is_listened_at_of_both_families() {
        let listening = Listening::at("[::]:0".parse().unwrap()).unwrap();
        for host in ["127.0.0.1", "::1"] {
            let called = TcpStream::connect((host, port(&listening)));
            // A machine may lack one of them, and then nobody calls by it.
            let has = std::net::TcpListener::bind((host, 0)).is_ok();
            assert_eq!(called.is_ok(), has, "{host}: {called:?}");
        }
        assert_eq!(Listening::at(listening.address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
