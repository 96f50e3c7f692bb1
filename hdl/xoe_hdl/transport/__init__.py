"""The transport: what makes a connection out of frames that may be lost. Its rules are in ``docs/transport.md``."""
