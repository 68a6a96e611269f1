//! Numbers of the types that variables have.

/// An element of a type of the file in native bytes.
pub(crate) fn element(nc_type: i32, value: i32) -> Vec<u8> {
    match nc_type {
        1 => (value as i8).to_ne_bytes().to_vec(),
        3 => (value as i16).to_ne_bytes().to_vec(),
        4 => value.to_ne_bytes().to_vec(),
        5 => (value as f32).to_ne_bytes().to_vec(),
        6 => f64::from(value).to_ne_bytes().to_vec(),
        7 => (value as u8).to_ne_bytes().to_vec(),
        8 => (value as u16).to_ne_bytes().to_vec(),
        9 => (value as u32).to_ne_bytes().to_vec(),
        10 => i64::from(value).to_ne_bytes().to_vec(),
        _ => (value as u64).to_ne_bytes().to_vec(),
    }
}

/// What a number of the type is that nobody put, as a double.
pub(crate) fn default_fill(nc_type: i32) -> f64 {
    match nc_type {
        1 => -127.0,
        3 => -32767.0,
        4 => -2147483647.0,
        5 | 6 => f64::from(9.969_21e36_f32),
        7 => 255.0,
        8 => 65535.0,
        9 => 4294967295.0,
        10 => -9223372036854775806_i64 as f64,
        _ => 18446744073709551614_u64 as f64,
    }
}
