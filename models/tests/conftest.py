"""No test depends on how fast the machine is."""

from hypothesis import settings

settings.register_profile("any machine", settings.default, deadline=None)
settings.load_profile("any machine")
