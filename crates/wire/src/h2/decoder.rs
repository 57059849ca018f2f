//! Decodes header blocks (RFC 7541 section 6).

use super::integer::{take_integer, take_string};
use super::table::{OVERHEAD, Table};
use super::{BLOCK, Broken, TABLE};

/// What a header block did besides naming fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether it has used fields that were inserted.
    pub reads: bool,
    /// What all that it has inserted counts; 0 if it has inserted nothing.
    pub inserted: usize,
    /// Whether it has changed the size of the table.
    pub resizes: bool,
    /// Whether its list of fields is longer than [`BLOCK`]. The rest of it was not handed out.
    pub too_long: bool,
}

/// Decodes the header blocks of one direction of a connection, all of them, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest size that the table may get.
    most: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(TABLE)
    }
}

impl Decoder {
    /// A decoder whose peer has heard of this size of the table before its first block.
    #[must_use]
    pub fn new(most: usize) -> Self {
        // A peer that uses more than the usual size, or less, says so in a block.
        Self { table: Table::new(TABLE.min(most)), most, name: Vec::new(), value: Vec::new() }
    }

    /// The largest size that the table may get.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// How often the table has changed.
    pub(super) fn generation(&self) -> u64 {
        self.table.generation
    }

    /// What the entries of the table count.
    #[must_use]
    pub fn size(&self) -> usize {
        self.table.size()
    }

    /// Decodes a header block. Hands out the name and the value of each field, in their order.
    ///
    /// # Errors
    /// The block breaks the rules of HPACK, and so the connection.
    pub fn decode(&mut self, block: &[u8], mut field: impl FnMut(&[u8], &[u8])) -> Result<Facts, Broken> {
        let Self { table, most: largest, name: name_memory, value: value_memory } = self;
        let (mut facts, mut list) = (Facts::default(), 0_usize);
        let mut hand_out = |name: &[u8], value: &[u8], facts: &mut Facts| {
            list = list.saturating_add(name.len()).saturating_add(value.len()).saturating_add(OVERHEAD);
            facts.too_long |= list > BLOCK;
            if !facts.too_long {
                field(name, value);
            }
        };
        let (mut rest, mut begins) = (block, true);
        while let Some(first) = rest.first().copied() {
            if first & 0x80 != 0 {
                let index = take_integer(&mut rest, 7)?;
                facts.reads |= Table::is_dynamic(index);
                let (name, value) = table.get(index)?;
                hand_out(name, value, &mut facts);
            } else if first & 0xe0 == 0x20 {
                if !begins {
                    return Err(Broken::compression("a table's size changes within a header block"));
                }
                let most = take_integer(&mut rest, 5)?;
                if most > *largest {
                    return Err(Broken::compression("a table becomes larger than it may be"));
                }
                table.resize(most);
                facts.resizes = true;
                continue;
            } else {
                let inserts = first & 0x40 != 0;
                let index = take_integer(&mut rest, if inserts { 6 } else { 4 })?;
                let name: &[u8] = if index == 0 {
                    take_string(&mut rest, name_memory)?
                } else {
                    facts.reads |= Table::is_dynamic(index);
                    name_memory.clear();
                    name_memory.extend_from_slice(table.get(index)?.0);
                    name_memory
                };
                let value = take_string(&mut rest, value_memory)?;
                hand_out(name, value, &mut facts);
                if inserts {
                    let size = name.len().saturating_add(value.len()).saturating_add(OVERHEAD);
                    facts.inserted = facts.inserted.saturating_add(size);
                    table.insert(name, value);
                }
            }
            begins = false;
        }
        if facts.resizes && begins {
            return Err(Broken::compression("a header block has nothing but a table's size"));
        }
        Ok(facts)
    }
}
