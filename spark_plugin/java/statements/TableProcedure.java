package pydelta.statements;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits$;
import org.apache.spark.sql.connector.catalog.DefaultValue;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.internal.connector.ProcedureParameterImpl;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import pydelta.tables.Errors;
import pydelta.tables.Source;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A procedure that Python runs: CALL pydelta.system.optimize(table => 'shop.sales'). Python has listed the procedures and their
 * parameters (sql_catalog/procedures.py).
 */
public class TableProcedure implements DescribedProcedure {
  private static final String NAMESPACE = "system";

  private final String name;
  private final String description;
  private final ProcedureParameter[] parameters;

  private TableProcedure(JsonNode said) {
    this.name = said.get("name").asText();
    this.description = said.get("description").asText();
    var all = new ArrayList<ProcedureParameter>();
    for (JsonNode each : said.get("parameters")) all.add(parameter(each));
    this.parameters = all.toArray(new ProcedureParameter[0]);
  }

  private static ProcedureParameter parameter(JsonNode said) {
    DefaultValue value = said.get("default").isNull() ? null : new DefaultValue(said.get("default").asText());
    DataType type = DataType.fromDDL(said.get("type").asText());
    return new ProcedureParameterImpl(
        ProcedureParameter.Mode.IN, said.get("name").asText(), type, value, said.get("comment").asText());
  }

  public static TableProcedure load(Identifier ident) {
    if (isOurs(ident.namespace())) {
      for (JsonNode said : told()) {
        if (said.get("name").asText().equalsIgnoreCase(ident.name())) return new TableProcedure(said);
      }
    }
    throw Errors.unchecked(new NoSuchFunctionException(ident));
  }

  public static Identifier[] list(String[] namespace) {
    var found = new ArrayList<Identifier>();
    if (namespace.length == 0 || isOurs(namespace)) {
      for (JsonNode said : told()) found.add(ident(said.get("name").asText()));
    }
    return found.toArray(new Identifier[0]);
  }

  private static Identifier ident(String name) {
    Seq<String> parts = CollectionConverters.asScala(List.of(NAMESPACE, name)).toSeq();
    return CatalogV2Implicits$.MODULE$.MultipartIdentifierHelper(parts).asIdentifier();
  }

  private static boolean isOurs(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase(NAMESPACE);
  }

  private static Iterable<JsonNode> told() {
    String text = Source.rule().told("procedures");
    return text == null ? List.of() : Errors.undeclared(() -> new ObjectMapper().readTree(text));
  }

  public String name() {
    return name;
  }

  public String description() {
    return description;
  }

  public BoundProcedure bind(StructType types) {
    return this;
  }

  public ProcedureParameter[] parameters() {
    return parameters;
  }

  public boolean isDeterministic() {
    return false;
  }

  // ---------------------------------------------------------------- the call

  public Iterator<Scan> call(InternalRow arguments) {
    if (!DriverPython.isThere()) {
      throw Errors.unsupported("CALL of " + name + ": Python carries it out, and this Spark is a server that no Python drives; "
          + "nothing was done. Call it by spark.sql of a registered session, outside of scripts, or use the methods of "
          + "DeltaTable.");
    }
    ObjectNode values = JsonNodeFactory.instance.objectNode();
    for (int i = 0; i < parameters.length; i++) values.set(parameters[i].name(), json(arguments, i, parameters[i].dataType()));
    ObjectNode request = JsonNodeFactory.instance.objectNode();
    request.put("procedure", name);
    request.set("arguments", values);
    ResultScan result = ResultScan.of(DriverPython.ask(Source.session(), request, null));
    return result.readSchema().length() == 0 ? Collections.emptyIterator() : List.<Scan>of(result).iterator();
  }

  private static JsonNode json(InternalRow arguments, int place, DataType type) {
    if (arguments.isNullAt(place)) return NullNode.getInstance();
    if (type.equals(DataTypes.StringType)) return TextNode.valueOf(arguments.getUTF8String(place).toString());
    if (type.equals(DataTypes.BooleanType)) return BooleanNode.valueOf(arguments.getBoolean(place));
    if (type.equals(DataTypes.LongType)) return LongNode.valueOf(arguments.getLong(place));
    if (type.equals(DataTypes.DoubleType)) return DoubleNode.valueOf(arguments.getDouble(place));
    if (type instanceof ArrayType) return texts(arguments.getArray(place));
    if (type instanceof MapType) return pairs(arguments.getMap(place));
    throw new IllegalStateException("a procedure has a parameter of the type " + type.sql());
  }

  private static ArrayNode texts(ArrayData values) {
    ArrayNode all = JsonNodeFactory.instance.arrayNode();
    for (int i = 0; i < values.numElements(); i++) all.add(text(values, i));
    return all;
  }

  private static ObjectNode pairs(MapData values) {
    ObjectNode all = JsonNodeFactory.instance.objectNode();
    for (int i = 0; i < values.numElements(); i++) {
      all.set(values.keyArray().getUTF8String(i).toString(), text(values.valueArray(), i));
    }
    return all;
  }

  private static JsonNode text(ArrayData values, int place) {
    if (values.isNullAt(place)) return NullNode.getInstance();
    return TextNode.valueOf(values.getUTF8String(place).toString());
  }
}
