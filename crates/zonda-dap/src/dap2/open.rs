//! How a dataset is opened.

use std::collections::HashMap;
use std::sync::Arc;

use zonda_format::OwnedValues;

use crate::dap2::attributes::{Attachments, attach};
use crate::dap2::constraint::{Constraint, Projection};
use crate::dap2::das::Set;
use crate::dap2::dataset::Dap2;
use crate::dap2::dds::Dds;
use crate::dap2::fetch;
use crate::dap2::mapping::{Mapping, limit, variables};
use crate::dap2::project::{Matched, Slices, matched};
use crate::dap2::records::{count_all, count_one};
use crate::error::{DapError, Document};
use crate::model::{Att, Model};
use crate::protocol::{Asked, Server};

/// Opens a dataset: asks for its documents, and for the number of records of its sequences.
///
/// # Errors
/// What is wrong with the constraint or with a document; what the server or the connection says. That there is no DAS is no error.
pub fn open(server: &Arc<dyn Server>, asked: &Asked) -> Result<Dap2, DapError> {
    let constraint = Constraint::decode(&asked.constraint)?;
    let server = server.as_ref();
    if !server.heeds_constraints() && !constraint.is_empty() {
        let what = "saved responses take no constraint";
        return Err(DapError::malformed(Document::Constraint, 0, what));
    }
    let conditions: String =
        constraint.conditions.iter().map(|condition| format!("&{condition}")).collect();
    let has_functions =
        constraint.projections.iter().any(|of| matches!(of, Projection::Function(_)));
    // What functions return is known by what comes alone.
    let is_sliced = !constraint.projections.is_empty() && !has_functions;
    let query = constraint.to_string();
    let dds = fetch::dds(server, &query)?;
    let full = if is_sliced { fetch::dds(server, "")? } else { dds.clone() };
    let das = fetch::das(server)?;
    let nodes = if is_sliced { matched(&dds, &full)? } else { Matched::same(&dds) };
    let slices =
        if is_sliced { Slices::of(&full, &constraint.projections)? } else { Slices::default() };
    let attachments = match &das {
        Some(das) => attach(das, &dds, &full)?,
        None => Attachments::default(),
    };
    let whole = match (server.heeds_constraints(), has_functions) {
        (false, _) => Some(String::new()),
        (true, true) => Some(query),
        (true, false) => None,
    };
    let (variables, sequences) = variables(&dds, &nodes);
    let sequence_slices = |id: &usize| slices.slice(nodes.full.get(id).copied().unwrap_or(0), 0);
    let mut records = HashMap::new();
    if asked.setting("noseqdims").is_some() {
        records.extend(sequences.iter().map(|id| (*id, 1)));
    } else if let (Some(query), false) = (&whole, sequences.is_empty()) {
        records = count_all(server, query, &dds, &sequences)?;
    } else {
        for id in &sequences {
            let most = limit(asked, &dds, *id);
            let n = count_one(server, &conditions, &dds, *id, sequence_slices(id), most)?;
            records.insert(*id, n);
        }
    }
    for (id, n) in &mut records {
        if let Some(most) = limit(asked, &dds, *id) {
            *n = most.min(*n);
        }
    }
    let mapping = Mapping {
        dds: &dds,
        matched: &nodes,
        slices: &slices,
        attachments: &attachments,
        asked,
        records: &records,
    };
    let (mut model, sources) = mapping.model(&variables)?;
    shown(&mut model, asked, &dds, das.as_ref(), &records);
    Ok(Dap2::new(model, sources, conditions, whole))
}

/// Attributes that the user asks to see (`show=translate+dds`), as the reference has them.
fn shown(
    model: &mut Model,
    asked: &Asked,
    dds: &Dds,
    das: Option<&Set>,
    records: &HashMap<usize, u64>,
) {
    const NC_CHAR: i32 = 2;
    let shows = |what: &str| {
        let all = asked.settings.iter().filter(|(name, _)| name == "show");
        all.into_iter().any(|(_, value)| value.split(['+', ',', ':', ';']).any(|one| one == what))
    };
    let line = |text: String| text.replace(['\n', '\r', '\t'], " ").into_bytes();
    let mut texts: Vec<(&str, Vec<u8>)> = Vec::new();
    if shows("seqdims") {
        let mut ids: Vec<usize> = records.keys().copied().collect();
        zonda_runtime::sort::sort(&mut ids);
        let names: Vec<&str> = ids.iter().map(|id| dds.node(*id).name.as_str()).collect();
        texts.push(("_sequence_dimensions", names.join(", ").into_bytes()));
    }
    if shows("translate") {
        texts.push(("_translate", b"netcdf-3".to_vec()));
    }
    if shows("dds") {
        texts.push(("_dds", line(dds.encode())));
    }
    if let Some(das) = das.filter(|_| shows("das")) {
        texts.push(("_das", line(String::from_utf8_lossy(&das.encode()).into_owned())));
    }
    let atts = model.groups.first_mut().map(|group| &mut group.atts);
    if let Some(atts) = atts {
        texts.retain(|(_, text)| !text.is_empty());
        atts.extend(texts.into_iter().map(|(name, text)| Att {
            name: name.into(),
            nc_type: NC_CHAR,
            len: text.len(),
            values: OwnedValues::plain(text),
        }));
    }
}
