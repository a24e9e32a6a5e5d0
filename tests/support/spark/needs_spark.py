"""Marks of tests that need a capability which not every supported version of Spark has, by the version that added it."""

from __future__ import annotations

import pyspark
import pytest

from spark_plugin.java.supported_versions import minor_version


def has_spark(version: str) -> bool:
    """Whether the Spark that runs the tests is of this minor version, or newer."""
    return minor_version(pyspark.__version__) >= minor_version(version)


def needs_spark(version: str, what: str) -> pytest.MarkDecorator:
    """Skips a test if Spark is older. what: the capability of the version."""
    return pytest.mark.skipif(not has_spark(version), reason=_reason(version, what))


def before_spark(version: str, what: str) -> pytest.MarkDecorator:
    """Skips a test of a fault of Spark if Spark is of this version or newer. what: the fault."""
    return pytest.mark.skipif(has_spark(version), reason=f"{what}: not since Spark {version}, and this is {pyspark.__version__}")


def skip_before_spark(version: str, what: str) -> None:
    """Skips the test that calls this, if Spark is older."""
    if not has_spark(version):
        pytest.skip(_reason(version, what))


def _reason(version: str, what: str) -> str:
    return f"{what}: since Spark {version}, and this is {pyspark.__version__}"
