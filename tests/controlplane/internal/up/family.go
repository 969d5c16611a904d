package up

// family is what differs between a cluster of IPv4 and one of IPv6.
type family struct {
	loopback string
	// services is the range of their addresses, apiserver the first of it.
	services, apiserver string
	// pods has enough addresses for any test; kwok's default has 254.
	pods string
}

var (
	ipv4 = family{"127.0.0.1", "10.96.0.0/16", "10.96.0.1", "10.128.0.0/9"}
	ipv6 = family{"::1", "fd00:10:96::/112", "fd00:10:96::1", "fd00:10:128::/64"}
)

func (o *options) family() family {
	if o.ipv6 {
		return ipv6
	}
	return ipv4
}
