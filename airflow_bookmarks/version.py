"""The version of this package: its only source."""

__version__ = "0.1.0"
