"""The version of tuigpt: apart from the package's face, which imports what writes it down."""

__version__ = "0.1.0"
