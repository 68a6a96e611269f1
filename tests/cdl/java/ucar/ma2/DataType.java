// SPDX-License-Identifier: MIT OR Apache-2.0
package ucar.ma2;

/** Stands in for the library's type of the same name, for programs that ncgen makes. */
public enum DataType {
    BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE
}
