"""Extension of griffe for the API pages.

In: docstrings with `columns: ...` and `Raises ...` on lines of their own. Out: a paragraph for each of them, with the names of
parameters as code. A method without a docstring is shown. A special method is not, nor a field without a docstring, because the
signature has it.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_NEW_PARAGRAPH = re.compile(r"(?<=\S)\n(?=(?:\w+(?:, \w+)*: |Raises |Returns |Protocol: ))")
_PARAMETERS = re.compile(r"(?:^|(?<=\. ))[a-z]\w*(?:, [a-z]\w*)*(?=: )", re.MULTILINE)
# Its backticks would end the code before the path.
_TABLE_BY_PATH = re.compile(r"\b(?:py)?delta\.`[^`\n]+`")


class ApiObjects(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.name.startswith("__") and obj.name != "__init__":
            obj.public = False
        if obj.docstring is not None:
            paragraphs = _NEW_PARAGRAPH.sub("\n\n", obj.docstring.value)
            names_as_code = _PARAMETERS.sub(lambda names: re.sub(r"\w+", r"`\g<0>`", names[0]), paragraphs)
            obj.docstring.value = _TABLE_BY_PATH.sub(r"`` \g<0> ``", names_as_code)

    def on_attribute(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        if attr.docstring is None and "property" not in attr.labels:
            attr.public = False
