/**
 * One scan: what it requests from the source, and what the source has decided.
 *
 * <p>PrunedSource calls {@link ScanRequest#plan} for the plan. The request travels in the metadata of the schema's first field.
 * Python answers with partitions; the first one has the ReadPlan (PartitionMessages). ScanTasks makes the tasks and the factory
 * that reads them. pruning/messages.json describes both messages.
 */
package pydelta.scan;
