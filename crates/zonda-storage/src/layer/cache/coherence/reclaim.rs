//! Gives memory back when others of the process need it more: clean pages, the longest unused first.

use super::Cache;
use super::pages::NO_PAGE;
use super::policy::COLD;
use super::table::PageTable;
use crate::storage::Storage;
use crate::tuning::{LEAST_PAGES, RECLAIM_LOOKS_PAGES};
use std::collections::BTreeSet;
use zonda_runtime::memory::{self, Kind};

impl<S: Storage> Cache<S> {
    /// When the longest unused clean page was used last; `None` if there is none, or the table is locked.
    pub(crate) fn clean_age(&self) -> Option<u64> {
        let table = self.table.try_lock()?;
        let id = self.oldest_clean(&table)?;
        Some(table.ages.time_of(self.slot(id).last_used()))
    }

    /// The slot of the longest unused clean page among the first ones in the order of eviction.
    fn oldest_clean(&self, table: &PageTable) -> Option<u32> {
        if table.in_use() <= LEAST_PAGES {
            return None;
        }
        let oldest = table.order.iter().take(RECLAIM_LOOKS_PAGES);
        let clean = oldest.filter(|id| !self.slot(*id).is_dirty());
        clean.min_by_key(|id| self.slot(*id).last_used())
    }

    /// Gives up clean pages whose last use was before `before`, until that makes `bytes` bytes, and returns how many bytes
    /// it made. It waits for no lock.
    pub(crate) fn give_clean(&self, bytes: u64, before: u64) -> u64 {
        let mut given = 0;
        while given < bytes {
            let Some(mut table) = self.table.try_lock() else { break };
            let Some(id) = self.oldest_clean(&table) else { break };
            let slot = self.slot(id);
            let stamp = slot.last_used();
            if table.ages.time_of(stamp) >= before {
                break;
            }
            // A thread with a page may wait for the table, so one with the table only tries.
            let Some(mut page) = slot.try_write() else { break };
            if !page.is_clean() {
                break;
            }
            table.order.remove(id);
            if page.index != NO_PAGE {
                table.map.remove(&page.index);
                if stamp != COLD {
                    table.evicted.note(page.index);
                }
            }
            page.buf.release();
            page.clear();
            table.given_up.push(id);
            memory::process().give_back(Kind::Pages, self.shape.page_bytes);
            given += self.shape.page_bytes;
        }
        given
    }

    /// Gives up all pages, dirty ones as well. Only for the child of a fork, which reads nothing from the file any more: its
    /// parent writes the dirty ones. What a thread of the parent had locked stays locked for ever, and is left out.
    pub(crate) fn give_all(&self) {
        let Some(mut table) = self.table.try_lock() else { return };
        let mut gone: BTreeSet<u32> = BTreeSet::new();
        gone.extend(&table.given_up);
        let mut n_given = 0;
        for id in (0..table.used).filter(|id| !gone.contains(id)) {
            let Some(mut page) = self.slot(id).try_write() else { continue };
            if page.index != NO_PAGE {
                table.map.remove(&page.index);
            }
            page.buf.release();
            page.clear();
            table.order.remove(id);
            table.given_up.push(id);
            n_given += 1;
        }
        table.free.clear();
        if self.shape.within_budget {
            memory::process().give_back(Kind::Pages, n_given * self.shape.page_bytes);
        }
        if let Some(shared) = &self.shared {
            shared.give_back(n_given);
        }
    }
}
