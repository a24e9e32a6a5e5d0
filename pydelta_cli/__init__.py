"""The command line `pydelta`: see docs/command-line.md."""
