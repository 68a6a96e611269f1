//! From stored numbers to values: what is missing, what is out of the valid range, scale and offset.
//!
//! Sources: the NetCDF Users Guide, "Attribute Conventions" (`_Unsigned`, `_FillValue`, `missing_value`, `valid_*`,
//! `scale_factor`, `add_offset`), and CF 1.11, sections 2.5.1 and 8.1. One point is practice instead: the Guide
//! takes everything beyond a fill value for missing, too; here, as in the other readers, only what equals it is.

use std::fmt;

use zonda_model::{ExtType, default_fill};

/// A number of any type, exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Of an integer type.
    Int(i128),
    /// Of a floating-point type.
    Real(f64),
}

/// An attribute of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// There is none.
    Absent,
    /// Characters, or one string.
    Text(Vec<u8>),
    /// Numbers of a type.
    Numbers(ExtType, Vec<Number>),
    /// Of a type that has neither.
    Other,
}

/// An attribute that says something about values, but in a way that has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused {
    /// Its name.
    pub attribute: &'static str,
    /// What was expected.
    pub wanted: &'static str,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attribute {} is not used: it is not {}", self.attribute, self.wanted)
    }
}

/// Which sign stored integers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    AsStored,
    /// Signed integers stand for unsigned ones (`_Unsigned = "true"`).
    Unsigned,
    /// Unsigned integers stand for signed ones (`_Unsigned = "false"`).
    Signed,
}

/// How the stored numbers of a variable become values.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoder {
    ty: ExtType,
    sign: Sign,
    /// Stored numbers that stand for no value.
    missing: Vec<Number>,
    /// Stored numbers below and above stand for no value.
    stored_range: Range,
    /// The same for numbers that are scaled already.
    value_range: Range,
    scale: Option<f64>,
    offset: Option<f64>,
    /// Values are of single precision.
    is_single: bool,
    unused: Vec<Unused>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Range {
    least: Option<Number>,
    most: Option<Number>,
}

impl Number {
    /// Elements of a type from their native bytes. Text has no numbers.
    pub fn all(ty: ExtType, bytes: &[u8]) -> impl Iterator<Item = Number> + '_ {
        bytes.chunks_exact(ty.size()).filter_map(move |element| Number::native(ty, element))
    }

    fn native(ty: ExtType, bytes: &[u8]) -> Option<Number> {
        macro_rules! of {
            ($kind:ident, $type:ty) => {
                Number::$kind(<$type>::from_ne_bytes(*bytes.first_chunk()?).into())
            };
        }
        Some(match ty {
            ExtType::Char => return None,
            ExtType::Byte => of!(Int, i8),
            ExtType::UByte => of!(Int, u8),
            ExtType::Short => of!(Int, i16),
            ExtType::UShort => of!(Int, u16),
            ExtType::Int => of!(Int, i32),
            ExtType::UInt => of!(Int, u32),
            ExtType::Int64 => of!(Int, i64),
            ExtType::UInt64 => of!(Int, u64),
            ExtType::Float => of!(Real, f32),
            ExtType::Double => of!(Real, f64),
        })
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Real(number) => number,
        }
    }

    fn is_below(self, other: Number) -> bool {
        match (self, other) {
            (Number::Int(own), Number::Int(other)) => own < other,
            _ => self.to_f64() < other.to_f64(),
        }
    }
}

/// Integers of this many bits and more are not exact as doubles; no type of netCDF has as many.
const EXACT: f64 = (1u128 << 100) as f64;

/// Which of two types holds the wider range of numbers, by the Guide's order.
fn width(ty: ExtType) -> u8 {
    match ty {
        ExtType::Char | ExtType::Byte | ExtType::UByte => 1,
        ExtType::Short | ExtType::UShort => 2,
        ExtType::Int | ExtType::UInt => 3,
        ExtType::Int64 | ExtType::UInt64 => 4,
        ExtType::Float => 5,
        ExtType::Double => 6,
    }
}

fn is_integer(ty: ExtType) -> bool {
    !matches!(ty, ExtType::Char | ExtType::Float | ExtType::Double)
}

/// What attributes say, while a decoder is made of them.
struct Reading<A> {
    attribute: A,
    unused: Vec<Unused>,
}

impl<A, E> Reading<A>
where
    A: FnMut(&'static str) -> Result<Attribute, E>,
{
    /// The numbers of an attribute, if it has some and `fits` their number.
    fn numbers(
        &mut self,
        attribute: &'static str,
        wanted: &'static str,
        fits: impl Fn(usize) -> bool,
    ) -> Result<Option<(ExtType, Vec<Number>)>, E> {
        Ok(match (self.attribute)(attribute)? {
            Attribute::Absent => None,
            Attribute::Numbers(ty, numbers) if fits(numbers.len()) => Some((ty, numbers)),
            _ => {
                self.unused.push(Unused { attribute, wanted });
                None
            }
        })
    }

    fn one(&mut self, attribute: &'static str) -> Result<Option<(ExtType, Number)>, E> {
        let found = self.numbers(attribute, "one number", |n| n == 1)?;
        Ok(found.and_then(|(ty, numbers)| Some((ty, *numbers.first()?))))
    }
}

impl Decoder {
    /// What the attributes of a variable of this type say; `attribute` gives them by name.
    ///
    /// # Errors
    /// Those of `attribute`.
    pub fn of<E>(
        ty: ExtType,
        attribute: impl FnMut(&'static str) -> Result<Attribute, E>,
    ) -> Result<Decoder, E> {
        let mut reading = Reading { attribute, unused: Vec::new() };
        let mut decoder = Decoder {
            ty,
            sign: sign(ty, &mut reading)?,
            missing: Vec::new(),
            stored_range: Range::default(),
            value_range: Range::default(),
            scale: None,
            offset: None,
            is_single: false,
            unused: Vec::new(),
        };
        let fill = reading.one("_FillValue")?.map(|(_, fill)| decoder.as_stored(fill));
        // A byte may have any of its values.
        let by_default = || {
            Some(ty).filter(|ty| ty.size() > 1).and_then(|ty| {
                let bytes = default_fill(ty);
                Number::native(ty, &bytes).map(|number| decoder.signed(number))
            })
        };
        let mut missing: Vec<Number> = fill.or_else(by_default).into_iter().collect();
        let more = reading.numbers("missing_value", "a number or a list of numbers", |n| n > 0)?;
        let more = more.map_or(Vec::new(), |(_, numbers)| numbers);
        missing.extend(more.into_iter().map(|number| decoder.as_stored(number)));
        decoder.missing = missing;

        let (scale, offset) = (reading.one("scale_factor")?, reading.one("add_offset")?);
        let packing =
            [scale, offset].into_iter().flatten().map(|(ty, _)| ty).max_by_key(|ty| width(*ty));
        decoder.scale = scale.map(|(_, number)| number.to_f64());
        decoder.offset = offset.map(|(_, number)| number.to_f64());
        // CF 8.1 has 32-bit integers packed from doubles only, since floats cannot hold them.
        decoder.is_single =
            packing == Some(ExtType::Float) && (ty.size() < 4 || ty == ExtType::Float);

        let range = reading.numbers("valid_range", "two numbers", |n| n == 2)?;
        let (least, most) = match range.as_ref().map(|(ty, numbers)| (ty, &numbers[..])) {
            Some((ty, &[least, most])) => (Some((*ty, least)), Some((*ty, most))),
            _ => (reading.one("valid_min")?, reading.one("valid_max")?),
        };
        // A bound of the type of scale and offset is one of values, if that type is wider than the stored one.
        let is_of_values =
            |bound: ExtType| packing.is_some_and(|to| to == bound && width(to) > width(ty));
        let stored = |bound: Option<(ExtType, Number)>| {
            bound.filter(|(ty, _)| !is_of_values(*ty)).map(|(_, number)| decoder.as_stored(number))
        };
        let of_values = |bound: Option<(ExtType, Number)>| {
            bound.filter(|(ty, _)| is_of_values(*ty)).map(|(_, number)| number)
        };
        let stored_range = Range { least: stored(least), most: stored(most) };
        decoder.value_range = Range { least: of_values(least), most: of_values(most) };
        decoder.stored_range = stored_range;
        decoder.unused = reading.unused;
        Ok(decoder)
    }

    /// The values of elements in native bytes; NaN where there is none.
    pub fn values<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = f64> + 'a {
        Number::all(self.ty, bytes).map(|number| self.value(number))
    }

    /// Bytes of a stored value.
    #[must_use]
    pub fn elem_bytes(&self) -> usize {
        self.ty.size()
    }

    /// Attributes that were left out of account.
    #[must_use]
    pub fn unused(&self) -> &[Unused] {
        &self.unused
    }

    fn value(&self, stored: Number) -> f64 {
        let stored = self.signed(stored);
        if self.missing.contains(&stored) || !self.stored_range.has(stored) {
            return f64::NAN;
        }
        let number = stored.to_f64();
        // Not multiplied or added where nothing is said, so that values stay as they are.
        let scaled = self.scale.map_or(number, |scale| number * scale);
        let mut value = self.offset.map_or(scaled, |offset| scaled + offset);
        if self.is_single {
            value = f64::from(value as f32);
        }
        if self.value_range.has(Number::Real(value)) { value } else { f64::NAN }
    }

    /// A stored number with the sign that it stands for: the same bits.
    fn signed(&self, number: Number) -> Number {
        let (Number::Int(number), modulus) = (number, self.modulus()) else { return number };
        Number::Int(match self.sign {
            Sign::AsStored => number,
            Sign::Unsigned => number.rem_euclid(modulus),
            Sign::Signed => (number + modulus / 2).rem_euclid(modulus) - modulus / 2,
        })
    }

    /// How many numbers the type can tell apart.
    fn modulus(&self) -> i128 {
        1 << (8 * self.ty.size())
    }

    /// A number of an attribute, in whichever type, as one that is compared with stored ones.
    fn as_stored(&self, number: Number) -> Number {
        if self.ty == ExtType::Float {
            // What was written as a double, such as 1e20, is another number as a float.
            return Number::Real(f64::from(number.to_f64() as f32));
        }
        if self.ty == ExtType::Double {
            return Number::Real(number.to_f64());
        }
        let integer = match number {
            Number::Int(number) => number,
            Number::Real(real) if real.fract() == 0.0 && real.abs() < EXACT => real as i128,
            Number::Real(_) => return number,
        };
        // Of the other sign where it says the bits, and as it is where it says the number that they stand for.
        let half = self.modulus() / 2;
        Number::Int(match self.sign {
            Sign::Unsigned if (-half..0).contains(&integer) => integer + self.modulus(),
            Sign::Signed if (half..self.modulus()).contains(&integer) => integer - self.modulus(),
            _ => integer,
        })
    }
}

impl Range {
    fn has(self, number: Number) -> bool {
        !self.least.is_some_and(|least| number.is_below(least))
            && !self.most.is_some_and(|most| most.is_below(number))
    }
}

fn sign<A, E>(ty: ExtType, reading: &mut Reading<A>) -> Result<Sign, E>
where
    A: FnMut(&'static str) -> Result<Attribute, E>,
{
    let is_signed = matches!(ty, ExtType::Byte | ExtType::Short | ExtType::Int | ExtType::Int64);
    let said = match (reading.attribute)("_Unsigned")? {
        Attribute::Absent => return Ok(Sign::AsStored),
        Attribute::Text(text) => text.trim_ascii().to_ascii_lowercase(),
        _ => Vec::new(),
    };
    Ok(match &said[..] {
        b"true" if is_signed => Sign::Unsigned,
        b"false" if is_integer(ty) && !is_signed => Sign::Signed,
        b"true" | b"false" => Sign::AsStored,
        _ => {
            reading.unused.push(Unused { attribute: "_Unsigned", wanted: "\"true\" or \"false\"" });
            Sign::AsStored
        }
    })
}

#[cfg(test)]
mod tests;
