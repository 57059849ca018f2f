//! Frames: a length of four bytes (big-endian), then as many bytes. No frame is longer than [`LONGEST`].

use std::io::{self, Read, Write};

/// The most bytes of a frame: 64 MiB.
pub const LONGEST: usize = 64 << 20;
/// Memory is taken in such steps as bytes arrive, whatever the length announces.
const STEP: usize = 64 << 10;

/// The most memory that a message may take while it is read, in bytes: 192 MiB. The largest tally takes half as much.
pub(crate) const MOST_MEMORY: usize = 192 << 20;

/// At most how much memory a text of JSON takes while it is read into values, in bytes. Its length counts twice, because the text is
/// kept and its strings are copied.
pub(crate) fn memory(json: &[u8]) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    let costs = json.iter().map(|byte| match byte {
        _ if escaped => {
            escaped = false;
            0
        }
        b'\\' if quoted => {
            escaped = true;
            0
        }
        b'"' => {
            quoted = !quoted;
            0
        }
        _ if quoted => 0,
        // A list grows to twice the 32 bytes of each value.
        b',' => 64,
        // A key is a string of its own, and its place in a tree.
        b':' => 96,
        // A list has room for four values at first.
        b'[' => 144,
        // A map has room for eleven keys and values at first, however few it has.
        b'{' => 650,
        _ => 0,
    });
    costs.fold(json.len().saturating_mul(2), usize::saturating_add)
}

/// Why no frame could be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream ended within a frame.
    #[error("the pipe closed in the midst of a message")]
    Cut,
    /// The length is more than a frame may have, so these bytes are no frame.
    #[error("what came is no message of narrows")]
    Foreign([u8; 4]),
    /// The stream failed.
    #[error("the pipe failed: {0}")]
    Io(io::Error),
}

/// Reads a frame. `None` at the end of the stream.
///
/// # Errors
/// The bytes are no frame, or the stream failed or ended within one.
pub fn read(stream: &mut impl Read) -> Result<Option<Vec<u8>>, FrameError> {
    let mut prefix = Vec::with_capacity(4);
    stream.by_ref().take(4).read_to_end(&mut prefix).map_err(FrameError::Io)?;
    let prefix: [u8; 4] = match prefix.try_into() {
        Ok(prefix) => prefix,
        Err(short) if short.is_empty() => return Ok(None),
        Err(_) => return Err(FrameError::Cut),
    };
    let length = u32::from_be_bytes(prefix) as usize;
    if length > LONGEST {
        return Err(FrameError::Foreign(prefix));
    }
    let mut frame = Vec::with_capacity(length.min(STEP));
    stream.by_ref().take(length as u64).read_to_end(&mut frame).map_err(FrameError::Io)?;
    if frame.len() < length { Err(FrameError::Cut) } else { Ok(Some(frame)) }
}

/// Writes a frame and flushes the stream.
///
/// # Errors
/// The stream failed, or the frame is longer than [`LONGEST`] (`InvalidInput`).
pub fn write(stream: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let length = u32::try_from(frame.len()).ok().filter(|_| frame.len() <= LONGEST);
    let length = length.ok_or(io::ErrorKind::InvalidInput)?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(frame)?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| write(&mut bytes, frame).expect("it can be written"));
        bytes
    }

    /// Gives its bytes in pieces of this size, as pipes do.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(into.len()).min(self.0.len());
            into[..most].copy_from_slice(&self.0[..most]);
            self.0 = &self.0[most..];
            Ok(most)
        }
    }

    proptest! {
        #[test]
        fn frames_arrive_as_they_were_in_pieces_of_any_size(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
            piece in 1_usize..50,
        ) {
            let bytes = written(&frames);
            let mut stream = Pieces(&bytes, piece);
            for frame in &frames {
                let got = read(&mut stream).expect("a frame");
                prop_assert_eq!(got.as_ref(), Some(frame));
            }
            prop_assert!(matches!(read(&mut stream), Ok(None)));
        }

        #[test]
        fn a_stream_that_is_cut_at_any_byte_gives_whole_frames_only(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..4),
        ) {
            let bytes = written(&frames);
            let ends: Vec<usize> = frames.iter().scan(0, |end, frame| {
                *end += 4 + frame.len();
                Some(*end)
            }).collect();
            for cut in 0..bytes.len() {
                let mut stream = &bytes[..cut];
                let whole = ends.iter().filter(|end| **end <= cut).count();
                for frame in &frames[..whole] {
                    let got = read(&mut stream).expect("a frame");
                    prop_assert_eq!(got.as_ref(), Some(frame));
                }
                let clean = cut == 0 || ends.contains(&cut);
                let ended = read(&mut stream);
                let right = if clean { matches!(ended, Ok(None)) } else { matches!(ended, Err(FrameError::Cut)) };
                prop_assert!(right, "cut at {}: {:?}", cut, ended);
            }
        }

        #[test]
        fn garbage_ends_without_much_memory(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut stream = &bytes[..];
            while let Ok(Some(frame)) = read(&mut stream) {
                prop_assert!(frame.len() <= bytes.len() && frame.capacity() <= 2 * STEP);
            }
        }
    }

    #[test]
    fn a_length_that_is_too_long_is_no_frame_and_takes_no_memory() {
        assert!(matches!(read(&mut &b"Welcome!"[..]), Err(FrameError::Foreign(first)) if &first == b"Welc"));
        let announced = u32::try_from(LONGEST).expect("a length").to_be_bytes();
        assert!(matches!(read(&mut &announced[..]), Err(FrameError::Cut)));
        let too_long = vec![0; LONGEST + 1];
        assert!(write(&mut Vec::new(), &too_long).is_err());
    }

    #[test]
    fn frames_and_their_memory_take_as_long_as_they_are() {
        let frame = |length: usize| format!("[{}\"\\\"\"]", "1,\"a,\",".repeat(length)).into_bytes();
        for piece in [usize::MAX, 7] {
            cost::is_near_linear(3000, |length| {
                let bytes = written(&[frame(length)]);
                move || {
                    let got = read(&mut Pieces(&bytes, piece)).expect("a frame").expect("one");
                    assert_eq!(memory(&got), 2 * got.len() + 144 + 2 * length * 64);
                    assert!(serde_json::from_slice::<serde_json::Value>(&got).is_ok());
                }
            });
        }
        cost::is_near_linear(1000, |count| {
            let bytes = written(&vec![frame(2); count]);
            move || {
                let mut stream = Pieces(&bytes, 1000);
                while read(&mut stream).expect("a frame").is_some() {}
            }
        });
    }
}
