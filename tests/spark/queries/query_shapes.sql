-- Query shapes in SQL over the view `t` (see query_shapes.py). Each begins with its name after `--@`.

---------------------------------------------------------------- columns

--@ columns_all
select * from t where id % 4000 = 17

--@ column_one_summed
select sum(a) from t

--@ columns_every_one_aggregated
select count(id), sum(a), sum(cast(b as decimal(20, 1))), max(c), max(s1), max(s2), max(ts), max(ntz), max(d),
    count_if(flag), sum(price), sum(cast(f as int)), max(bin), sum(st.x), max(st.y), sum(st.deep.p), sum(size(ints)),
    sum(items[0].k), sum(tags['m'])
from t where not isnan(b) or b is null

--@ columns_none_counted
select count(*) from t

--@ columns_none_literal
select count(1), sum(1) from t

--@ columns_renamed_twice
select sum(x), sum(y), sum(z) from (select a x, a y, a + id z from t where a > 990)

--@ columns_case_insensitive
select SUM(A), Max(S1) from t where FLAG

--@ columns_odd_names
select sum(`odd-name`), max(`dotted.name`) from t where `dotted.name` = 'v1' and `odd-name` < 500

--@ column_counted_with_nulls
select count(b), count(*), count(s1), count(distinct s1) from t

--@ columns_in_another_order
select c, a, id from t where id < 50

--@ columns_hashed_whole_rows
select sum(cast(hash(id, a, s1, d, st, ints, items) as bigint)) from t

---------------------------------------------------------------- nested columns

--@ nested_field_summed
select sum(st.x) from t

--@ nested_field_deep
select sum(st.deep.q), count(st.deep.p) from t where id < 4000

--@ nested_fields_of_two_levels
select sum(st.x), max(st.deep.p) from t where st.y = 'city_3'

--@ nested_whole_struct
select count(st), count(distinct st), sum(cast(hash(st) as bigint)) from t

--@ nested_struct_and_its_field
select st.x, count(st) from t group by st.x

--@ nested_filter
select count(*), sum(st.x) from t where st.x = 5 and st.y > 'city_1'

--@ nested_null_struct
select count(*) from t where st is null

--@ nested_null_field
select count(*), count(st) from t where st.x is null

--@ nested_in_array_of_structs
select sum(i) from (select explode(items.k) i from t where a < 20)

--@ nested_array_element
select sum(items[0].k), max(items[1].v) from t

--@ nested_map_value
select sum(tags['m']), count(tags['x3']) from t where tags['m'] > 10

--@ nested_exploded
select sum(e), count(*) from (select explode(array(a, st.x)) e from t where a < 5)

--@ nested_array_exploded
select e, count(*) from (select explode(ints) e from t) group by e

--@ nested_inline
select k, count(*), max(v) from (select inline(items) from t where id < 3000) group by k

---------------------------------------------------------------- filters

--@ filter_equal
select sum(c) from t where a = 7

--@ filter_range
select sum(c) from t where a < 500 and id >= 1234 and id <= 70000

--@ filter_between_on_string
select count(*) from t where s1 between 'city_0007' and 'city_0011'

--@ filter_in
select sum(id), count(*) from t where a in (1, 5, 999, 12345)

--@ filter_in_long_list
select sum(id) from t where id in (
    0, 37, 74, 111, 148, 185, 222, 259, 296, 333, 370, 407, 444, 481, 518, 555, 592, 629, 666, 703, 740, 777, 814,
    851, 888, 925, 962, 999, 1036, 1073, 1110, 1147, 1184, 1221, 1258, 1295, 1332, 1369, 1406, 1443, 1480, 1517, 1554,
    1591, 1628, 1665, 1702, 1739, 1776, 1813, 1850, 1887, 1924, 1961, 1998, 2035, 2072, 2109, 2146, 2183, 2220, 2257,
    2294, 2331, 2368, 2405, 2442, 2479, 2516, 2553, 2590, 2627, 2664, 2701, 2738, 2775, 2812, 2849, 2886, 2923, 2960,
    2997, 3034, 3071, 3108, 3145, 3182, 3219, 3256, 3293, 3330, 3367, 3404, 3441, 3478, 3515, 3552, 3589, 3626, 3663,
    3700, 3737, 3774, 3811, 3848, 3885, 3922, 3959, 3996, 4033, 4070, 4107, 4144, 4181, 4218, 4255, 4292, 4329, 4366,
    4403
)

--@ filter_in_with_null
select count(*) from t where s2 in ('x1', null)

--@ filter_not_in
select count(*), sum(a) from t where a not in (1, 2, 3) and s1 not in ('city_0001')

--@ filter_not_in_with_null
select count(*) from t where a not in (1, null)

--@ filter_null
select count(*), sum(id) from t where b is null

--@ filter_not_null
select count(*), sum(id) from t where s1 is not null and flag is not null

--@ filter_null_safe_equal
select count(*) from t where s1 <=> null or s1 <=> 'city_0003'

--@ filter_not_equal
select count(*) from t where s1 <> 'city_0003' and a != 3

--@ filter_or_of_columns
select count(*), sum(a) from t where (a = 3 and s1 = 'city_0003') or (flag and a > 990)

--@ filter_not_of_and
select count(*) from t where not (a > 10 and flag)

--@ filter_nulls_not_and_or
select count(*) from t where b is not null and not (a in (1, 2, 3)) or flag

--@ filter_boolean
select count(*) from t where flag

--@ filter_boolean_not
select count(*) from t where not flag

--@ filter_boolean_is_false
select count(*) from t where flag is not true

--@ filter_string_match
select count(*) from t where s1 like 'city_00%' and s2 like '%2' and s1 like '%_1%'

--@ filter_string_prefix
select count(*) from t where startswith(s1, 'city_001') or endswith(s2, 'é') or contains(s2, '11')

--@ filter_string_match_of_columns
select count(*), sum(id) from t where startswith('x12é', s2) or contains(s1, s2) or endswith(s2, `dotted.name`)

--@ filter_string_accents
select count(*) from t where s2 > 'x9'

--@ filter_date_and_timestamp
select count(*), max(ts), min(d) from t where ts > timestamp'2023-11-15 00:00:00.5' and d < date'2024-06-01'

--@ filter_timestamp_fraction
select count(*) from t where ts <= timestamp'2023-11-14 22:14:20.123456'

--@ filter_timestamp_without_zone
select count(*) from t where ntz >= timestamp_ntz'2023-12-01 00:00:00'

--@ filter_timestamp_cast_to_date
select count(*) from t where cast(ts as date) = date'2023-12-05'

--@ filter_decimal
select count(*), sum(price) from t where price >= 123.456 and price < 200

--@ filter_double_nan
select count(*) from t where b = double('NaN')

--@ filter_double_greater_keeps_nan
select count(*) from t where b > 39000

--@ filter_double_zero
select count(*) from t where b = 0.0D

--@ filter_double_in_nan
select count(*) from t where b in (double('NaN'), 0.5D)

--@ filter_float
select count(*) from t where f >= 97.5 and f < 1e30

--@ filter_binary
select count(*) from t where bin = cast('42' as binary) or bin > cast('95' as binary)

--@ filter_columns_compared
select count(*) from t where a = c or a > part * 200

--@ filter_arithmetic
select count(*) from t where a + 1 = 8 and abs(c) % 2 = 1

--@ filter_contradiction
select count(*), sum(a) from t where a = 1 and a = 2

--@ filter_column_not_selected
select 1 from t where a = 77

--@ filter_partition_key
select count(*), sum(id) from t where part = 2 and a < 100

--@ filter_partition_key_in
select part, count(*) from t where part in (0, 3) group by part

--@ filter_partition_key_or_column
select count(*) from t where part = 1 or a = 10

--@ filter_case_when
select count(*) from t where case when flag then a > 900 else a < 10 end

--@ filter_nondeterministic_kept
select count(*) >= 0 from t where rand(1) < 2 and a = 3

---------------------------------------------------------------- groups, order, sets

--@ group_by
select s1, sum(a) q, count(*) n from t where d >= date'2024-01-01' group by s1

--@ group_count
select a, count(*) from t group by a

--@ group_having
select s1, count(*) n from t group by s1 having n > 10 and max(a) > 998

--@ group_rollup
select s1, flag, count(*), sum(a) from t where a < 3 group by rollup(s1, flag)

--@ group_pivot
select * from (select flag, a, st.x % 2 m from t where a < 4) pivot (sum(a) for m in (0, 1))

--@ group_filtered_aggregates
select count(*) filter (where flag), sum(a) filter (where s1 = 'city_0002') from t

--@ order_limit
select id, s2 from t where a = 1 order by c desc limit 7

--@ order_limit_unfiltered
select id, a from t order by c desc limit 5

--@ limit_counted
select count(*) from (select * from t limit 100)

--@ limit_filtered_after
select count(*) <= 10 from (select * from t limit 10) where a < 5000

--@ limit_with_offset
select count(*) from (select id from t limit 20 offset 30)

--@ limit_with_offset_near_the_end
select count(*) from (select id from t limit 10 offset 5995)

--@ limit_large
select count(*) from (select id from t limit 70000)

--@ limit_beyond_rows_of_a_file
select count(*), count(distinct id) from (select id from t limit 45000)

--@ limit_in_union
select count(*) from ((select id from t limit 3) union all (select id from t limit 4))

--@ limit_aggregated
select count(*) from (select sum(a) over (partition by part) from (select * from t limit 50))

--@ set_intersect
select a from t where flag intersect select st.x from t

--@ set_except
select s1 from t except select s1 from t where a < 100

--@ set_union_all_columns
select sum(cast(hash(id, s1, st) as bigint)) from (select * from t where a = 1 union all select * from t where a = 1)

--@ set_union_of_different_columns
select sum(x) from (select a x from t where flag union all select c from t where a = 9)

--@ set_union_of_different_filters
select x, count(*) from (select 1 x from t where a = 1 union all select 2 from t where a = 2) group by x

---------------------------------------------------------------- joins and subqueries

--@ join_outer
select count(*), count(r.id), sum(l.a)
from t l left join (select id, a from t where flag) r on l.id = r.id and r.a > 500 where l.a < 50

--@ join_full_outer
select count(*), sum(l.id), sum(r.id) from (select id, a from t where a < 4) l full join
(select id, a from t where a between 2 and 6) r on l.id = r.id

--@ join_anti
select count(*) from t where a < 50 and id not in (select id from t where flag and id is not null)

--@ join_semi
select count(*), sum(c) from t l where a < 9 and exists (select 1 from t r where r.id = l.id and r.st.x = 3)

--@ join_cross
select count(*), sum(l.id) from (select id from t where a = 1) l cross join (select id from t where a = 2 limit 3) r

--@ join_broadcast
select /*+ broadcast(r) */ sum(l.c), max(r.s1) from t l join t r on l.id = r.id where r.a = 5

--@ subquery_scalar_twice
select (select max(a) from t), (select min(c) from t), (select sum(a) from t where flag)

--@ subquery_scalar_same_scan
select (select max(a) from t), (select min(a) from t)

--@ subquery_in_filter
select count(*) from t where c > (select avg(c) from t) and a = 5

--@ subquery_correlated
select count(*) from t o where a < 5 and c > (select avg(c) from t i where i.s1 = o.s1)

--@ subquery_exists_in_cte
with q as (select s1, sum(a) sa, max(c) mc from t group by s1)
select count(*), sum(sa) from q where sa > (select avg(sa) from q)
and exists (select 1 from t where t.s1 = q.s1 and t.a = 3)

--@ cte_used_twice
with q as (select id, a, s1 from t where a < 40)
select count(*), sum(x.a) from q x join q y on x.id = y.id and x.s1 = y.s1

--@ cte_of_random_numbers_used_twice
with q as (select id, a, rand() r from t where a < 20)
select count(*), sum(x.id) from q x join q y on x.id = y.id and x.r = y.r where y.a > 10

--@ cte_of_different_columns
with q as (select * from t where a < 9) select (select max(s1) from q where flag), (select sum(c) from q)

--@ lateral
select count(*), sum(z) from t, lateral (select t.a + t.st.x as z) where t.a < 9

--@ window
select sum(c), count(*)
from (select s1, c, row_number() over (partition by s1 order by c) n from t where a < 30) where n <= 2

--@ window_over_partition_key
select max(r) from (select rank() over (partition by part order by id) r from t where flag)

---------------------------------------------------------------- joins that choose files

--@ join_on_partition_key
select count(*), sum(l.c), max(r.x) from t l
join (select part, max(id) x from t where a < 5 and part in (1, 3) group by part) r on l.part = r.part

--@ join_on_partition_key_semi
select count(*), sum(c) from t where part in (select part + 1 from t where id in (5, 6) and a < 900)

--@ join_on_partition_key_of_the_same_rows
with q as (select id, part, a, c from t where a < 30)
select count(*), sum(x.c), sum(y.a) from q x join q y on x.part = y.part and x.id = y.id + 4 where y.a in (3, 4)

--@ join_on_partition_key_outer
select count(*), count(r.part), sum(l.id) from t l left join (select part from t where id = 7) r on l.part = r.part where l.a < 90

--@ join_of_parts_with_other_keys
select count(*), sum(l.id) from t l join (select part, id from t where id in (1, 2)) r on l.part = r.part
join (select part, id from t where id in (2, 3, 7)) s on l.part = s.part

--@ join_on_partition_key_anti
select count(*), sum(id) from t where a < 90 and not exists (select 1 from t r where r.part = t.part and r.id in (1, 2))

--@ join_on_partition_key_null_safe
select count(*), sum(l.id) from t l join (select part from t where id in (1, 6)) r on l.part <=> r.part where l.a < 90

--@ filter_partition_key_by_subquery
select count(*), sum(id) from t where part = (select min(part) from t where id > 5 and a = 6)

--@ union_of_joins_on_partition_key
select x, count(*) from (select 1 x from t join (select part from t where id = 1) r using (part)
union all select 2 from t join (select part from t where id = 2) r using (part) union all select 3 from t) group by x
