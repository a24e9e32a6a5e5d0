"""Deprecated settings and options: they still work in this release, and each causes one warning per process."""

from __future__ import annotations

import logging

from spark_plugin.options.roads import DISABLE_CONF

_log = logging.getLogger("pydelta")
_warned: set[str] = set()


def warn_deprecated(name: str, instead: str) -> None:
    """Warn once that a name is deprecated. name: `setting x` or `read option x`. instead: the value of DISABLE_CONF that
    replaces it, in words."""
    if name not in _warned:
        _warned.add(name)
        _log.warning("The %s is deprecated, and the next release ignores it. Set %s %s.", name, DISABLE_CONF, instead)
