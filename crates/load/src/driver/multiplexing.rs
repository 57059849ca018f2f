//! What only connections need that carry many exchanges at once: the peer says how many, and may take no further ones.

use super::Driver;
use crate::protocol::Protocol;
use crate::tally::Multiplexed;

impl<P: Protocol> Driver<'_, P> {
    /// The counts of connections that carry many exchanges at once.
    pub(super) fn multiplexed(&mut self) -> &mut Multiplexed {
        self.tally.multiplexed.get_or_insert_default()
    }

    /// Counts an exchange that was given up alone.
    pub(super) fn count_cancel(&mut self) {
        if !P::IN_ORDER && self.window {
            self.multiplexed().cancelled += 1;
        }
    }

    /// Takes note of how many exchanges a connection carries, and may carry. In a closed loop the callers leave for whom there
    /// is no place. Those of a pool wait for one.
    /// `before` is its room, and whether it was ready, before something was received.
    #[inline]
    pub(super) fn look_at_room(&mut self, index: usize, before: (usize, bool)) {
        let lane = &self.lanes[index];
        let reached = self.tally.multiplexed.as_ref().map(|counts| counts.reached);
        if before != (lane.room, lane.ready)
            || reached.is_none_or(|most| lane.exchanges.under_way() as u64 > most)
        {
            self.take_room(index);
        }
    }

    #[cold]
    fn take_room(&mut self, index: usize) {
        let depth = self.lanes.depth;
        let (under_way, room, ready) = {
            let lane = &self.lanes[index];
            (lane.exchanges.under_way(), lane.room, lane.ready)
        };
        let counts = self.multiplexed();
        counts.asked = counts.asked.max(depth as u64);
        counts.reached = counts.reached.max(under_way as u64);
        // A connection that takes no further ones says nothing about the next.
        if !ready || room == 0 {
            return;
        }
        if room < depth {
            counts.allowed = Some(counts.allowed.unwrap_or(u64::MAX).min(room as u64));
        }
        let surplus = depth - room;
        let before = std::mem::replace(&mut self.lanes[index].surplus, surplus);
        if self.is_open() || self.share.pool || surplus == before {
            return;
        }
        if surplus > before {
            self.leaving += surplus - before;
            let waiting = self.waiting.len();
            let stay = self.stay(waiting);
            self.waiting.truncate(stay);
        } else {
            let back = before - surplus;
            let stayed = back.min(self.leaving);
            self.leaving -= stayed;
            self.callers_return(back - stayed);
        }
    }

    /// How many of so many callers stay. The others leave.
    #[inline(always)]
    pub(super) fn stay(&mut self, callers: usize) -> usize {
        if P::IN_ORDER || self.leaving == 0 {
            return callers;
        }
        let leave = callers.min(self.leaving);
        self.leaving -= leave;
        callers - leave
    }
}
