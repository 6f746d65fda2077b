package server

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
)

// curlLine returns a command for a shell on this machine that lists the pets.
func curlLine(c *config.Config, addr net.Addr, key string) string {
	words := []string{"curl", "-i", "--noproxy", "*"} // a proxy would not reach this machine
	local := localAddress(addr)
	base := "http://" + local
	if c.TLS() {
		var options []string
		options, base = trust(c.HTTP.CertFile, c.HTTP.KeyFile, local)
		words = append(words, options...)
	}
	words = append(words, "-H", "Authorization: Bearer "+key, base+"/v1/pets")
	for i, word := range words {
		words[i] = quote(word)
	}
	return strings.Join(words, " ")
}

// docsURL returns the URL of the page to read and try the API in, for a browser on this
// machine.
func docsURL(c *config.Config, addr net.Addr) string {
	return scheme(c) + localAddress(addr) + "/docs"
}

// scheme returns how the URLs of the API begin.
func scheme(c *config.Config) string {
	if c.TLS() {
		return "https://"
	}
	return "http://"
}

// trust returns the options with which curl accepts the certificate of a server at an
// address of this machine, and the base of its URLs. The name in the certificate may
// resolve to another machine, and its signer may not be trusted here.
func trust(certFile, keyFile, local string) (options []string, base string) {
	host, port, err := net.SplitHostPort(local)
	if err != nil {
		return nil, "https://" + local
	}
	pair, err := httpserver.LoadCertificate(certFile, keyFile)
	if err != nil {
		return nil, "https://" + local // the file was just replaced
	}
	if name := nameIn(pair.Leaf); name != "" && pair.Leaf.VerifyHostname(host) != nil {
		options = append(options, "--connect-to", "::"+local)
		host = name
	}
	if !knownHere(pair) {
		if abs, err := filepath.Abs(certFile); err == nil {
			certFile = abs // the shell may be in another directory
		}
		options = append(options, "--cacert", certFile)
	}
	return options, "https://" + net.JoinHostPort(host, port)
}

// nameIn returns a name that a certificate is for, or "".
func nameIn(leaf *x509.Certificate) string {
	if len(leaf.DNSNames) > 0 {
		name := leaf.DNSNames[0]
		if rest, ok := strings.CutPrefix(name, "*."); ok {
			name = "api." + rest
		}
		return name
	}
	if len(leaf.IPAddresses) > 0 {
		return leaf.IPAddresses[0].String()
	}
	return ""
}

// knownHere reports whether this machine trusts the signer of a certificate.
func knownHere(pair tls.Certificate) bool {
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(cert)
		}
	}
	_, err := pair.Leaf.Verify(x509.VerifyOptions{Intermediates: intermediates})
	return err == nil
}

// localAddress returns the host and port at which this machine reaches a listener.
func localAddress(addr net.Addr) string {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ap.Addr().IsUnspecified() {
		// A listener of :: accepts IPv4 too.
		ap = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ap.Port())
	}
	return ap.String()
}

// quote quotes a word for a POSIX shell if necessary.
func quote(word string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@%+=,"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
