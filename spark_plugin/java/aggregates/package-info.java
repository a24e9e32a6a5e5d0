/**
 * Aggregates over one scan: answers from the log, and partial rows.
 *
 * <p>LogAnswers puts the log's answer in the place of the scan. PartialAggregates puts a scan there whose tasks add up rows by
 * groups. Filters and projections between aggregate and scan stay, or go into the request.
 */
package pydelta.aggregates;
