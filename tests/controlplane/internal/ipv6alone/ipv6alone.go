// Package ipv6alone is `rig ipv6-alone`: it makes a new network namespace one
// of IPv6 alone, and then becomes the command that follows.
package ipv6alone

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

const usage = "usage: unshare --net [--user --map-root-user] rig ipv6-alone ADDRESS COMMAND [ARGS]"

// Main returns the exit code if there is no command to become.
func Main(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	if err := run(args[0], args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rig ipv6-alone:", err)
	}
	return 1
}

func run(address string, command []string) error {
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	if err := isNew(); err != nil {
		return err
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	if err := addAddress(address); err != nil {
		return fmt.Errorf("%s on lo: %w", address, err)
	}
	return unix.Exec(program, command, os.Environ())
}

// isNew keeps us from taking 127.0.0.1 away from a whole machine.
func isNew() error {
	links, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, link := range links {
		if link.Name != "lo" || link.Flags&net.FlagUp != 0 {
			return errors.New("this is not a new network namespace: " + usage)
		}
	}
	return nil
}

// raiseLoopback sets lo up, by which it gets both addresses, and takes that of
// IPv4 away.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return err
	}
	if err := lo.SetInet4Addr([]byte{0, 0, 0, 0}); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, lo)
}

// addAddress gives lo one more address, which a Service may have: nothing here
// leads the addresses of Services to pods.
func addAddress(address string) error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// struct in6_ifreq of linux/ipv6.h.
	request := struct {
		address [16]byte
		prefix  uint32
		index   int32
	}{prefix: 128, index: int32(lo.Index)}
	copy(request.address[:], net.ParseIP(address).To16())
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}
