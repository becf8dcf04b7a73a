package kube

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below the range that Linux gives to outgoing connections (32768 and up), so that a port stays free
// while the API server is down.
const (
	firstPort = 20000
	portCount = 12000
)

// Port reserves a free TCP port of 127.0.0.1 for the life of the cluster.
//
// The UDP port of the same number is held as the reservation, so that clusters of other test processes leave the TCP port
// alone also before a program listens on it.
func (c *Cluster) Port() int {
	c.tb.Helper()
	for range 100 {
		number := firstPort + rand.IntN(portCount)
		address := fmt.Sprintf("127.0.0.1:%d", number)
		reservation, err := net.ListenPacket("udp", address) //nolint:noctx // returns at once.
		if err != nil {
			continue
		}
		probe, err := net.Listen("tcp", address) //nolint:noctx // returns at once.
		if err != nil {
			_ = reservation.Close()
			continue
		}
		_ = probe.Close()
		c.tb.Cleanup(func() { _ = reservation.Close() })
		return number
	}
	c.tb.Fatal("found no free port on 127.0.0.1")
	return 0
}
