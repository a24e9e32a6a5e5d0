/**
 * The optimizer rule, and what it finds in a plan.
 *
 * <p>{@link PruneScans} is the rule. For each plan it does these steps, in this order:
 *
 * <ol>
 *   <li>StreamScans: the streams of a micro-batch get the columns that the query needs, and its filter.
 *   <li>ReopenScans: planned scans of pydelta become relations again, so that Spark's push-down runs once more.
 *   <li>Spark's V2ScanRelationPushDown: PrunableTable and PrunedScanBuilder collect columns, filters and limit.
 *   <li>ScanCensus: if a scan was lost, the plan stays as it was.
 *   <li>LogAnswers and PartialAggregates: an aggregate gets the log's answer, or partial rows.
 *   <li>JoinRules: Spark's own rules for joins run again, as sizes and partition columns are known now.
 *   <li>OneTask: a small query over one task needs no shuffle.
 * </ol>
 *
 * <p>If a step fails, the plan stays as it was and RuleStatus counts it. Then tables are read whole, and rows are right.
 */
package pydelta.rule;
