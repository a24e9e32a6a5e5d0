"""Invalid values of options, paths and catalog texts."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.fuzz.odd_values import ODD_TEXTS

VICTIM = "/victim"
# Facts in Spark's description of an entry, or the end of one fact and another one.
FALSE_FACTS = [
    *(f"x\nLocation: file:{VICTIM}\n", f"x]\nLocation: file:{VICTIM}\nSchema: root\n |-- id: long\n", f"Location: {VICTIM}"),
    *(
        f"x\nLocation: file:{VICTIM}",
        f"\nLocation: {VICTIM}\nStorage Properties: [versionAsOf=0]\nType: VIEW\n",
        "x\nType: VIEW\n",
    ),
    *("x\nType: MANAGED\nProvider: csv\n", "x\nProvider: delta\n", "Schema: root\n", "x\nSchema: root\n", "a, path=/victim, b"),
    *(
        f"x\r\nLocation: {VICTIM}\r\n",
        f"x\u2028Location: {VICTIM}\u2028",
        f"x\x0bLocation: {VICTIM}\x0b",
        "x\nFoo: b",
        "x: y",
        ", ",
    ),
    *(f"a=b, Location: {VICTIM}", f"[path={VICTIM}]", "`", "``", "x`y", "'", "\\'", "\\", "x'; DROP TABLE t; --", "\n", "\n\n"),
]
_GENERAL = [
    *(
        "true",
        "TRUE",
        "false",
        "yes",
        "always",
        "latest",
        "0",
        "1",
        "-1",
        "+2",
        "1.5",
        "1e9",
        "9" * 30,
        "\u0663",
        " 1",
        "1 ",
        "[",
        "[1]",
    ),
    *("{}", "null", '""', '["/victim"]', '["part"]', '{"a":1}', "[" * 2000, "2020-01-01", "2020-01-01 00:00:00", "99999-12-31"),
    *(
        "2020-13-99",
        "2020-01-01 00:00:00 Nowhere/../x",
        "2020-01-01 00:00:00 " + "x" * 5000,
        "-9999",
        "Europe/Paris",
        "../../etc/passwd",
    ),
    *(
        "id > 5",
        "id",
        "`id",
        "(" * 3000,
        "id = 1 AND " * 2000 + "id = 1",
        "id > 'x'",
        "reflect('a')",
        "id IN (SELECT 1)",
        "part = 'p1'",
    ),
    *(
        "id, part",
        "`a, b",
        ",,,",
        "id,id",
        "10mb",
        "9" * 30 + "gb",
        "0",
        "-5kb",
        "1\n",
        "(?i)x",
        "(a+)+$",
        "(",
        "\\1",
        "c00",
        "[[:x:]]",
    ),
    *("append", "overwrite", "ignore", "error", "dynamic", "static", "snappy", "zstd", "Serializable", "pydelta.files", "id"),
]


def odd_value(rng: random.Random, *near: str) -> str:
    """near: values that the option may have; they come as often as all others together."""
    return rng.choice(near) if near and rng.random() < 0.5 else rng.choice([*ODD_TEXTS, *_GENERAL, *FALSE_FACTS])


def odd_case(name: str, rng: random.Random) -> str:
    return rng.choice([name, name, name.lower(), name.upper(), name.swapcase()])


def odd_paths(path: str) -> Sequence[str]:
    """The path, and paths that look like it."""
    return [
        *(path, f"{path}/", f"{path}//", f"{path}/.", f"{path}/../{path.rpartition('/')[2]}", f"{path}/_delta_log", f"/{path}"),
        *(f"file:{path}", f"file://{path}", f"file://localhost{path}", f"file://host{path}", f"FILE:{path}", f"file:/{path}"),
        *(
            f"{path}@v1",
            f"{path}@v{'9' * 5000}",
            f"{path}@v99",
            f"{path}@{'9' * 17}",
            f"{path}@20200101000000000",
            f"{path}@v\u0661",
        ),
        *(
            f"{path}?a=b",
            f"{path}#a",
            f"{path}%20",
            f"{path}\0",
            f"{path}\n",
            f" {path}",
            f"{path}\ud800",
            f"{path}/${{env:HOME}}",
        ),
        *(
            "file:[",
            "http://[",
            "s3://u:p@h/x?k=v",
            "s3a://",
            "//",
            ".",
            "~",
            "x" * 100_000,
            "a" * 300,
            "file:",
            "file:%00",
            "://",
            ":",
        ),
        *(
            "dbfs:/x",
            "file:///%zz",
            "file:////x",
            "[",
            "abfss://c@a/b",
            "\\\\host\\x",
            "C:\\x",
            "jar:file:/x!/y",
            "/dev/zero",
            "/proc/self",
        ),
    ]
