package up

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// reservePort chooses a free port of a loopback address and holds it for the
// life of the launcher. The socket is bound but does not listen: with
// SO_REUSEPORT a component can still listen on the port, at once and again
// after a restart, while nothing else can get it, not even as the local port
// of a connection.
func reservePort(loopback net.IP) (int, error) {
	family, address := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: [16]byte(loopback.To16())})
	if v4 := loopback.To4(); v4 != nil {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte(v4)}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	if err := unix.Bind(fd, address); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	if v4, ok := sa.(*unix.SockaddrInet4); ok {
		return v4.Port, nil
	}
	return sa.(*unix.SockaddrInet6).Port, nil
}
