//! Listening sockets.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// The kernel would buffer some MiB for each caller that sends faster than the server reads.
const RECEIVE_BUFFER: u32 = 64 << 10;
/// Connections that wait to be accepted; the kernel's default maximum. A caller beyond it retries after a second.
const BACKLOG: u32 = 4096;

/// A listening socket and its address, with the chosen port where any was allowed.
#[derive(Debug)]
pub struct Listening {
    pub socket: TcpListener,
    pub address: SocketAddr,
}

impl Listening {
    /// Listens at the address. `[::]` means every address, IPv4 included, whatever the default of the machine; without IPv6,
    /// every IPv4 address.
    ///
    /// # Errors
    /// When the address is taken, or is not one of this machine.
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
            // A machine may lack one of them.
            let has = std::net::TcpListener::bind((host, 0)).is_ok();
            assert_eq!(called.is_ok(), has, "{host}: {called:?}");
        }
        assert_eq!(Listening::at(listening.address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
