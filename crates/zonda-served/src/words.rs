//! What calls are called in traces.

use crate::call::Call;

impl Call {
    /// A word for calls of this kind: definitions have one together, since what matters of them is how many there are.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Call::PutAtt { .. }
            | Call::CheckPutAtt { .. }
            | Call::DelAtt { .. }
            | Call::RenameAtt { .. } => "attribute",
            Call::DefDim { .. }
            | Call::RenameDim { .. }
            | Call::DefVar { .. }
            | Call::RenameVar { .. }
            | Call::DefVarFill { .. }
            | Call::SetFill { .. }
            | Call::DefGroup { .. }
            | Call::RenameGroup { .. }
            | Call::DefCompound { .. }
            | Call::InsertField { .. }
            | Call::DefVlen { .. }
            | Call::DefOpaque { .. }
            | Call::DefEnum { .. }
            | Call::InsertMember { .. }
            | Call::DefVarDeflate { .. }
            | Call::DefVarFletcher32 { .. }
            | Call::DefVarFilter { .. }
            | Call::DefVarChunking { .. }
            | Call::DefVarEndian { .. }
            | Call::DefVarQuantize { .. }
            | Call::SetCollective { .. } => "definition",
            Call::Redef => "redef",
            Call::Enddef { .. } | Call::EndDefinitions => "enddef",
            Call::Sync => "sync",
            Call::Drain => "drain",
            Call::Close => "close",
            Call::Abort => "abort",
            Call::CheckPut { .. } => "checked put",
            Call::TakePart { .. } => "part of a put",
            Call::Put { .. } => "put",
            Call::Shape { .. } => "shape",
            Call::Get { .. } => "get",
        }
    }
}
