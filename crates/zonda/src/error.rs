//! The error of every operation is that of all formats.

pub use zonda_format::{Error, Result};

#[cfg(test)]
mod tests {
    use zonda_classic::ClassicError;
    use zonda_model::memory::NoMemory;
    use zonda_model::{Answer, NcError};
    use zonda_nc4::Nc4Error;
    use zonda_storage::StorageError;

    use super::*;

    #[test]
    fn what_there_was_no_memory_for_is_said_once() {
        let _old = zonda_model::memory::take_refused();
        let refused = || NoMemory::of::<u64>(5);
        let object = String::from("/v");
        let cases = [
            Error::from(refused()),
            Error::from(NcError::from(refused())),
            Nc4Error::Refused { object, code: refused().into() }.into(),
        ];
        for error in cases {
            assert_eq!(
                (error.code(), error.cause().matches("40 bytes").count()),
                (NcError::NoMem, 1)
            );
        }
        assert!(!Error::from(NcError::NoMem).cause().contains("bytes"));
    }

    #[test]
    fn the_answer_is_known_through_all_layers() {
        use zonda_chunk::{ChunkError, FilterError};
        use zonda_hdf5::HdfError;
        let hdf = |error| Error::from(Nc4Error::Hdf { object: String::from("/v"), error });
        let chunk = |error| Error::from(Nc4Error::Chunk { object: String::from("/v"), error });
        let filter = |error| chunk(ChunkError::Filter { chunk: vec![0], at: 5, error });
        let cycle = || HdfError::Cycle { structure: "tree", at: 9 };
        let version =
            |version| HdfError::BadVersion { structure: "tree", at: 9, version, newest: 5 };
        let elsewhere = |cause| HdfError::InOtherFile {
            what: "external file",
            name: "x".into(),
            cause: Box::new(cause),
        };
        let words = String::from("its attribute a has more dimensions than one");
        let no_words = Nc4Error::Unrepresentable {
            object: String::from("/v"),
            what: words,
            code: NcError::AttMeta,
        };
        let missing = FilterError::Missing { id: 60_000, name: String::new() };
        let unsupported = HdfError::Unsupported { structure: "tree", at: 9, what: "it" };
        let cases = [
            (hdf(cycle()), Answer::Damaged),
            (chunk(ChunkError::Table(Box::new(cycle()))), Answer::Damaged),
            (chunk(ChunkError::Truncated { at: 11, len: 1 }), Answer::Damaged),
            (
                ClassicError::BadTag { production: "att", at: 8, expected: 1, found: 2 }.into(),
                Answer::Damaged,
            ),
            (hdf(version(200)), Answer::Damaged),
            (hdf(version(6)), Answer::Undecodable),
            (hdf(unsupported.clone()), Answer::Undecodable),
            (chunk(ChunkError::Table(Box::new(unsupported))), Answer::Undecodable),
            (filter(missing), Answer::Undecodable),
            (no_words.into(), Answer::Unrepresentable),
            (hdf(elsewhere(HdfError::NoFile)), Answer::Missing),
            (hdf(elsewhere(cycle())), Answer::Damaged),
            (ClassicError::BadMagic { found: vec![1] }.into(), Answer::Unknown),
            (ClassicError::ReadOnly.into(), Answer::Request),
            (Error::from(ClassicError::ReadOnly).in_a_header(), Answer::Damaged),
            (NoMemory::of::<u64>(5).into(), Answer::NoMemory),
            (NcError::System(2).into(), Answer::Missing),
        ];
        for (error, answer) in cases {
            assert_eq!(error.answer(), answer, "{error}");
            // This code says the same in other words.
            let (code, offset) = (error.code(), error.offset());
            let retold = error.with_other_text("in other words");
            assert_eq!((retold.answer(), retold.code(), retold.offset()), (answer, code, offset));
            assert_eq!(retold.line(), answer.said_of("in other words"));
        }
    }

    #[test]
    fn the_byte_is_known_through_all_layers() {
        let far = || StorageError::TooFar { op: zonda_storage::Op::Read, at: 7, len: 1 };
        let cycle = || zonda_hdf5::HdfError::Cycle { structure: "tree", at: 9 };
        let chunk = |error| Nc4Error::Chunk { object: String::from("/v"), error };
        let cases = [
            (Error::from(far()), Some(7)),
            (Error::from(ClassicError::from(far())), Some(7)),
            (ClassicError::BadMagic { found: vec![1] }.into(), Some(0)),
            (ClassicError::ReadOnly.into(), None),
            (Nc4Error::Hdf { object: String::from("/"), error: cycle() }.into(), Some(9)),
            (chunk(zonda_chunk::ChunkError::Table(Box::new(cycle()))).into(), Some(9)),
            (chunk(zonda_chunk::ChunkError::Truncated { at: 11, len: 1 }).into(), Some(11)),
            (chunk(zonda_chunk::ChunkError::NoMemory { bytes: 1 }).into(), None),
            (Error::because(NcError::Inval, "at byte 5"), None),
        ];
        for (error, offset) in cases {
            assert_eq!(error.offset(), offset, "{error}");
            // Where there is a text, it says the same.
            if let Some(offset) = offset {
                assert!(error.to_string().contains(&format!("byte {offset}")), "{error}");
            }
        }
    }
}
