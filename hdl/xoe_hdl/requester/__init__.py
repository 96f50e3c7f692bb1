"""A user's commands to requests, and responses to completions: ``Requester`` and its parts."""

from .requester import EVENTS, REFUSED, Requester

__all__ = ["EVENTS", "REFUSED", "Requester"]
