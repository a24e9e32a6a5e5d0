"""Extension of griffe: each parameter that a docstring describes is a paragraph of its own in the API pages.

In: `columns: ...` and `Raises ...` on lines that follow other text. Out: the same lines after an empty one.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_NEW_PARAGRAPH = re.compile(r"(?<=\S)\n(?=(?:\w+(?:, \w+)*: |Raises |Returns |Protocol: ))")


class DocstringParagraphs(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _NEW_PARAGRAPH.sub("\n\n", obj.docstring.value)
