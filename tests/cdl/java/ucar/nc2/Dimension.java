// SPDX-License-Identifier: MIT OR Apache-2.0
package ucar.nc2;

/** A dimension; length 0 can grow. */
public class Dimension {
    final String name;
    final int length;

    Dimension(String name, int length) {
        this.name = name;
        this.length = length;
    }
}
