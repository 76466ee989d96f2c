"""The screens of docs/screens.md, taken from a real terminal: `make screens`."""
