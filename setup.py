"""The part of the build that pyproject.toml cannot describe.

A repository has no jars. A wheel that is built without them (`pip install git+...`) gets the Java sources, so that its user can
build the jar: `python -m spark_plugin.java.build`. Published wheels have the jars (`make dist`).
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPackages(build_py):
    def finalize_options(self) -> None:
        super().finalize_options()
        if not any(Path("spark_plugin/jars").glob("*.jar")):
            patterns = [*self.package_data["spark_plugin"], "java/**/*.java"]
            self.package_data = {**self.package_data, "spark_plugin": patterns}


setup(cmdclass={"build_py": BuildPackages})
