"""A file-native local coding agent: its whole mind is a folder of Markdown."""

__version__ = "0.1.0"
