//! How functions of executables and libraries keep their callers, by the section `.eh_frame` that compilers
//! write for exceptions (the Linux Standard Base, "Exception Frames"). For x86-64 only.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, NativeEndian, Pointer, RegisterRule, UnwindContext,
    UnwindSection, X86_64,
};

/// How much of a file is read, in bytes. The largest programs have some 20 MB.
const LARGEST: u64 = 32 << 20;
/// The kinds of segments (elf(5)): what is loaded, and what leads to the section.
const LOAD: u32 = 1;
const EH_FRAME: u32 = 0x6474_e550;
/// How many segments a file may have.
const MOST_SEGMENTS: u16 = 128;
/// The size of a header of a segment.
const SEGMENT: usize = 56;

/// How to find the caller of a function at one of its instructions. Everything is relative to a register:
/// where the frame of the caller begins. The return address is 8 bytes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Relative to the frame pointer, or else to the stack pointer.
    pub by_frame: bool,
    pub offset: i64,
    /// Where the caller's frame pointer is, relative to the beginning of the caller's frame. `None` if it is
    /// unchanged.
    pub saved: Option<i64>,
}

impl Rule {
    /// Of a function that keeps its frame pointer as the kernel expects it.
    pub(crate) const FRAME: Self = Self { by_frame: true, offset: 16, saved: Some(-16) };
}

/// What a file says of its functions.
#[derive(Debug)]
pub(crate) struct Module {
    segments: Vec<Segment>,
    /// The section that leads to the entries by address, where it is in memory, and the entries.
    index: Vec<u8>,
    index_at: u64,
    entries: Vec<u8>,
    entries_at: u64,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Module {
    /// Reads the sections of a file. `None` if it has none.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let segments = segments(&file)?;
        let header = segments.iter().find(|segment| segment.kind == EH_FRAME)?;
        let index = bytes(&file, header.offset, header.size)?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header.address);
        let parsed = EhFrameHdr::new(&index, NativeEndian).parse(&bases, 8).ok()?;
        let Pointer::Direct(entries_at) = parsed.eh_frame_ptr() else { return None };
        let holds = |segment: &&Segment| segment.kind == LOAD && segment.holds(entries_at, segment.address);
        let segment = segments.iter().find(holds)?;
        let before = entries_at.checked_sub(segment.address)?;
        let entries = bytes(&file, segment.offset.checked_add(before)?, segment.size.checked_sub(before)?)?;
        Some(Self { index_at: header.address, index, entries, entries_at, segments })
    }

    /// How many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.index.len().saturating_add(self.entries.len())
    }

    /// The rule at an offset in the file. `None` if nothing is known, or if it is none that can be followed.
    pub(crate) fn rule(&self, offset: u64) -> Option<Rule> {
        let holds = |segment: &&Segment| segment.kind == LOAD && segment.holds(offset, segment.offset);
        let segment = self.segments.iter().find(holds)?;
        let address = offset.checked_sub(segment.offset)?.checked_add(segment.address)?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(self.index_at).set_eh_frame(self.entries_at);
        let index = EhFrameHdr::new(&self.index, NativeEndian).parse(&bases, 8).ok()?;
        let entries = EhFrame::new(&self.entries, NativeEndian);
        let mut context = UnwindContext::new();
        let row = index.table()?.unwind_info_for_address(
            &entries,
            &bases,
            &mut context,
            address,
            EhFrame::cie_from_offset,
        );
        let row = row.ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let by_frame = match register {
            X86_64::RBP => true,
            X86_64::RSP => false,
            _ => return None,
        };
        if row.register(X86_64::RA) != Some(RegisterRule::Offset(-8)) {
            return None;
        }
        let saved = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => None,
            Some(RegisterRule::Offset(offset)) => Some(offset),
            Some(_) => return None,
        };
        Some(Rule { by_frame, offset, saved })
    }
}

impl Segment {
    /// Whether a place is in it that begins at `start`.
    fn holds(&self, place: u64, start: u64) -> bool {
        place.checked_sub(start).is_some_and(|within| within < self.size)
    }
}

/// The segments of a file for x86-64 (elf(5)).
fn segments(file: &File) -> Option<Vec<Segment>> {
    let header = bytes(file, 0, 64)?;
    // The mark, 64 bits, little endian; and the machine.
    if header.get(..6)? != b"\x7fELF\x02\x01" || header.get(18..20)? != 62_u16.to_le_bytes() {
        return None;
    }
    let number = u16::from_le_bytes(header.get(56..58)?.try_into().ok()?);
    let each = u16::from_le_bytes(header.get(54..56)?.try_into().ok()?);
    if number > MOST_SEGMENTS || usize::from(each) != SEGMENT {
        return None;
    }
    let size = u64::from(number).checked_mul(u64::from(each))?;
    let table = bytes(file, long(&header, 32)?, size)?;
    let segment = |one: &[u8]| {
        Some(Segment {
            kind: u32::from_le_bytes(one.get(..4)?.try_into().ok()?),
            offset: long(one, 8)?,
            address: long(one, 16)?,
            size: long(one, 32)?,
        })
    };
    table.chunks_exact(SEGMENT).map(segment).collect()
}

fn bytes(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(Some(size).filter(|size| *size <= LARGEST)?).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_survived() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(Module::read(Path::new("/does/not/exist")).is_none());
        for at in (0..64).chain((64..4096).step_by(31)) {
            let mut damaged = own[..own.len().min(1 << 20)].to_vec();
            damaged[at] ^= 0xa5;
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &damaged).unwrap();
            if let Some(module) = Module::read(file.path()) {
                let rules = (0..1 << 20).step_by(40_009).filter_map(|offset| module.rule(offset));
                assert!(rules.count() <= 27);
            }
        }
    }

    #[test]
    fn this_program_says_where_its_callers_are() {
        let module = Module::read(&std::env::current_exe().unwrap()).unwrap();
        let last = module.segments.iter().map(|segment| segment.offset + segment.size).max().unwrap();
        let known = (0..last).step_by(1009).filter(|offset| module.rule(*offset).is_some()).count();
        assert!(known > 100, "{known}");
        assert_eq!(module.rule(u64::MAX), None);
    }
}
