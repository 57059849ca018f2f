//! What a receiver of frames promises: its counts, whatever the frames, the streams and the cuts between reads.

use super::Checks;
use super::line::{Line, shown};
use crate::session::place::Place;
use crate::session::stopped::Stopped;

const COUNTS: &str = "count frames and the bytes between the prefixes; answer after the half-close with one frame of two big-endian u64";

pub(super) fn check(_place: &Place<'_>, port: u16, checks: &mut Checks) -> Result<(), Stopped> {
    let sizes = [0, 1, 1456, 1457, 70_000];
    let stream = || sizes.iter().flat_map(|size| frame(*size)).collect::<Vec<u8>>();
    let bytes = sizes.iter().sum::<usize>() as u64;
    let expected = (sizes.len() as u64, bytes);
    let whole = counted(port, &[&stream()], expected).map(|()| format!("frames of {sizes:?} bytes"));
    checks.judge("frames: counts frames of every size", whole, COUNTS);
    let all = stream();
    // Inside a prefix, inside a payload, between two frames.
    let (a, rest) = all.split_at(2);
    let (b, c) = rest.split_at(700);
    let found =
        counted(port, &[a, b, c], expected).map(|()| "cut inside a prefix and inside a payload".to_owned());
    checks.judge("frames: counts frames that arrive in pieces", found, COUNTS);
    let cut = [frame(10), frame(10)[..9].to_vec()].concat();
    let found = counted(port, &[&cut], (1, 10)).map(|()| "the cut one was not counted".to_owned());
    checks.judge(
        "frames: does not count a frame that is cut short",
        found,
        "count a frame when its last byte has arrived",
    );
    let found = side_by_side(port).map(|()| "2 streams at once, the later one first".to_owned());
    checks.judge("frames: takes several streams at once", found, "serve each connection by itself");
    Ok(())
}

fn frame(size: usize) -> Vec<u8> {
    [&(size as u32).to_be_bytes()[..], &vec![7; size]].concat()
}

fn counted(port: u16, pieces: &[&[u8]], expected: (u64, u64)) -> Result<(), String> {
    let mut line = Line::open(port)?;
    for piece in pieces {
        line.send(piece)?;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    answered(&mut line, expected)
}

fn answered(line: &mut Line, (frames, bytes): (u64, u64)) -> Result<(), String> {
    line.half_close()?;
    let answer = line.exactly(20)?;
    let expected = [&16_u32.to_be_bytes()[..], &frames.to_be_bytes(), &bytes.to_be_bytes()].concat();
    if answer[..4] != expected[..4] {
        return Err(format!("its answer begins with {}, not with a length of 16", shown(&answer[..4])));
    }
    if answer != expected {
        let number =
            |at: usize| answer[at..at + 8].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        return Err(format!(
            "it counted {} frames of {} bytes; sent were {frames} of {bytes}",
            number(4),
            number(12)
        ));
    }
    line.closes()
}

fn side_by_side(port: u16) -> Result<(), String> {
    let mut lines = [Line::open(port)?, Line::open(port)?];
    for (line, size) in lines.iter_mut().zip([5, 6]) {
        line.send(&frame(size))?;
    }
    for (line, size) in lines.iter_mut().zip([5, 6]).rev() {
        answered(line, (1, size))?;
    }
    Ok(())
}
