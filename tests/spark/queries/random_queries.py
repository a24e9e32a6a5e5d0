"""Random SQL over the view `t` (query_shapes.make_rows), with results that do not depend on the order or the partitions of a
scan.
"""

from __future__ import annotations

from hypothesis import strategies as st

Texts = st.SearchStrategy[str]

CONSTANTS: dict[str, list[str]] = {
    "id": ["0", "17", "1500L", "2999", "5999", "-1", "4294967296"],
    "a": ["0", "3", "500", "999", "1000", "7L", "2.5"],
    "c": ["0", "3", "9000", "17997"],
    "b": ["0.0D", "-0.0D", "0.5D", "1500.5D", "double('NaN')", "double('Infinity')"],
    "f": ["0", "12.5", "cast(99 as float)", "float('NaN')"],
    "price": ["0.000", "12.34", "59.99", "60", "1e1"],
    "s1": ["'city_0003'", "'city_0049'", "''", "'city_00'", "'z'"],
    "s2": ["'x1'", "'x9é'", "'x12'", "'x'"],
    "`dotted.name`": ["'v0'", "'v2'", "'v3'"],
    "`odd-name`": ["100", "5998"],
    "d": ["date'2023-12-01'", "date'2024-06-15'", "date'1970-01-01'"],
    "ts": ["timestamp'2023-11-15 00:00:00.123456'", "timestamp'2023-11-14 22:13:20'", "date'2023-11-17'"],
    "ntz": ["timestamp_ntz'2023-11-14 03:00:00'", "timestamp_ntz'2024-01-01 00:00:00'"],
    "bin": ["cast('42' as binary)", "X''", "cast('9' as binary)"],
    "part": ["0", "2", "3", "9"],
    "st.x": ["0", "5", "9"],
    "st.y": ["'city_1'", "'city_4'"],
    "st.deep.q": ["0", "3"],
}
NUMBERS = ["id", "a", "c", "part", "st.x", "st.deep.q", "`odd-name`"]
EXACT = [*NUMBERS, "price", "s1", "s2", "d", "ts", "ntz", "bin", "flag", "st.y", "`dotted.name`"]
NESTED = ["st", "ints", "items", "items.k", "size(ints)", "tags['m']", "b", "f"]


def column(names: list[str] = EXACT) -> Texts:
    return st.sampled_from(names)


@st.composite
def comparison(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(list(CONSTANTS)))
    constant = st.sampled_from(CONSTANTS[name])
    kind = draw(st.sampled_from(["compare", "compare", "in", "in null", "between", "turned", "null", "odd"]))
    if kind == "compare":
        return f"{name} {draw(st.sampled_from(['=', '<', '>', '<=', '>=', '<>', '<=>']))} {draw(constant)}"
    if kind == "turned":
        return f"{draw(constant)} {draw(st.sampled_from(['<', '>=', '=']))} {name}"
    if kind in ("in", "in null"):
        listed = ", ".join(draw(st.lists(constant, min_size=1, max_size=4)) + ["null"] * (kind == "in null"))
        return f"{name} {draw(st.sampled_from(['', 'not ']))}in ({listed})"
    if kind == "between":
        return f"{name} between {draw(constant)} and {draw(constant)}"
    if kind == "null":
        return f"{name} is {draw(st.sampled_from(['', 'not ']))}null"
    return draw(
        st.sampled_from(
            [
                "flag",
                "not flag",
                "flag is not true",
                "s1 like 'city_00%'",
                "startswith(s2, 'x1')",
                "a + 1 = 8",
                "a = part",
                "abs(c) % 2 = 1",
                "cast(ts as date) = date'2023-11-15'",
                "coalesce(s1, 'city_0001') = 'city_0001'",
                "a in (select st.x from t where part = 1)",
                "exists (select 1 from t x where x.id = t.a and x.flag)",
                "c > (select avg(c) from t where part = 2)",
                "size(ints) = 3",
                "items[0].k = 3",
                "tags['m'] > 20",
                "case when flag then a > 900 else a < 10 end",
                "true",
                "rand(3) >= 0",
            ]
        )
    )


def conditions() -> Texts:
    return st.recursive(
        comparison(),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda three: f"({' '.join(three)})"),
            inner.map(lambda text: f"not ({text})"),
        ),
        max_leaves=4,
    )


def aggregate() -> Texts:
    return st.one_of(
        st.tuples(st.sampled_from(["min", "max", "count", "count(distinct"]), column()).map(
            lambda two: f"{two[0]}{' ' if 'distinct' in two[0] else '('}{two[1]})"
        ),
        column(NUMBERS).map(lambda name: f"sum({name})"),
        st.tuples(column(NUMBERS), conditions()).map(lambda two: f"count({two[0]}) filter (where {without_subquery(two[1])})"),
        st.just("count(*)"),
    )


def without_subquery(condition: str) -> str:
    """Spark allows no subquery, and nothing random, in the filter of an aggregate."""
    return "flag" if "select" in condition or "rand" in condition else condition


def listed(items: Texts, most: int) -> Texts:
    """Some items, each named c0, c1 ..."""
    return st.lists(items, min_size=1, max_size=most).map(lambda parts: ", ".join(f"{p} c{i}" for i, p in enumerate(parts)))


@st.composite
def plain(draw: st.DrawFn) -> str:
    return f"select id, {draw(listed(column(EXACT + NESTED), 5))} from t where {draw(conditions())}"


@st.composite
def grouped(draw: st.DrawFn) -> str:
    key = draw(st.sampled_from(["part", "flag", "s1", "a % 5", "st.y", "`dotted.name`", "d", "null"]))
    having = draw(st.sampled_from(["", " having count(*) > 2", " having max(id) > 3000"]))
    return f"select {key} k, {draw(listed(aggregate(), 3))} from t where {draw(conditions())} group by {key}{having}"


@st.composite
def whole(draw: st.DrawFn) -> str:
    where = draw(st.one_of(st.just(""), conditions().map(lambda text: f" where {text}")))
    return f"select {draw(listed(aggregate(), 4))} from t{where}"


@st.composite
def joined(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["join", "left join", "right join", "full join", "left semi join", "left anti join"]))
    hint = draw(st.sampled_from(["", "/*+ broadcast(r) */ ", "/*+ merge(r) */ ", "/*+ shuffle_hash(r) */ "]))
    on = draw(
        st.sampled_from(["l.id = r.id", "l.id = r.id + 1", "l.part = r.part and l.id = r.id", "l.k <=> r.k and l.id = r.id"])
    )
    one, other = (f"(select id, part, {draw(column())} k from t where {draw(conditions())})" for _ in range(2))
    right = "" if "semi" in kind or "anti" in kind else ", count(r.id), max(r.k)"
    return f"select {hint}count(*), sum(l.id), min(l.k){right} from {one} l {kind} {other} r on {on}"


@st.composite
def united(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["union all", "union", "except", "intersect", "except all"]))
    name, other = draw(column(NUMBERS)), draw(column(NUMBERS))
    return f"select {name} k from t where {draw(conditions())} {kind} select {other} from t where {draw(conditions())}"


@st.composite
def windowed(draw: st.DrawFn) -> str:
    function = draw(st.sampled_from(["row_number()", "lag(c, 2)", "sum(a)", "max(s1)", "ntile(3)"]))
    over = f"{function} over (partition by {draw(st.sampled_from(['part', 's1', 'flag']))} order by id)"
    return f"select * from (select id, {over} w from t where {draw(conditions())}) where w is null or id % 3 = 0"


@st.composite
def ordered(draw: st.DrawFn) -> str:
    order = draw(st.sampled_from(["id", "id desc", "c desc", "s1, id", "flag, price desc, id", "a desc nulls last, id"]))
    limit = draw(st.integers(0, 300))
    return f"select id, {draw(column(EXACT + NESTED))} v from t where {draw(conditions())} order by {order} limit {limit}"


@st.composite
def with_cte(draw: st.DrawFn) -> str:
    inner = f"select id, part, {draw(column())} k, {draw(column())} m from t where {draw(conditions())}"
    return (
        f"with q as ({inner}) select (select count(*) from q where part = {draw(st.integers(0, 4))}), (select max(k) from q), "
        f"(select count(m) from q x join q y on x.id = y.id)"
    )


def queries() -> Texts:
    return st.one_of(plain(), grouped(), whole(), joined(), united(), windowed(), ordered(), with_cte())
