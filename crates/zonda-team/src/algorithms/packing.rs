//! What ranks send each other, as bytes. Numbers are little-endian, and lengths have 64 bits.

/// Numbers as bytes.
pub(super) fn from_numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The number at the beginning of bytes, and the rest.
fn split_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

/// Bytes as numbers, if they are whole ones.
pub(super) fn numbers(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (number, rest) = split_number(bytes)?;
        found.push(number);
        bytes = rest;
    }
    Some(found)
}

/// Adds one more list of bytes to some.
pub(super) fn push(packed: &mut Vec<u8>, bytes: &[u8]) {
    packed.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    packed.extend_from_slice(bytes);
}

/// The lists of bytes that were packed, if there is nothing else.
pub(super) fn unpack(mut packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut lists = Vec::new();
    while !packed.is_empty() {
        let (len, rest) = split_number(packed)?;
        let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        lists.push(bytes.to_vec());
        packed = rest;
    }
    Some(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out() {
        let lists = [vec![], vec![1, 2, 3], vec![0; 300], vec![]];
        let mut packed = Vec::new();
        lists.iter().for_each(|list| push(&mut packed, list));
        assert_eq!(unpack(&packed).unwrap(), lists);
        assert_eq!(numbers(&from_numbers(&[0, 1, u64::MAX])).unwrap(), [0, 1, u64::MAX]);
    }

    #[test]
    fn what_is_cut_off_is_not_taken() {
        let mut packed = Vec::new();
        push(&mut packed, b"abc");
        for len in 1..packed.len() {
            assert_eq!(unpack(&packed[..len]), None, "{len}");
        }
        assert_eq!(unpack(&[0xff; 8]), None);
        assert_eq!(numbers(&[1; 7]), None);
    }
}
