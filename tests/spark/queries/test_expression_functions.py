"""Our evaluation of expressions compared with Spark's, on random rows: values and errors. A failure prints the seed; replay it
with PYDELTA_SEED.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_py.errors import ExpressionError
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.functions.function_table import FUNCTIONS
from delta_py.expressions.parse import parse_expression
from delta_py.expressions.tree import Call, Expression, children
from delta_py.types.schema import from_arrow_schema
from tests.support.runs.seeds import run_seed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEED = run_seed() or 20240229
ROWS = 300
ZONES = ("UTC", "America/New_York")

WORDS = [
    "",
    "a",
    "ab",
    "abc",
    "Hello World",
    "two  blanks",
    " padded ",
    "a,b,,c",
    "x=1;y=2",
    "A1b2C3",
    "user@example.com",
    "tab\there",
]
UNICODE = [
    "é",
    "Straße",
    "ÀÉ",
    "日本語",
    "😀 smile",
    "naïve café",
    "İstanbul",
    "ΣΑΣ",
    "line\nbreak",
    "%_\\",
    "'quoted'",
    "a\u00a0b",
]
NUMERIC = [
    "0",
    "1",
    "-1",
    "42",
    " 7 ",
    "+5",
    "127",
    "128",
    "2147483647",
    "1.5",
    "-0.25",
    "1e3",
    "abc",
    "",
    "9223372036854775808",
    "NaN",
]
DATES = ["1970-01-01", "2024-02-29", "2023-02-29", "1999-12-31", "2024-1-5", "2024-02", "junk", "", "0001-01-01", "9999-12-31"]
TIMES = [
    "2024-02-29 12:34:56",
    "2024-03-10 02:30:00",
    "2024-11-03 01:30:00",
    "1970-01-01 00:00:00",
    "junk",
    "2024-13-01 00:00:00",
]

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("b", pa.int8()),
        ("h", pa.int16()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("k", pa.int32()),
        ("j", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("u", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("a", pa.string()),
        ("n", pa.string()),
        ("dt", pa.string()),
        ("tt", pa.string()),
        ("t", pa.date32()),
        ("t2", pa.date32()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("ts2", pa.timestamp("us", tz="UTC")),
        ("y", pa.bool_()),
        ("raw", pa.binary()),
        ("arr", pa.list_(pa.int32())),
        ("strs", pa.list_(pa.string())),
        ("mp", pa.map_(pa.string(), pa.int32())),
        ("st", pa.struct([("x", pa.int32()), ("s", pa.string())])),
    ]
)

NUMBERS = """
abs(j); -k; +k; k + j; k - j; k * j; l % 7; mod(k, 3); pmod(k, 7); pmod(k, -7); pmod(l, 10); pmod(u, 3.5D); k / 4; l div 3;
m + 1; m * 2; m % 3; round(u); round(u, 2); round(m, 1); round(k, -1); floor(u); ceil(u); ceiling(m); floor(m); sign(k);
signum(u); sqrt(abs(u)); cbrt(u); exp(u / 100); expm1(u / 100); ln(abs(u) + 1); ln(u); log(u); log(2, abs(u) + 1);
log2(abs(u) + 1); log10(abs(u) + 1); log10(u); log1p(abs(u)); pow(u, 2); power(2, k); pow(u, 0.5D); sin(u); cos(u); tan(u);
asin(u / 1000); acos(u / 1000); atan(u); atan2(u, k); hypot(u, k); degrees(u); radians(u); rint(u); bround(m, 1);
bround(u, 1); bround(k, -1); k & 6; k | 6; k ^ 6; ~k; i & l; shiftleft(k, 3); shiftright(i, 2); shiftrightunsigned(i, 2);
l >> 3; l << 2; l >>> 5; i >>> 1; bit_count(i); bit_count(l); factorial(k); negative(k); positive(u); try_add(i, i);
try_add(l, l); try_subtract(i, 2147483647); try_multiply(l, 3L); try_multiply(i, k); try_divide(k, k); try_divide(u, 0);
try_mod(k, 0); try_divide(k, 0); isnan(d); isnan(f); d = d; d > 1; f = 0.1; greatest(k, j, 3); least(k, j); greatest(u, d);
hex(i); hex(l); bin(l); bin(k); k between -3 and 10; k in (1, 2, null); k not in (1, 2, 3); k <=> null; i = l;
cast(b as int) + h; cast(u as int); cast(k as string); cast(m as string); cast(k as boolean); cast(y as int);
cast(u as decimal(10, 3)); cast(m as int); cast(k as double); cast(b as bigint); cast(u as float); try_cast(l as int);
try_cast(l as tinyint); try_cast(i as smallint); try_cast(d as int); try_cast(n as int); try_cast(n as bigint);
try_cast(n as double); try_cast(n as decimal(10, 2)); try_cast(n as boolean); try_cast(dt as date); try_cast(n as tinyint);
typeof(k); typeof(m); typeof(arr)
"""
TEXTS = r"""
upper(s); lower(s); ucase(a); lcase(a); length(s); char_length(s); len(a); length(raw); octet_length(s); bit_length(s);
octet_length(raw); trim(a); ltrim(a); rtrim(a); btrim(a); trim(both 'a' from a); trim(leading 'a' from a);
trim(trailing 'c' from a); btrim(a, 'a'); ltrim('a', a); rtrim('c', a); substring(s, 2); substring(s, 2, 3);
substring(s, -3); substring(s, -3, 2); substring(s, 0, 2); substr(s, 1, 100); left(s, 2); right(s, 2); left(s, 0);
left(s, -1); concat(s, '-', a); s || a; concat(a, k); concat_ws('-', s, a, 'x'); concat_ws(',', k, a); replace(s, 'a', 'b');
replace(a, 'b'); replace(a, '', 'x'); translate(a, 'abc', 'bca'); translate(s, 'é', 'e'); translate(a, 'ab', 'x');
lpad(s, 5, '*'); rpad(s, 5, 'xy'); lpad(a, 3); rpad(a, 8); lpad(s, 0, 'x'); lpad(a, 4, ''); repeat(a, 2); repeat(s, 0);
reverse(s); initcap(a); space(abs(b % 5)); ascii(s); ascii(a); chr(k); char(65); hex(s); hex(raw); hex(a); unhex(hex(s));
unhex(n); base64(raw); base64(cast(s as binary)); crc32(raw); crc32(s); instr(s, 'a'); instr(s, ''); locate('b', a);
locate('本', s); position('b' in a); position('b', a); contains(s, 'a'); startswith(s, 'a'); endswith(a, 'c');
startswith(s, null); split(a, ','); split(a, '[0-9]'); split(a, ',', 2); split(a, ',', 1); split_part(a, ',', 1);
split_part(a, ',', -1); split_part(a, ',', 9); split_part(a, '', 1); substring_index(a, ',', 1); substring_index(a, ',', 2);
substring_index(a, ',', -1); substring_index(a, ',', -2); substring_index(a, 'z', 1); substring_index(a, ',', 0);
s like 'a%'; s like '%é%'; a like '_b%'; a not like 'a%'; s ilike 'À%'; a ilike 'HELLO%'; a like any ('a%', 'H%');
a not like all ('a%', 'H%'); a rlike '^[a-z]+$'; a rlike '\\d'; a rlike '^\\w+@\\w+\\.com$'; s rlike '.'; s rlike 'a|b';
regexp_like(a, '[A-Z]'); a rlike '^.{3,5}$'; s rlike '\\s'; a rlike r'^\S+$'; regexp_replace(a, '[0-9]', '#');
regexp_replace(a, '([a-z])([0-9])', '$2$1'); regexp_replace(s, '\\s+', ' '); regexp_extract(a, '(\\w+)@(\\w+)', 2);
regexp_extract(a, '([a-z])([0-9])?'); regexp_extract(a, '[0-9]', 0); regexp_count(a, '[a-z]'); regexp_substr(a, '[0-9]+');
regexp(a, 'b'); like(a, 'a%'); coalesce(s, a, 'none'); nvl(s, 'none'); ifnull(a, 'x'); nvl2(s, 'yes', 'no'); nullif(a, '');
if(k > 0, 'pos', 'neg'); isnull(s); isnotnull(s); s is null; case when k > 0 then 'a' when k = 0 then 'b' else s end;
case k when 1 then 'one' when 2 then 'two' end; s = a; s < a; s <=> a; s > 'b'; s <> 'a'; s in ('a', 'é');
a between 'a' and 'b'; cast(a as binary); cast(raw as binary) = raw; greatest(s, a); least(s, a); y and k > 0; y or k > 0;
not y; s is not null and length(s) > 1; coalesce(y, false); y is true; y is not false; y is unknown; s is distinct from a;
cast('1' as int) = 1
"""
NESTED = """
size(arr); cardinality(mp); size(strs); array_size(arr); get(arr, 0); get(arr, 1); get(arr, k); get(arr, -1);
try_element_at(arr, 1); try_element_at(arr, -1); try_element_at(mp, 'a'); mp['a']; mp['zz']; element_at(mp, 'b'); mp[a];
array_contains(arr, 1); array_contains(strs, 'a'); array_contains(arr, k); array_contains(strs, a); array_position(arr, 1);
array_position(strs, 'a'); map_keys(mp); map_values(mp); map_contains_key(mp, 'a'); st.x; st.s; st.x + 1; st['x'];
array(k, j, 3); map('p', k, 'q', j); map(coalesce(u, 0D), a); map(coalesce(k, 3), a)[3];
array(st); array(1, 2)[1];
cast(arr as array<string>); cast(arr as array<double>); cast(mp as map<string, bigint>);
cast(st as struct<y: bigint, z: string>);
cast(named_struct('p', array(k)) as struct<q: array<string>>);
array(k, j)[0]; named_struct('p', k, 'q', a); struct(k, a); named_struct('p', k).p;
size(split(a, ',')); split(a, ',')[0]; size(map_keys(mp)); get(strs, 0); upper(get(strs, 0));
array_contains(map_keys(mp), 'a')
"""
TIMED = """
year(t); quarter(t); month(t); day(t); dayofmonth(t); dayofweek(t); weekday(t); dayofyear(t); weekofyear(t); year(ts);
month(ts); hour(ts); minute(ts); second(ts); extract(year from ts); extract(dow from t); extract(week from t);
extract(hour from ts); cast(ts as date); cast(t as timestamp); to_date(ts); cast(ts as string); cast(t as string);
date_trunc('YEAR', ts); date_trunc('month', ts); date_trunc('week', ts); date_trunc('DAY', ts); date_trunc('quarter', ts);
trunc(t, 'YEAR'); trunc(t, 'MM'); trunc(t, 'week'); trunc(t, 'quarter'); trunc(t, 'nonsense'); last_day(t); date_add(t, k);
date_sub(t, 3); dateadd(t, 1); t + 1; t - 1; datediff(t, t2); date_diff(t, t2); datediff(ts, ts2); add_months(t, k);
add_months(t, -1); months_between(ts, ts2); months_between(ts, ts2, false); months_between(t, t2); next_day(t, 'MON');
next_day(t, 'friday'); make_date(2024, 2, k % 20 + 25 - k % 20); make_date(year(t), month(t), 1); unix_date(t);
unix_seconds(ts); unix_millis(ts); unix_micros(ts); unix_timestamp(ts); unix_timestamp(t); to_unix_timestamp(ts);
timestamp_seconds(k); timestamp_millis(l % 1000000000000); timestamp_micros(l % 1000000000000000); date_from_unix_date(k);
from_unixtime(k * 100000); from_unixtime(k * 100000, 'yyyy/MM/dd'); date_format(ts, 'yyyy-MM-dd');
date_format(ts, 'yyyy-MM-dd HH:mm:ss'); date_format(ts, 'yyyyMMdd'); date_format(ts, 'dd/MM/yy');
date_format(ts, 'MMM d, yyyy'); date_format(ts, 'EEEE'); date_format(ts, 'E hh:mm a'); date_format(ts, 'h');
date_format(ts, 'SSS'); date_format(ts, 'yyyy-MM-dd''T''HH:mm:ss.SSSSSS'); date_format(ts, 'MMMM'); date_format(ts, 'DDD');
date_format(t, 'yyyy-MM'); date_format(ts, 'H:m:s'); to_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm'), 'yyyy-MM-dd HH:mm');
to_date(date_format(t, 'dd/MM/yyyy'), 'dd/MM/yyyy'); to_date(date_format(t, 'yyyyMMdd'), 'yyyyMMdd');
to_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS'), 'yyyy-MM-dd HH:mm:ss.SSS');
unix_timestamp(date_format(ts, 'yyyy-MM-dd HH:mm:ss')); unix_timestamp(date_format(t, 'd.M.yyyy'), 'd.M.yyyy');
to_timestamp(cast(t as string)); to_date(cast(t as string)); monthname(t); dayname(t); t = t2; t < '2000-01-01';
ts > timestamp'2000-01-01 00:00:00'; ts > t; ts <=> ts2; t in (date'2024-02-29', date'1970-01-01');
t between date'1990-01-01' and date'2030-01-01'; from_utc_timestamp(ts, 'Europe/Berlin'); to_utc_timestamp(ts, 'Asia/Tokyo');
greatest(t, t2); coalesce(t, t2); nullif(t, t2); if(t > t2, t, t2); year(t) * 100 + month(t); cast(ts as bigint);
cast(k as timestamp); cast(ts as timestamp_ntz); extract(doy from t); t is null; date(ts); timestamp(t); date_add(t, -1);
cast(date_format(ts, 'yyyy') as int)
"""
# Precedence of operators, and literals.
GRAMMAR = r"""
1 | 2 & 3; 6 ^ 3 & 1; 1 | 6 ^ 2; 5 & 3 + 1; 1 << 2 + 1; 16 >> 1 << 1; -8 >>> 60; ~1 + 1; -2 * 3; - -2; 2 - -2; -2147483648;
-9223372036854775808; 2 + 3 * 4 % 5; 10 - 2 - 3; 100 / 10 / 2; 7 div 2 * 2; 2 * 7 div 4; '1' || 2 + 3; 1 + 2 || '3';
'a' || 'b' || 'c'; not true = false; not true or true; not (true and false) = true; ! true; !true or true;
true or false and false; 1 = 1 = true; 1 < 2 = true; 3 > 2 >= true; 1 <=> null = false; 1 + 1 between 1 and 2 + 1;
not 1 between 2 and 3; 1 not between 2 and 3 and true; 1 in (1, 2) and not 3 in (1, 2); 1 is null or true; not 1 is null;
(1 = 2) is not true; null is unknown; 'a' like 'A' or true; 'ab' like 'a_' escape '!'; 'a%' like 'a!%' escape '!';
'x' is distinct from null; case 1 + 1 when 2 then 'two' else 'other' end || '!'; case when 1 > 2 then 1 else 2 end + 1;
cast('1' as int) + 1; '5'::int + 1; -'5'::int; -1::string; 1.5; 1.50; .5; 5.; 1e2; 1.5e-3; 1.5D; 1.5F; 2BD; 1.5BD; 1L; 1S;
1Y; 1e2BD; 12345678901234567890; 0.1 + 0.2; 1.10 * 2; 1 / 3; 1.0 / 3; 2 % 1.5; 'it''s'; 'it' 's'; "dou""ble"; 'a\'b';
'tab\tend'; 'nl\nend'; 'back\\slash'; '\u00e9'; '\101'; '\%'; '\_'; '\q'; r'raw\n'; R"x\y"; '\0' = '\u0000'; X'1F'; X'abc';
date'2024-02-29'; date '2024-2-9'; timestamp'2024-01-01 12:00:00'; timestamp_ntz'2024-01-01 12:00:00';
timestamp_ltz'2024-01-01'; date'2024-01-31' + 1; date'2024-01-31' - 1; 1 /* a /* nested */ comment */ + 1;
substring('abcdef' from 2 for 3); substring('abcdef', 2); trim(both 'x' from 'xaxx'); trim(leading from ' a');
trim('x', 'xax'); position('b' in 'abc'); extract(month from date'2024-05-06'); 'a' 'b' like 'ab'; nullif(1, 1) is null;
if(true, 1, 2) * 3; array(1, 2, 3)[1] + 1
"""
# Each of them is an error in Spark too.
REFUSED = r"""
2147483647 + 1; cast(9223372036854775807 as bigint) + 1L; abs(cast(-2147483648 as int)); -cast(-128 as tinyint); 1 / 0;
1 % 0; 1 div 0; pmod(1, 0); cast('abc' as int); cast('1.5' as int); cast('300' as tinyint); cast(300 as tinyint);
cast(1e10 as int); cast('x' as date); cast('x' as timestamp); cast('x' as boolean); cast('x' as double);
cast(12345 as decimal(4, 1)); array(1, 2)[2]; array(1, 2)[-1]; element_at(array(1, 2), 3); element_at(array(1, 2), 0);
split_part('a', 'b', 0); make_date(2023, 2, 29); make_date(2023, 13, 1); next_day(date'2024-01-01', 'xx');
to_date('2024-02-30', 'yyyy-MM-dd'); to_timestamp('junk', 'yyyy-MM-dd'); regexp_extract('abc', '(b)', 2);
unix_timestamp('junk', 'yyyy'); cast('2024-13-01' as date); negative(cast(-9223372036854775808 as bigint));
timestamp_seconds(9223372036854775807); 9223372036854775807 * 2; -32768S - 1S; factorial('x'); element_at(array(1), 'a');
to_date('x')
"""


def expressions_of(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split(";") if part.strip()]


def random_rows(seed: int) -> pa.Table:
    chance = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.12 else value

    def day() -> datetime.date:
        days = [datetime.date(2024, 2, 29), datetime.date(1970, 1, 1), datetime.date(2023, 12, 31), datetime.date(1900, 3, 1)]
        return (
            chance.choice(days)
            if chance.random() < 0.3
            else datetime.date(1900, 3, 1) + datetime.timedelta(chance.randrange(72_000))
        )

    def moment() -> datetime.datetime:
        moments = [
            "2024-03-10T06:59:59.999999",
            "2024-03-10T07:00:00",
            "2024-11-03T05:30:00",
            "2024-11-03T06:30:00",
            "1969-12-31T23:59:59.5",
        ]
        if chance.random() < 0.3:
            return datetime.datetime.fromisoformat(chance.choice(moments)).replace(tzinfo=datetime.UTC)
        base = datetime.datetime(1920, 1, 1, tzinfo=datetime.UTC)
        return base + datetime.timedelta(
            seconds=chance.randrange(5_000_000_000), microseconds=chance.choice([0, 0, 1, 500_000, 123_456])
        )

    def row(number: int) -> dict[str, Any]:
        return {
            "id": number,
            "b": maybe(chance.choice([-128, 127, 0, chance.randrange(-128, 128)])),
            "h": maybe(chance.choice([-32768, 32767, chance.randrange(-32768, 32768)])),
            "i": maybe(chance.choice([-(2**31), 2**31 - 1, 0, chance.randrange(-(2**31), 2**31)])),
            "l": maybe(
                chance.choice([-(2**63), 2**63 - 1, 0, chance.randrange(-(2**63), 2**63), chance.randrange(-(10**9), 10**9)])
            ),
            "k": maybe(chance.randrange(-40, 41)),
            "j": maybe(chance.randrange(-1000, 1000)),
            "f": maybe(chance.choice([0.1, -0.0, 0.0, math.nan, math.inf, 1.5, chance.uniform(-1e6, 1e6)])),
            "d": maybe(chance.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 1e300, chance.uniform(-1e12, 1e12)])),
            "u": maybe(chance.choice([0.0, -0.0, 0.5, 2.5, -2.5, 1.005, chance.uniform(-1000, 1000)])),
            "m": maybe(Decimal(chance.choice([0, 5, -5, 99999999, chance.randrange(-(10**9), 10**9)])).scaleb(-2)),
            "s": maybe(
                chance.choice(WORDS + UNICODE) if chance.random() < 0.7 else chance.choice(UNICODE) + chance.choice(WORDS)
            ),
            "a": maybe(
                chance.choice(WORDS)
                if chance.random() < 0.6
                else "".join(chance.choices("abcABC123 ,;_", k=chance.randrange(12)))
            ),
            "n": maybe(chance.choice(NUMERIC)),
            "dt": maybe(chance.choice(DATES)),
            "tt": maybe(chance.choice(TIMES)),
            "t": maybe(day()),
            "t2": maybe(day()),
            "ts": maybe(moment()),
            "ts2": maybe(moment()),
            "y": maybe(chance.random() < 0.5),
            "raw": maybe(chance.randbytes(chance.randrange(12))),
            "arr": maybe([maybe(chance.randrange(-2, 4)) for _ in range(chance.randrange(5))]),
            "strs": maybe([maybe(chance.choice(["a", "b", "é"])) for _ in range(chance.randrange(4))]),
            "mp": maybe(
                [(key, maybe(chance.randrange(9))) for key in chance.sample(["a", "b", "c", "abc"], chance.randrange(4))]
            ),
            "st": maybe({"x": maybe(chance.randrange(100)), "s": maybe(chance.choice(WORDS))}),
        }

    return pa.Table.from_pylist([row(number) for number in range(ROWS)], schema=SCHEMA)


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    print(f"PYDELTA_SEED={SEED}")
    return random_rows(SEED)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("functions") / "rows.parquet"
    pq.write_table(rows, path)
    yield spark.read.parquet(str(path))


def close(left: Any, right: Any) -> bool:
    """Equal; doubles may differ by their last binary digits, because mathematical libraries differ."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or left == right or math.isclose(left, right, rel_tol=1e-14)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(close, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(close(value, right[key]) for key, value in left.items())
    return left == right and type(left) is type(right)


def differences(frame: DataFrame, rows: pa.Table, expressions: list[str], zone: str) -> list[str]:
    """Expressions for which our evaluation and Spark's differ, with both results; one Spark job for all."""
    batch = rows.combine_chunks().to_batches()[0]
    schema = from_arrow_schema(rows.schema)
    theirs = frame.selectExpr("id", *(f"{sql} as c{n}" for n, sql in enumerate(expressions))).toArrow().sort_by("id")
    problems = []
    for number, sql in enumerate(expressions):
        try:
            mine = evaluate(parse_expression(sql, schema, session_timezone=zone), batch)
        except Exception as error:
            problems.append(f"{sql}: {type(error).__name__}: {str(error)[:200]}")
            continue
        want = theirs.column(f"c{number}").combine_chunks()
        got, expected_values = mine.to_pylist(), want.to_pylist()
        for row, (one, other) in enumerate(zip(got, expected_values, strict=True)):
            if not close(one, other):
                count = sum(not close(x, y) for x, y in zip(got, expected_values, strict=True))
                values = {path[0]: rows.column(path[0])[row].as_py() for path in _columns(sql, schema)}
                problems.append(f"{sql}: ours {one!r}, Spark's {other!r}, of {values} ({count} rows)")
                break
    return problems


def _columns(sql: str, schema: Any) -> list[tuple[str, ...]]:
    from delta_py.expressions.tree import columns_of

    return sorted(columns_of(parse_expression(sql, schema)))


@pytest.mark.parametrize(
    ("group", "zone"),
    [
        ("GRAMMAR", "UTC"),
        ("NUMBERS", "UTC"),
        ("TEXTS", "UTC"),
        ("NESTED", "UTC"),
        ("TIMED", "UTC"),
        ("TIMED", "America/New_York"),
    ],
)
def test_functions_give_what_spark_gives(spark: SparkSession, frame: DataFrame, rows: pa.Table, group: str, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        wrong = differences(frame, rows, expressions_of(globals()[group]), zone)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert wrong == [], f"PYDELTA_SEED={SEED}\n" + "\n".join(wrong)


def test_values_that_spark_refuses_are_refused(spark: SparkSession) -> None:
    batch = pa.record_batch({"x": pa.array([1])})
    accepted = []
    for sql in expressions_of(REFUSED):
        with pytest.raises(Exception, match=r"\[|long overflow"):  # it has no condition on Spark 4.2
            spark.sql(f"select {sql}").collect()
        try:
            value = evaluate(parse_expression(sql, from_arrow_schema(batch.schema)), batch)
        except ExpressionError:
            continue
        accepted.append(f"{sql} gave {value.to_pylist()}")
    assert accepted == []


def test_at_least_a_hundred_functions_are_compared() -> None:
    names: set[str] = set()
    schema = from_arrow_schema(SCHEMA)
    for group in (GRAMMAR, NUMBERS, TEXTS, NESTED, TIMED):
        for sql in expressions_of(group):
            names |= _called(parse_expression(sql, schema))
    assert len(names & FUNCTIONS.keys()) >= 100


def _called(expression: Expression) -> set[str]:
    names = {expression.name} if isinstance(expression, Call) else set()
    return names.union(*(_called(child) for child in children(expression)))
