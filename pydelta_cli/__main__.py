"""`python -m pydelta_cli` is `pydelta`."""

from __future__ import annotations

from pydelta_cli.main import main

main()
