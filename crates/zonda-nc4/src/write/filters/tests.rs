use zonda_hdf5::message::{Charset, Padding};

use super::*;
use crate::model::Endianness;
use crate::write::datatypes::atomic;

fn filter(id: u16, params: &[u32]) -> FilterDescription {
    FilterDescription { id, name: Box::default(), flags: 1, params: params.to_vec() }
}

fn made(
    id: u16,
    given: &[u32],
    ext: ExtType,
    order: Endianness,
    chunk: &[u64],
) -> Option<Vec<u32>> {
    params(&filter(id, given), &atomic(ext, order), chunk, Some(&default_fill(ext)[..ext.size()]))
}

/// Parameters as HDF5 1.10.8 and the plugins of netCDF-C 4.9.0 write them for these types and chunks.
#[test]
fn what_filters_are_told_besides() {
    use Endianness::{Big, Little};
    use ExtType::{Double, Float, Int, Short, UByte};
    type Case = (u16, &'static [u32], ExtType, Endianness, &'static [u64], &'static [u32]);
    let cases: &[Case] = &[
        (SHUFFLE, &[], Double, Little, &[4, 6], &[8]),
        (SZIP, &[32, 8], Int, Little, &[4, 6], &[169, 8, 32, 24]),
        (SZIP, &[4, 8], Short, Big, &[4, 100], &[149, 8, 16, 100]),
        (SZIP, &[32, 8], Double, Little, &[4, 2000], &[169, 8, 64, 1024]),
        (SZIP, &[32, 32], UByte, Little, &[5000], &[169, 32, 8, 4096]),
        (NBIT, &[], Int, Big, &[10, 10], &[8, 1, 100, 1, 4, 1, 32, 0]),
        (
            SCALE_OFFSET,
            &[2, 0],
            Short,
            Little,
            &[10],
            &[2, 0, 10, 0, 2, 1, 0, 1, 32769, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (
            SCALE_OFFSET,
            &[0, 3],
            Float,
            Little,
            &[10],
            &[0, 3, 10, 1, 4, 0, 0, 1, 2_096_103_424, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (
            SCALE_OFFSET,
            &[0, 3],
            Double,
            Big,
            &[10],
            &[0, 3, 10, 1, 8, 0, 1, 1, 0, 0x479e_0000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (LZF, &[], Int, Little, &[10, 10], &[4, 0x105, 400]),
        (BLOSC, &[0, 0, 0, 0, 5, 1, 1], Short, Little, &[10, 10], &[0, 0, 2, 200, 5, 1, 1]),
        (BLOSC2, &[0, 0, 0, 0, 5, 1, 1], Int, Little, &[10], &[0, 0, 4, 40, 5, 1, 1]),
        (BITSHUFFLE, &[0, 2], Double, Little, &[10], &[0, 4, 8, 0, 2]),
        (BITSHUFFLE, &[], Double, Little, &[10], &[0, 4, 8, 0, 0]),
    ];
    for (id, given, ext, order, chunk, expected) in cases {
        let found = made(*id, given, *ext, *order, chunk);
        assert_eq!(found.as_deref(), Some(*expected), "{id} {ext:?} {chunk:?}");
    }
}

#[test]
fn what_cannot_be_told_stays_as_given() {
    let little = Endianness::Little;
    assert_eq!(made(DEFLATE, &[5], ExtType::Int, little, &[4]), None);
    assert_eq!(made(SZIP, &[32], ExtType::Int, little, &[400]), None, "too few");
    assert_eq!(made(SZIP, &[32, 8], ExtType::Int, little, &[4]), None, "too short");
    assert_eq!(made(BLOSC, &[0, 0], ExtType::Int, little, &[4]), None);
    let (padding, charset) = (Padding::NullTerminated, Charset::Ascii);
    let text = Datatype { size: 1, class: Class::String { padding, charset } };
    assert_eq!(params(&filter(SZIP, &[32, 8]), &text, &[400], None), None);
    assert_eq!(params(&filter(NBIT, &[]), &text, &[400], None), None);
}
