//! The way to a server that is a rank of the program, by messages of MPI.

use super::post_office;
use super::way::{Fill, Message, Way, gone};
use crate::error::Result;
use crate::tuning::{SERVER_MESSAGE_BYTES, SERVER_MESSAGES_BYTES};

/// The messages between this process and one rank.
#[derive(Debug)]
pub(super) struct MessageWay {
    server: usize,
}

impl MessageWay {
    pub(super) fn to(server: usize) -> Result<MessageWay> {
        if post_office::is_open() { Ok(MessageWay { server }) } else { Err(gone()) }
    }
}

impl Way for MessageWay {
    fn most_bytes(&self) -> usize {
        SERVER_MESSAGE_BYTES
    }

    fn send(&self, head: &[u8], n_bytes: usize, fill: Fill<'_>) -> Result<()> {
        let mut frame = zonda_model::memory::filled(head.len().saturating_add(n_bytes), 0)?;
        let (to, values) = frame.split_at_mut(head.len());
        to.copy_from_slice(head);
        fill(values)?;
        let waiting = zonda_trace::start();
        if post_office::send(self.server, frame, SERVER_MESSAGES_BYTES)? {
            let args =
                || zonda_trace::Args { bytes: n_bytes as u64, ..zonda_trace::Args::default() };
            zonda_trace::span_since(waiting, zonda_trace::EventKind::QueueBlocked, args);
        }
        Ok(())
    }

    fn look(&self) -> Result<()> {
        post_office::look(self.server)
    }

    fn is_there(&self) -> bool {
        // Where a rank ends, its launcher ends all.
        post_office::is_open()
    }

    fn n_news(&self) -> u64 {
        post_office::n_messages(self.server)
    }

    fn message(&self, is_patient: bool) -> Result<Option<Message>> {
        post_office::message(self.server, is_patient)
    }
}
