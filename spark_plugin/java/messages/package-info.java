/**
 * The messages between the rule and the source, as pruning/messages.json describes them.
 *
 * <p>PredicateJson writes filters for Python. Python answers a request with partitions, and the first of them has the messages
 * (PartitionMessages): the ReadPlan of the scan, and which files it keeps (KeptFiles).
 *
 * <p>In: predicates of Spark, and answers of Python. Out: JSON, and the parts of the answers as values.
 */
package pydelta.messages;
