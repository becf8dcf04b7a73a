package l7_test

import (
	"testing"
	"time"

	"github.com/weir-lb/weir/internal/core/pick"
	"github.com/weir-lb/weir/internal/l7"
)

func TestProtocolsByAppProtocol(t *testing.T) {
	for name, want := range map[string]l7.Protocol{
		"": l7.Detect, "http": l7.HTTP, "HTTP": l7.HTTP, "grpc-web": l7.HTTP, "kubernetes.io/h2c": l7.H2C, "h2c": l7.H2C,
		"http2": l7.H2C, "grpc": l7.GRPC, "kubernetes.io/ws": l7.WebSocket, "kubernetes.io/wss": l7.TCP, "https": l7.TCP,
		"tls": l7.TCP, "mysql": l7.TCP, "example.com/mine": l7.TCP,
	} {
		if got := l7.ProtocolOf(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

func TestWhatBeginsLikeHTTP(t *testing.T) {
	for begin, want := range map[string]struct {
		protocol l7.Protocol
		sure     bool
	}{
		"":                   {l7.TCP, false},
		"G":                  {l7.TCP, false},
		"GET ":               {l7.HTTP, true},
		"GET / HTTP/1.1\r\n": {l7.HTTP, true},
		"PRI * HTTP/2.0\r":   {l7.TCP, false},
		"PRI * HTTP/2.0\r\n": {l7.HTTP, true},
		"PROPFIND /":         {l7.HTTP, true},
		"CONNECT h:1":        {l7.TCP, true},
		"get ":               {l7.TCP, true},
		"GETS":               {l7.TCP, true},
		"EHLO h":             {l7.TCP, true},
		"\x16\x03\x01":       {l7.TCP, true},
	} {
		if p, sure := l7.DetectBytes(begin); p != want.protocol || sure != want.sure {
			t.Errorf("%q: got %v %v, want %v", begin, p, sure, want)
		}
	}
}

func TestOutcomesByStatus(t *testing.T) {
	failures := map[int]pick.Outcome{
		500: pick.ServerError, 502: pick.GatewayError, 503: pick.GatewayError, 504: pick.GatewayError, 429: pick.Failure,
	}
	for status := 200; status < 600; status++ {
		want := failures[status] // or Success
		if got := l7.OutcomeOfStatus(status); got != want {
			t.Errorf("%d: got %v, want %v", status, got, want)
		}
	}
}

func TestOutcomesByGRPCStatus(t *testing.T) {
	for field, want := range map[string]pick.Outcome{
		"0": pick.Success, "1": pick.Canceled, "2": pick.ServerError, "3": pick.Success, "4": pick.GatewayError, "5": pick.Success,
		"6": pick.Success, "7": pick.Success, "8": pick.Failure, "9": pick.Success, "10": pick.Success, "11": pick.Success,
		"12": pick.Success, "13": pick.ServerError, "14": pick.GatewayError, "15": pick.ServerError, "16": pick.Success,
		"": pick.ServerError, "17": pick.ServerError, "x": pick.ServerError, "-1": pick.ServerError,
	} {
		if got := l7.OutcomeOfGRPC(field); got != want {
			t.Errorf("%q: got %v, want %v", field, got, want)
		}
	}
}

func TestGRPCTimeouts(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "4m": 4 * time.Millisecond, "5u": 5 * time.Microsecond,
		"6n": 6, "99999999H": 10_000 * time.Hour, "": 0, "1": 0, "S": 0, "1x": 0, "-1S": 0, "123456789S": 0, "1.5S": 0,
	} {
		if got := l7.ParseGRPCTimeout(field); got != want {
			t.Errorf("%q: got %v, want %v", field, got, want)
		}
	}
}

func withdrawals(b l7.Budget, now time.Duration) int {
	for n := 0; ; n++ {
		if !b.Withdraw(now) {
			return n
		}
	}
}

func TestTheRetryBudget(t *testing.T) {
	t.Run("allows a minimum each second", func(t *testing.T) {
		b := l7.NewBudget(l7.Retry{MinPerSecond: 3})
		for second := range 3 {
			if got := withdrawals(b, time.Duration(second)*time.Second); got != 3 {
				t.Errorf("second %d: %d retries, want 3", second, got)
			}
		}
	})
	t.Run("allows a share of the requests", func(t *testing.T) {
		b := l7.NewBudget(l7.Retry{MinPerSecond: -1})
		for range 100 {
			b.Request(0)
		}
		if got := withdrawals(b, 0); got != 20 {
			t.Errorf("%d retries for 100 requests, want 20", got)
		}
	})
	t.Run("forgets old requests", func(t *testing.T) {
		b := l7.NewBudget(l7.Retry{MinPerSecond: -1})
		for range 1_000 {
			b.Request(0)
		}
		if got := withdrawals(b, 10*time.Second); got != 69 { // 200 × 0.9^10 = 69.7
			t.Errorf("%d retries after 10 s, want 69", got)
		}
		for range 1_000 {
			b.Request(10 * time.Second)
		}
		if got := withdrawals(b, time.Hour); got != 0 {
			t.Errorf("%d retries after an hour, want none", got)
		}
	})
	t.Run("keeps a steady share in the long run", func(t *testing.T) {
		b := l7.NewBudget(l7.Retry{MinPerSecond: -1, BudgetRatio: 0.1})
		retries := 0
		for i := range 100_000 {
			now := time.Duration(i) * time.Millisecond
			b.Request(now)
			if b.Withdraw(now) {
				retries++
			}
		}
		if retries < 9_900 || retries > 10_000 {
			t.Errorf("%d retries for 100,000 requests, want about 10 %%", retries)
		}
	})
}
