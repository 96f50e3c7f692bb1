"""What a reliable transport is made of, at both ends: ``PageStore``."""

from .page_store import PageStore, segment

__all__ = ["PageStore", "segment"]
