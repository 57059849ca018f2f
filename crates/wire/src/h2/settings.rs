//! The settings of a peer (RFC 9113 section 6.5).

use super::{Broken, Code, FRAME, LARGEST_WINDOW};

/// What a SETTINGS frame says; `None` where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The size of the peer's table of HPACK.
    pub table: Option<u32>,
    /// Whether the peer accepts pushes.
    pub push: Option<bool>,
    /// How many streams may be open that the peer does not begin itself.
    pub streams: Option<u32>,
    /// The window of each stream.
    pub window: Option<u32>,
    /// The longest payload of a frame.
    pub frame: Option<u32>,
    /// The most bytes of a list of fields.
    pub list: Option<u32>,
}

impl Settings {
    const TABLE: u16 = 1;
    const PUSH: u16 = 2;
    const STREAMS: u16 = 3;
    const WINDOW: u16 = 4;
    const FRAME: u16 = 5;
    const LIST: u16 = 6;

    /// The settings that a payload has, whose length is a multiple of 6. Unknown ones are ignored.
    pub(super) fn read(payload: &[u8]) -> Result<Self, Broken> {
        let mut settings = Self::default();
        let entries = payload.chunks_exact(6).filter_map(|entry| entry.first_chunk::<6>());
        for [id_high, id_low, a, b, c, d] in entries {
            let value = u32::from_be_bytes([*a, *b, *c, *d]);
            match u16::from_be_bytes([*id_high, *id_low]) {
                Self::TABLE => settings.table = Some(value),
                Self::PUSH if value > 1 => {
                    return Err(Broken::protocol("SETTINGS_ENABLE_PUSH is neither 0 nor 1"));
                }
                Self::PUSH => settings.push = Some(value == 1),
                Self::STREAMS => settings.streams = Some(value),
                Self::WINDOW if value > LARGEST_WINDOW => {
                    let why = "SETTINGS_INITIAL_WINDOW_SIZE is larger than a window may be";
                    return Err(Broken::new(Code::FLOW_CONTROL_ERROR, why));
                }
                Self::WINDOW => settings.window = Some(value),
                Self::FRAME if !(FRAME as u32..1 << 24).contains(&value) => {
                    return Err(Broken::protocol("SETTINGS_MAX_FRAME_SIZE is not from 16,384 to 16,777,215"));
                }
                Self::FRAME => settings.frame = Some(value),
                Self::LIST => settings.list = Some(value),
                _ => {}
            }
        }
        Ok(settings)
    }

    /// The entries that are set.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u16, u32)> {
        let all = [
            (Self::TABLE, self.table),
            (Self::PUSH, self.push.map(u32::from)),
            (Self::STREAMS, self.streams),
            (Self::WINDOW, self.window),
            (Self::FRAME, self.frame),
            (Self::LIST, self.list),
        ];
        all.into_iter().filter_map(|(id, value)| Some((id, value?)))
    }
}
