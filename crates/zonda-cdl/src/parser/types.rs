//! Reads definitions of types.

use zonda_model::ExtType;

use super::{Parser, Section};
use crate::constant::NumberConstant;
use crate::element::convert;
use crate::fault::{CdlFault, shown};
use crate::lexer::Token;
use crate::names::{NameReference, NameSpace};
use crate::schema::{CdlEnumMember, CdlField, CdlType, TypeClass, TypeRef};

/// Bytes of an address and of a length in memory.
const WORD: usize = 8;
/// The most bytes of a value. Sizes in files have 32 bits.
const MOST_SIZE: usize = i32::MAX as usize;

impl Parser<'_> {
    /// Reads a type definition that begins with a keyword; returns `false` if there is none.
    pub(super) fn type_by_keyword(&mut self) -> Result<bool, CdlFault> {
        match self.tokens.now {
            Token::Compound => self.compound_type()?,
            Token::OpaqueType => self.opaque_type()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn define(
        &mut self,
        at: u64,
        name: Vec<u8>,
        class: TypeClass,
        (size, align): (usize, usize),
    ) -> Result<(), CdlFault> {
        let index = self.schema.types.len();
        if !self.names.add(NameSpace::Type, self.group, &name, index) {
            let why = format!("there is a type {} already", shown(&name));
            return Err(CdlFault::at(at, why).over(name.len()));
        }
        self.schema.types.push(CdlType { group: self.group, name, class, size, align, at });
        // The reference does not require the semicolon.
        self.tokens.accept(b';').map(drop)
    }

    /// `opaque(size) name`
    fn opaque_type(&mut self) -> Result<(), CdlFault> {
        self.tokens.advance()?;
        self.tokens.expect(b'(')?;
        let size = match self.tokens.now {
            Token::Number(number) => number.integer().and_then(|size| usize::try_from(size).ok()),
            _ => None,
        };
        let Some(size) = size.filter(|size| (1..=MOST_SIZE).contains(size)) else {
            return Err(self.tokens.unexpected("a size in bytes"));
        };
        self.tokens.advance()?;
        self.tokens.expect(b')')?;
        let at = self.tokens.at();
        let name = self.tokens.word("the name of the type")?;
        self.define(at, name, TypeClass::Opaque, (size, 1))
    }

    /// `base(*) name`, from the parenthesis on.
    pub(super) fn vlen_type(&mut self, at: u64, base: &NameReference) -> Result<(), CdlFault> {
        let base = self.type_of(at, base)?;
        self.tokens.expect(b'(')?;
        self.tokens.expect(b'*')?;
        self.tokens.expect(b')')?;
        let at = self.tokens.at();
        let name = self.tokens.word("the name of the type")?;
        self.define(at, name, TypeClass::Vlen { base }, (2 * WORD, WORD))
    }

    /// `base enum name { member = value, ... }`, from the keyword on.
    pub(super) fn enum_type(&mut self, at: u64, base: &NameReference) -> Result<(), CdlFault> {
        let base = self.type_of(at, base)?.atomic();
        let is_integer =
            |ext: &ExtType| !matches!(ext, ExtType::Char | ExtType::Float | ExtType::Double);
        let Some(base) = base.filter(is_integer) else {
            return Err(CdlFault::at(at, "an enum type is made of integers"));
        };
        self.tokens.advance()?;
        let at = self.tokens.at();
        let name = self.tokens.word("the name of the type")?;
        self.tokens.expect(b'{')?;
        let mut members: Vec<CdlEnumMember> = Vec::new();
        let mut known = std::collections::HashSet::new();
        loop {
            let member_at = self.tokens.at();
            let member = self.tokens.word("the name of a member")?;
            if !known.insert(member.clone()) {
                let why = format!("there is a member {} already", shown(&member));
                return Err(CdlFault::at(member_at, why).over(member.len()));
            }
            self.tokens.expect(b'=')?;
            let value = match self.tokens.now {
                Token::Number(number) if number.integer().is_some() => convert(number, base),
                _ => return Err(self.tokens.unexpected("an integer")),
            };
            self.tokens.advance()?;
            members.push(CdlEnumMember { name: member, value });
            if !self.tokens.accept(b',')? {
                break;
            }
        }
        self.tokens.expect(b'}')?;
        let size = base.size();
        self.define(at, name, TypeClass::Enum { base, members }, (size, size))
    }

    /// `compound name { type field(shape), ... ; ... }`
    fn compound_type(&mut self) -> Result<(), CdlFault> {
        self.tokens.advance()?;
        let at = self.tokens.at();
        let name = self.tokens.word("the name of the type")?;
        self.tokens.expect(b'{')?;
        let mut fields: Vec<CdlField> = Vec::new();
        let mut known = std::collections::HashSet::new();
        let (mut end, mut align) = (0usize, 1);
        while !self.tokens.is(b'}') || fields.is_empty() {
            let type_at = self.tokens.at();
            let ty = self.tokens.reference("the type of a field")?;
            let ty = self.type_of(type_at, &ty)?;
            loop {
                let field_at = self.tokens.at();
                let field = self.tokens.word("the name of a field")?;
                let dims = self.field_shape()?;
                if !known.insert(field.clone()) {
                    let why = format!("there is a field {} already", shown(&field));
                    return Err(CdlFault::at(field_at, why).over(field.len()));
                }
                let field_align = self.schema.align_of(ty).max(1);
                align = align.max(field_align);
                let offset = end.next_multiple_of(field_align);
                let len =
                    dims.iter().try_fold(self.schema.size_of(ty), |n, dim| n.checked_mul(*dim));
                let field_end = len.and_then(|len| offset.checked_add(len));
                end = field_end.filter(|end| *end <= MOST_SIZE).ok_or_else(|| {
                    CdlFault::at(field_at, "values of this type would have too many bytes")
                })?;
                fields.push(CdlField { name: field, ty, dims, offset });
                if !self.tokens.accept(b',')? {
                    break;
                }
            }
            self.end_of_statement(Section::Variables)?;
        }
        self.tokens.expect(b'}')?;
        let size = end.next_multiple_of(align);
        self.define(at, name, TypeClass::Compound(fields), (size, align))
    }

    /// `(3, 4)`, or nothing.
    fn field_shape(&mut self) -> Result<Vec<usize>, CdlFault> {
        let mut dims = Vec::new();
        if !self.tokens.accept(b'(')? {
            return Ok(dims);
        }
        loop {
            let len = match self.tokens.now {
                Token::Number(number) => NumberConstant::integer(number),
                _ => None,
            };
            let len = len.and_then(|len| usize::try_from(len).ok());
            let Some(len) = len.filter(|len| (1..=MOST_SIZE).contains(len)) else {
                return Err(self.tokens.unexpected("a length that is not 0"));
            };
            dims.push(len);
            self.tokens.advance()?;
            if !self.tokens.accept(b',')? {
                break;
            }
        }
        self.tokens.expect(b')')?;
        Ok(dims)
    }
}

impl Parser<'_> {
    /// The type of an attribute; `None` if the name cannot be a type.
    pub(super) fn attribute_type(&self, reference: &NameReference) -> Option<TypeRef> {
        self.type_of(0, reference).ok()
    }
}
