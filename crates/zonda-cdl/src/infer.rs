//! The type of an attribute without a written type, which follows from its values.

use zonda_model::ExtType;

use crate::constant::{Constant, NumberConstant, PlacedConstant};
use crate::fault::CdlFault;
use crate::schema::{Primitive, TypeRef};

/// The width of a number's type, narrowest first. Signed and unsigned types have equal widths.
fn width(number: NumberConstant) -> Option<(u8, ExtType)> {
    Some(match number {
        NumberConstant::Byte(_) => (1, ExtType::Byte),
        NumberConstant::UByte(_) => (1, ExtType::UByte),
        NumberConstant::Short(_) => (2, ExtType::Short),
        NumberConstant::UShort(_) => (2, ExtType::UShort),
        NumberConstant::Int(_) => (4, ExtType::Int),
        NumberConstant::UInt(_) => (4, ExtType::UInt),
        NumberConstant::Int64(_) => (8, ExtType::Int64),
        NumberConstant::UInt64(_) => (8, ExtType::UInt64),
        NumberConstant::Float(_) | NumberConstant::Double(_) => return None,
    })
}

/// Text becomes characters; of numbers double wins over float, float over integers, a wide integer over
/// a narrow one, and of equally wide ones the last. Without values it is an empty text.
///
/// # Errors
/// Values that cannot be a list of numbers or a text.
pub(crate) fn attribute_type(values: &[PlacedConstant]) -> Result<TypeRef, CdlFault> {
    let refuse = |item: &PlacedConstant, why: &str| Err(CdlFault::at(item.at, why));
    let is_text = |item: &PlacedConstant| matches!(item.value, Constant::Text(_));
    if values.iter().any(is_text) || values.is_empty() {
        return match values.iter().find(|item| !is_text(item)) {
            Some(other) => refuse(other, "text and numbers in one attribute without a type"),
            None => Ok(TypeRef::CHAR),
        };
    }
    let mut best: Option<(u8, ExtType)> = None;
    let (mut float, mut double, mut beyond_int64) = (false, false, false);
    for item in values {
        let Constant::Number(number) = &item.value else {
            let what = item.value.what();
            return refuse(item, &format!("an attribute with {what} in it needs a type in front"));
        };
        match number {
            NumberConstant::Float(_) => float = true,
            NumberConstant::Double(_) => double = true,
            NumberConstant::UInt64(value) => beyond_int64 |= i64::try_from(*value).is_err(),
            _ => {}
        }
        if let Some(next) = width(*number) {
            best = best.filter(|best| best.0 > next.0).or(Some(next));
        }
    }
    let ext = match best {
        _ if double => ExtType::Double,
        _ if float => ExtType::Float,
        _ if beyond_int64 => ExtType::UInt64,
        Some((_, ext)) => ext,
        None => ExtType::Int,
    };
    Ok(TypeRef::Primitive(Primitive::Atomic(ext)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infer(values: Vec<Constant>) -> Option<ExtType> {
        let items: Vec<PlacedConstant> =
            values.into_iter().map(|value| PlacedConstant { at: 0, value }).collect();
        attribute_type(&items).ok().and_then(TypeRef::atomic)
    }

    #[test]
    fn widest_wins() {
        use Constant::Number as N;
        let (byte, int, uint) =
            (N(NumberConstant::Byte(1)), N(NumberConstant::Int(1)), N(NumberConstant::UInt(1)));
        let (float, double) = (N(NumberConstant::Float(1.0)), N(NumberConstant::Double(1.0)));
        assert_eq!(infer(vec![]), Some(ExtType::Char));
        assert_eq!(
            infer(vec![Constant::Text(vec![]), Constant::Text(vec![])]),
            Some(ExtType::Char)
        );
        assert_eq!(infer(vec![byte.clone(), int.clone()]), Some(ExtType::Int));
        assert_eq!(infer(vec![int.clone(), byte.clone()]), Some(ExtType::Int));
        assert_eq!(infer(vec![uint.clone(), int.clone()]), Some(ExtType::Int));
        assert_eq!(infer(vec![int.clone(), uint]), Some(ExtType::UInt));
        assert_eq!(infer(vec![int.clone(), float.clone()]), Some(ExtType::Float));
        assert_eq!(infer(vec![float, double, int.clone()]), Some(ExtType::Double));
        let large = N(NumberConstant::UInt64(u64::MAX));
        assert_eq!(infer(vec![large, N(NumberConstant::Int64(-1))]), Some(ExtType::UInt64));
        assert_eq!(infer(vec![int.clone(), Constant::Text(vec![])]), None);
        assert_eq!(infer(vec![int, Constant::List(vec![])]), None);
    }
}
