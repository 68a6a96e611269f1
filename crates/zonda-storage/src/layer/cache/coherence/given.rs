//! Pages that go when the memory is worth more elsewhere: clean ones, the longest unused first.

use super::Cache;
use super::pages::NO_PAGE;
use super::policy::{COLD, LEAST_PAGES};
use super::table::Table;
use crate::storage::Storage;
use std::collections::BTreeSet;
use zonda_runtime::memory::{self, Kind};

/// Pages that are looked at for one that is clean.
const MOST_LOOKED: usize = 32;

impl<S: Storage> Cache<S> {
    /// When the page longest unused of those that can go was used.
    pub(crate) fn clean_age(&self) -> Option<u64> {
        let table = self.table.try_lock()?;
        let id = self.oldest_clean(&table)?;
        Some(table.ages.time_of(self.slot(id).last_used()))
    }

    /// The slot of the page longest unused that can go, as far as that is seen at once.
    fn oldest_clean(&self, table: &Table) -> Option<u32> {
        if table.in_use() <= LEAST_PAGES {
            return None;
        }
        let oldest = table.order.iter().take(MOST_LOOKED);
        let clean = oldest.filter(|id| !self.slot(*id).is_dirty());
        clean.min_by_key(|id| self.slot(*id).last_used())
    }

    /// Gives up clean pages that were used before `before`, until they make `bytes` bytes, without waiting
    /// for anybody; says how many bytes there were.
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
            // Who holds a page may wait for the table; who holds the table only tries.
            let Some(mut page) = slot.page.try_write() else { break };
            if !page.is_clean() {
                break;
            }
            table.order.remove(id);
            if page.index != NO_PAGE {
                table.map.remove(&page.index);
                if stamp != COLD {
                    table.left.note(page.index);
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

    /// In a child of a fork, for which nothing is read from the file any more: gives up all pages, changed ones, too, which
    /// are its parent's. A thread that the child has not may have the cache itself for ever.
    pub(crate) fn give_all(&self) {
        let Some(mut table) = self.table.try_lock() else { return };
        let gone: BTreeSet<u32> = table.given_up.iter().copied().collect();
        let mut n_given = 0;
        for id in (0..table.used).filter(|id| !gone.contains(id)) {
            let Some(mut page) = self.slot(id).page.try_write() else { continue };
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
