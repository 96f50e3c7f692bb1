"""What a reliable transport is made of, at both ends."""
