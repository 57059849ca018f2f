//! The two tables of HPACK (RFC 7541 section 2.3): the static one of appendix A, and the one that header blocks fill.

use std::collections::VecDeque;

use super::Broken;

/// The static table. Its first entry has the index 1.
#[rustfmt::skip]
pub(super) static STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// What an entry counts besides its bytes.
pub(super) const OVERHEAD: usize = 32;

/// The place of a field in the static table: of the whole field, or else of its name.
pub(super) fn find(name: &[u8], value: &[u8]) -> (Option<usize>, Option<usize>) {
    let places = || (1..).zip(&STATIC).filter(|(_, (key, _))| *key == name);
    (
        places().find(|(_, (_, other))| *other == value).map(|(index, _)| index),
        places().next().map(|(index, _)| index),
    )
}

/// The fields that header blocks have inserted, the newest first.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    /// What all entries count.
    size: usize,
    /// The most that they may count.
    most: usize,
    /// How often something has changed.
    pub generation: u64,
}

#[derive(Debug, Default)]
struct Entry {
    /// The name and then the value.
    bytes: Vec<u8>,
    name: usize,
}

impl Entry {
    fn size(&self) -> usize {
        self.bytes.len().saturating_add(OVERHEAD)
    }
}

impl Table {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// The field with this index, in either table.
    pub(super) fn get(&self, index: usize) -> Result<(&[u8], &[u8]), Broken> {
        const NONE: Broken = Broken::compression("a header block has an index that is in no table");
        match index.checked_sub(1).ok_or(NONE)? {
            place if place < STATIC.len() => STATIC.get(place).copied().ok_or(NONE),
            place => {
                let entry = self.entries.get(place.saturating_sub(STATIC.len())).ok_or(NONE)?;
                entry.bytes.split_at_checked(entry.name).ok_or(NONE)
            }
        }
    }

    /// Whether an index is one of this table's own.
    pub(super) fn is_dynamic(index: usize) -> bool {
        index > STATIC.len()
    }

    /// Inserts a field. One that is larger than the table empties it (RFC 7541 section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.generation = self.generation.wrapping_add(1);
        let size = name.len().saturating_add(value.len()).saturating_add(OVERHEAD);
        // The memory of an entry that leaves is used again.
        let mut entry = self.shrink(self.most.saturating_sub(size)).unwrap_or_default();
        if size > self.most {
            return;
        }
        entry.bytes.clear();
        entry.bytes.extend_from_slice(name);
        entry.bytes.extend_from_slice(value);
        entry.name = name.len();
        self.size = self.size.saturating_add(size);
        self.entries.push_front(entry);
    }

    /// Changes the most that all entries may count.
    pub(super) fn resize(&mut self, most: usize) {
        self.generation = self.generation.wrapping_add(1);
        self.most = most;
        self.shrink(most);
    }

    /// Removes the oldest entries until the rest counts no more than this. Returns the last that was removed.
    fn shrink(&mut self, most: usize) -> Option<Entry> {
        let mut last = None;
        while self.size > most {
            let Some(entry) = self.entries.pop_back() else { break };
            self.size = self.size.saturating_sub(entry.size());
            last = Some(entry);
        }
        last
    }

    /// What all entries count.
    pub(super) fn size(&self) -> usize {
        self.size
    }
}
