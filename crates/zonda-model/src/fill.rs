//! Default fill values (NetCDF File Format Specifications, "Fill Values").

use crate::ExtType;

/// One element in native byte order: the first [`ExtType::size`] bytes count.
pub type FillBytes = [u8; 8];

/// The default fill value of `ty` in native byte order, as `nc_inq_var_fill` hands it out.
///
/// The first `ty.size()` bytes of the result are the value; the rest are zero.
#[must_use]
pub fn default_fill(ty: ExtType) -> FillBytes {
    let mut out = [0u8; 8];
    let mut set = |bytes: &[u8]| {
        for (to, from) in out.iter_mut().zip(bytes) {
            *to = *from;
        }
    };
    match ty {
        ExtType::Byte => set(&(-127i8).to_ne_bytes()),
        ExtType::Char => set(&[0]),
        ExtType::Short => set(&(-32767i16).to_ne_bytes()),
        ExtType::Int => set(&(-2_147_483_647i32).to_ne_bytes()),
        ExtType::Float => set(&f32::from_bits(0x7CF0_0000).to_ne_bytes()),
        ExtType::Double => set(&f64::from_bits(0x479E_0000_0000_0000).to_ne_bytes()),
        ExtType::UByte => set(&[255]),
        ExtType::UShort => set(&65535u16.to_ne_bytes()),
        ExtType::UInt => set(&u32::MAX.to_ne_bytes()),
        ExtType::Int64 => set(&(-9_223_372_036_854_775_806i64).to_ne_bytes()),
        ExtType::UInt64 => set(&18_446_744_073_709_551_614u64.to_ne_bytes()),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_fills_are_the_specified_number() {
        let float = f32::from_ne_bytes(default_fill(ExtType::Float)[..4].try_into().unwrap());
        let double = f64::from_ne_bytes(default_fill(ExtType::Double));
        assert_eq!(float, 9.969_21e36_f32);
        assert_eq!(double, 9.969_209_968_386_869e36_f64);
    }
}
