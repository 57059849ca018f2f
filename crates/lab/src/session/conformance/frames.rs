//! Checks the counts of a receiver of frames: with frames of different sizes, several streams, and frames that are cut
//! anywhere.

use systems::contact::Access;

use super::Checks;
use super::connection::{RawConnection, shown};

const COUNTS: &str = "count frames and the bytes between the prefixes; answer after the half-close with one frame of two big-endian u64";

pub(super) fn check(access: &Access, checks: &mut Checks) {
    let sizes = [0, 1, 1456, 1457, 70_000];
    let stream = || sizes.iter().flat_map(|size| frame(*size)).collect::<Vec<u8>>();
    let bytes = sizes.iter().sum::<usize>() as u64;
    let expected = (sizes.len() as u64, bytes);
    let whole = counted(access, &[&stream()], expected).map(|()| format!("frames of {sizes:?} bytes"));
    checks.judge("frames: counts frames of every size", whole, COUNTS);
    let all = stream();
    // Cut inside a prefix and inside a payload.
    let (a, rest) = all.split_at(2);
    let (b, c) = rest.split_at(700);
    let found =
        counted(access, &[a, b, c], expected).map(|()| "cut inside a prefix and inside a payload".to_owned());
    checks.judge("frames: counts frames that arrive in pieces", found, COUNTS);
    let cut = [frame(10), frame(10)[..9].to_vec()].concat();
    let found = counted(access, &[&cut], (1, 10)).map(|()| "the cut one was not counted".to_owned());
    checks.judge(
        "frames: does not count a frame that is cut short",
        found,
        "count a frame when its last byte has arrived",
    );
    let found = side_by_side(access).map(|()| "2 streams at once, the later one first".to_owned());
    checks.judge("frames: takes several streams at once", found, "serve each connection by itself");
}

fn frame(size: usize) -> Vec<u8> {
    [&(size as u32).to_be_bytes()[..], &vec![7; size]].concat()
}

fn counted(access: &Access, pieces: &[&[u8]], expected: (u64, u64)) -> Result<(), String> {
    let mut connection = RawConnection::open(access)?;
    for piece in pieces {
        connection.send(piece)?;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    answered(&mut connection, expected)
}

fn answered(connection: &mut RawConnection, (frames, bytes): (u64, u64)) -> Result<(), String> {
    connection.half_close()?;
    let answer = connection.read_exactly(20)?;
    let expected = [&16_u32.to_be_bytes()[..], &frames.to_be_bytes(), &bytes.to_be_bytes()].concat();
    if answer[..4] != expected[..4] {
        return Err(format!("its answer begins with {}, not with a length of 16", shown(&answer[..4])));
    }
    if answer != expected {
        let number = |start: usize| {
            answer[start..start + 8].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        return Err(format!(
            "it counted {} frames with {} bytes, but {frames} with {bytes} were sent",
            number(4),
            number(12)
        ));
    }
    connection.closes()
}

fn side_by_side(access: &Access) -> Result<(), String> {
    let mut connections = [RawConnection::open(access)?, RawConnection::open(access)?];
    for (connection, size) in connections.iter_mut().zip([5, 6]) {
        connection.send(&frame(size))?;
    }
    for (connection, size) in connections.iter_mut().zip([5, 6]).rev() {
        answered(connection, (1, size))?;
    }
    Ok(())
}
