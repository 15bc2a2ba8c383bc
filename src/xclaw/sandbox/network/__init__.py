"""The one way out of a sandbox: a proxy on the host that connects to allowed hosts only."""
