//! Attributes.

use super::{Dialect, Parser};
use crate::constant::{Constant, PlacedConstant};
use crate::fault::CdlFault;
use crate::infer;
use crate::names::NameReference;
use crate::schema::{CdlAttribute, TypeRef};

/// The attribute that is also the fill value.
const FILL_VALUE: &[u8] = b"_FillValue";

impl Parser<'_> {
    /// `owner:name = values`, from the colon on; the owner is a variable, or else a type, which an
    /// attribute of the group then has.
    pub(super) fn attribute_of(&mut self, at: u64, owner: &NameReference) -> Result<(), CdlFault> {
        if let Some(var) = self.names.variable(self.group, owner) {
            return self.attribute(at, Some(var), None);
        }
        match self.attribute_type(owner) {
            Some(ty) => self.attribute(at, None, Some(ty)),
            None => {
                let name = owner.text();
                let why = format!("undefined variable or type: {name}");
                Err(CdlFault::at(at, why).over(name.len()))
            }
        }
    }

    /// `type variable:name = values`, from the colon on.
    pub(super) fn typed_attribute(
        &mut self,
        at: u64,
        ty: TypeRef,
        owner: &NameReference,
    ) -> Result<(), CdlFault> {
        match self.names.variable(self.group, owner) {
            Some(var) => self.attribute(at, Some(var), Some(ty)),
            None => {
                let name = owner.text();
                Err(CdlFault::at(at, format!("undefined variable: {name}")).over(name.len()))
            }
        }
    }

    /// Reads an attribute from the colon on.
    pub(super) fn attribute(
        &mut self,
        owner_at: u64,
        var: Option<usize>,
        ty: Option<TypeRef>,
    ) -> Result<(), CdlFault> {
        self.tokens.expect(b':')?;
        let at = self.tokens.at();
        let name = self.tokens.word("the name of an attribute")?;
        self.tokens.expect(b'=')?;
        let values = self.tokens.values(0)?;
        if let Some(fill) = values.iter().find(|item| contains_fill(item)) {
            return Err(CdlFault::at(fill.at, "an attribute has no fill values"));
        }
        if self.dialect == Dialect::Enhanced && self.special(at, var, &name, &values)? {
            return Ok(());
        }
        let ty = match var {
            Some(var) if name == FILL_VALUE => {
                let [value] = &values[..] else {
                    let why = "_FillValue has one value (of a compound type, in braces)";
                    return Err(CdlFault::at(at, why).over(name.len()));
                };
                let var = &mut self.schema.vars[var];
                var.fill = Some(value.clone());
                var.ty
            }
            _ => match ty {
                Some(ty) => ty,
                None => infer::attribute_type(&values)?,
            },
        };
        self.uses(owner_at, ty);
        let group = var.map_or(self.group, |var| self.schema.vars[var].group);
        self.schema.atts.push(CdlAttribute { group, var, name, ty, values, at });
        Ok(())
    }
}

fn contains_fill(item: &PlacedConstant) -> bool {
    match &item.value {
        Constant::Fill => true,
        Constant::List(items) => items.iter().any(contains_fill),
        _ => false,
    }
}
