"""What was sent and not acknowledged, of all connections: ``Sender`` and its parts."""

from .sender import Sender

__all__ = ["Sender"]
