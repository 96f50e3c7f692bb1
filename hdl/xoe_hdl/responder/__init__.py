"""Requests carried out on memory: ``Responder`` and its parts."""

from .responder import Responder

__all__ = ["Responder"]
