//! What a server reads for one client.

use std::collections::HashMap;
use std::sync::Arc;

use zonda_format::{Error, VarRef};
use zonda_model::NcError;
use zonda_served::{Call, Reply, Told};

use super::super::session::Client;
use super::file::{Readings, Ready, User};
use super::identity::ReadOpening;
use super::walk::Walk;

/// The files that one client reads, by the numbers that it gave them.
#[derive(Debug, Default)]
pub(in super::super) struct SessionReads {
    files: HashMap<u64, ClientRead>,
    scratch: Vec<u8>,
    /// The client takes values out of this until it asks again.
    shown: Option<Arc<Ready>>,
}

#[derive(Debug)]
struct ClientRead {
    user: User,
    walks: HashMap<VarRef, Walk>,
}

impl SessionReads {
    /// Opens a file for the client.
    pub(in super::super) fn open(
        &mut self,
        file: u64,
        opening: &ReadOpening,
        readings: &Readings,
        client: &Client,
    ) {
        let opened = readings.open(opening).map(|user| {
            self.files.insert(file, ClientRead { user, walks: HashMap::new() });
            Reply::default()
        });
        client.reply(opened);
    }

    /// Whether the client has opened a file of this number for reading.
    pub(in super::super) fn has(&self, file: u64) -> bool {
        self.files.contains_key(&file)
    }

    /// Carries out a call to such a file: a get, or the last one.
    pub(in super::super) fn call(
        &mut self,
        file: u64,
        told: &Told,
        readings: &Readings,
        client: &Client,
    ) {
        match &told.call {
            Call::Close => drop(self.files.remove(&file)),
            Call::Get { var, .. } => self.get(file, *var, &told.call, readings, client),
            _ => client.reply(Err(Error::from(NcError::Perm))),
        }
    }

    fn get(&mut self, file: u64, var: VarRef, call: &Call, readings: &Readings, client: &Client) {
        let Some(read) = self.files.get_mut(&file) else { return };
        // Who asks has taken what it asked for before. (Who tells may be another thread.)
        self.shown = None;
        let shared = read.user.file();
        let ready = match shared.get(call, &mut self.scratch) {
            Ok(ready) => ready,
            Err(error) => return client.reply(Err(error)),
        };
        match ready.notice() {
            Ok((bytes, memory)) => client.send(&bytes, memory),
            Err(error) => return client.reply(Err(error)),
        }
        // While the client takes the values.
        let outlook = read.walks.entry(var).or_default().note(call);
        outlook.given_up.iter().for_each(|call| shared.give_up(call));
        for next in outlook.ahead {
            readings.ahead.expect(shared, next, ready.len() as u64);
        }
        self.shown = Some(ready);
    }
}

impl Drop for ClientRead {
    fn drop(&mut self) {
        let walks = std::mem::take(&mut self.walks);
        for call in walks.into_values().flat_map(Walk::into_expected) {
            self.user.file().give_up(&call);
        }
    }
}
