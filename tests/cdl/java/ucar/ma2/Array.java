// SPDX-License-Identifier: MIT OR Apache-2.0
package ucar.ma2;

/** Values with a shape; see {@link ucar.nc2.NetcdfFileWriteable}. */
public class Array {
    public final int[] shape;
    public final Object values;

    private Array(int[] shape, Object values) {
        this.shape = shape;
        this.values = values;
    }

    public static Array factory(Class<?> type, int[] shape, Object values) {
        int n = 1;
        for (int length : shape) {
            n *= length;
        }
        if (values.getClass().getComponentType() != type || java.lang.reflect.Array.getLength(values) != n) {
            throw new IllegalArgumentException("other values than the type and the shape say");
        }
        return new Array(shape, values);
    }
}
