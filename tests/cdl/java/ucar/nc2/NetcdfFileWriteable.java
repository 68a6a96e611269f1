// SPDX-License-Identifier: MIT OR Apache-2.0
package ucar.nc2;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import ucar.ma2.Array;
import ucar.ma2.DataType;

/**
 * Stands in for the library's class of the same name, for programs that ncgen makes: what they ask for
 * is printed as CDL when the file is closed, so that tests can compare it.
 */
public class NetcdfFileWriteable {
    private static class Variable {
        DataType type;
        Dimension[] dims;
        final Map<String, Object> attributes = new LinkedHashMap<>();
        /** By index, as text; the lengths of dimensions that grow are not known yet. */
        final List<int[]> indices = new ArrayList<>();
        final List<String> values = new ArrayList<>();
    }

    private final List<Dimension> dims = new ArrayList<>();
    private final Map<String, Variable> vars = new LinkedHashMap<>();
    private final Map<String, Object> attributes = new LinkedHashMap<>();
    private boolean defining = true;

    public static NetcdfFileWriteable createNew(String path, boolean fill) {
        return new NetcdfFileWriteable();
    }

    public Dimension addDimension(String name, int length) {
        Dimension dim = new Dimension(name, length);
        dims.add(dim);
        return dim;
    }

    public Dimension addUnlimitedDimension(String name) {
        return addDimension(name, 0);
    }

    public void addVariable(String name, DataType type, Dimension[] dims) {
        Variable var = new Variable();
        var.type = type;
        var.dims = dims;
        vars.put(name, var);
    }

    public void addGlobalAttribute(String name, String value) {
        attributes.put(name, value);
    }

    public void addGlobalAttribute(String name, Array value) {
        attributes.put(name, value);
    }

    public void addVariableAttribute(String var, String name, String value) {
        vars.get(var).attributes.put(name, value);
    }

    public void addVariableAttribute(String var, String name, Array value) {
        vars.get(var).attributes.put(name, value);
    }

    public void create() {
        defining = false;
    }

    public void write(String name, int[] origin, Array data) {
        Variable var = vars.get(name);
        if (defining || origin.length != var.dims.length || data.shape.length != origin.length) {
            throw new IllegalStateException("data of " + name + " before create, or of another rank");
        }
        int n = java.lang.reflect.Array.getLength(data.values);
        for (int at = 0; at < n; at++) {
            int[] index = origin.clone();
            int rest = at;
            for (int dim = index.length - 1; dim >= 0; dim--) {
                index[dim] += rest % data.shape[dim];
                rest /= data.shape[dim];
            }
            var.indices.add(index);
            var.values.add(text(java.lang.reflect.Array.get(data.values, at)));
        }
    }

    public void close() {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        out.println("netcdf x {\ndimensions:");
        for (Dimension dim : dims) {
            out.println(escaped(dim.name) + " = " + (dim.length == 0 ? "UNLIMITED" : "" + dim.length) + " ;");
        }
        out.println("variables:");
        vars.forEach((name, var) -> {
            String shape = "";
            for (Dimension dim : var.dims) {
                shape += (shape.isEmpty() ? "(" : ", ") + escaped(dim.name);
            }
            out.println(var.type.name().toLowerCase() + " " + escaped(name) + shape
                + (shape.isEmpty() ? "" : ")") + " ;");
            var.attributes.forEach((att, value) -> attribute(out, escaped(name), att, value));
        });
        attributes.forEach((att, value) -> attribute(out, "", att, value));
        out.println("data:");
        vars.forEach((name, var) -> {
            if (!var.values.isEmpty()) {
                out.println(escaped(name) + " = " + String.join(", ", all(var)) + " ;");
            }
        });
        out.println("}");
        out.flush();
    }

    /** All values in order, with the fill value where there is none. */
    private static List<String> all(Variable var) {
        int first = 0;
        for (int[] index : var.indices) {
            first = Math.max(first, index.length == 0 ? 1 : index[0] + 1);
        }
        int n = 1;
        for (int dim = 0; dim < var.dims.length; dim++) {
            n *= var.dims[dim].length == 0 ? first : var.dims[dim].length;
        }
        String fill = "_";
        if (var.type == DataType.CHAR) {
            Object value = var.attributes.get("_FillValue");
            fill = text(value == null ? '\0' : ((String) value).charAt(0));
        }
        TreeMap<Integer, String> there = new TreeMap<>();
        for (int value = 0; value < var.values.size(); value++) {
            int at = 0;
            for (int dim = 0; dim < var.dims.length; dim++) {
                int length = dim == 0 ? first : var.dims[dim].length;
                at = at * length + var.indices.get(value)[dim];
            }
            there.put(at, var.values.get(value));
        }
        List<String> values = new ArrayList<>();
        for (int at = 0; at < n; at++) {
            values.add(there.getOrDefault(at, fill));
        }
        return values;
    }

    private static void attribute(PrintStream out, String owner, String name, Object value) {
        String list;
        if (value instanceof String) {
            StringBuilder text = new StringBuilder("\"");
            for (char letter : ((String) value).toCharArray()) {
                text.append(letter < 0x80 ? String.format("\\%03o", (int) letter) : "" + letter);
            }
            list = text + "\"";
        } else {
            Object values = ((Array) value).values;
            List<String> texts = new ArrayList<>();
            for (int at = 0; at < java.lang.reflect.Array.getLength(values); at++) {
                texts.add(text(java.lang.reflect.Array.get(values, at)));
            }
            list = String.join(", ", texts);
        }
        out.println(owner + " :" + escaped(name) + " = " + list + " ;");
    }

    private static String text(Object value) {
        if (value instanceof Byte) {
            return value + "b";
        } else if (value instanceof Short) {
            return value + "s";
        } else if (value instanceof Float) {
            return value + "f";
        } else if (value instanceof Character) {
            return String.format("'\\%03o'", (int) (Character) value);
        }
        return value.toString();
    }

    private static String escaped(String name) {
        StringBuilder out = new StringBuilder();
        for (char letter : name.toCharArray()) {
            boolean digitInFront = out.length() == 0 && Character.isDigit(letter);
            boolean plain = letter >= 0x80 || Character.isLetterOrDigit(letter) || "_.@+-".indexOf(letter) >= 0;
            out.append(plain && !digitInFront ? "" : "\\").append(letter);
        }
        return out.toString();
    }
}
