package up

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reservePort chooses a free loopback port and holds it for the life of the
// launcher. The socket is bound but does not listen: with SO_REUSEPORT a
// component can still listen on the port, at once and again after a restart,
// while nothing else can get it, not even as the local port of a connection.
func reservePort() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	return sa.(*unix.SockaddrInet4).Port, nil
}
