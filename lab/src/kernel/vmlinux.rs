//! An uncompressed kernel, an ELF file.
//!
//! QEMU starts it by its PVH entry, a note that only kernels with CONFIG_PVH have.

use std::io::{Read, Seek, SeekFrom};

use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader64, PT_LOAD, PT_NOTE};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};

/// Type of the note with the physical 32-bit entry, owner `Xen`.
const XEN_ELFNOTE_PHYS32_ENTRY: u32 = 18;
const MAX_NOTES_BYTES: u64 = 1 << 20;
/// How much of the loaded segments is searched, bytes.
const MAX_SEARCH_BYTES: u64 = 256 << 20;
const CHUNK_BYTES: usize = 1 << 20;
/// Longest thing searched for with what follows it; chunks overlap by this.
const OVERLAP_BYTES: usize = 512;
const BANNER: &[u8] = b"Linux version ";
const CONFIG_START: &[u8] = b"IKCFG_ST";
/// Largest embedded configuration, compressed, bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

type Elf = FileHeader64<LittleEndian>;

/// Why an ELF file cannot be booted.
#[derive(Debug, thiserror::Error)]
pub enum VmlinuxError {
    /// The file does not hold what its headers say.
    #[error("damaged or truncated ELF file: {0}")]
    Damaged(#[from] object::read::Error),
    /// Reading failed.
    #[error("cannot read: {0}")]
    Io(#[from] std::io::Error),
    /// Another machine.
    #[error("an ELF file, but not for x86-64")]
    OtherMachine,
    /// No kernel banner: a program or a module.
    #[error("an ELF file, but no Linux kernel")]
    NoKernel,
    /// A kernel that QEMU cannot start as ELF.
    #[error("a vmlinux without the PVH entry: build it with CONFIG_PVH=y, or give the bzImage")]
    NoPvh,
}

/// What a vmlinux says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vmlinux {
    /// Release, e.g. `7.3.4-lab`.
    pub release: String,
    /// Text of the configuration, for kernels with CONFIG_IKCONFIG.
    pub config: Option<String>,
}

/// Whether `head` is the start of an ELF file.
pub fn recognise(head: &[u8]) -> bool {
    head.starts_with(b"\x7fELF")
}

/// Reads a vmlinux.
///
/// # Errors
///
/// Damage, another machine, no kernel, no PVH entry.
pub fn inspect<R: Read + Seek>(mut file: R) -> Result<Vmlinux, VmlinuxError> {
    let (notes, loads) = segments(&mut file)?;
    let mut release = None;
    let mut config_at = None;
    search(&mut file, &loads, |at, window| {
        release = release.take().or_else(|| find_release(window));
        let found = find(window, CONFIG_START).map(|i| at + (i + CONFIG_START.len()) as u64);
        config_at = config_at.or(found);
    })?;
    let release = release.ok_or(VmlinuxError::NoKernel)?;
    if !notes.iter().any(|note| has_pvh(note)) {
        return Err(VmlinuxError::NoPvh);
    }
    let config = config_at.map(|at| embedded_config(&mut file, at)).transpose()?.flatten();
    Ok(Vmlinux { release, config })
}

/// The banners of a vmlinux, each from `Linux version` to the end of its line: what its kernel
/// prints first, and one without number and date that it shows elsewhere.
///
/// # Errors
///
/// Damage, another machine, no kernel.
pub fn banners<R: Read + Seek>(mut file: R) -> Result<Vec<String>, VmlinuxError> {
    let (_, loads) = segments(&mut file)?;
    let mut found = Vec::new();
    search(&mut file, &loads, |_, window| found.extend(whole_banners(window)))?;
    if found.is_empty() { Err(VmlinuxError::NoKernel) } else { Ok(found) }
}

/// Whole banners with their end; windows overlap by more than one is long.
fn whole_banners(mut window: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(at) = find(window, BANNER) {
        let text = &window[at..];
        let line = &text[..text.len().min(OVERLAP_BYTES)];
        let end = line.iter().position(|b| matches!(b, b'\n' | 0));
        if let Some(end) = end.filter(|end| !line[..*end].contains(&b'%')) {
            found.push(String::from_utf8_lossy(&line[..end]).trim_end().to_owned());
        }
        window = &window[at + BANNER.len()..];
    }
    found
}

/// Offset and length in the file.
type Range = (u64, u64);

/// The bytes of the notes, and where the loaded segments are.
fn segments<R: Read + Seek>(file: R) -> Result<(Vec<Vec<u8>>, Vec<Range>), VmlinuxError> {
    let cache = ReadCache::new(file);
    let header = Elf::parse(&cache)?;
    if header.e_machine(LittleEndian) != EM_X86_64 {
        return Err(VmlinuxError::OtherMachine);
    }
    let (mut notes, mut loads) = (Vec::new(), Vec::new());
    for segment in header.program_headers(LittleEndian, &cache)? {
        let range = segment.file_range(LittleEndian);
        match segment.p_type(LittleEndian) {
            PT_NOTE if range.1 <= MAX_NOTES_BYTES => {
                let data = segment.data(LittleEndian, &cache);
                notes.push(data.map_err(|()| VmlinuxError::NoPvh)?.to_vec());
            }
            PT_LOAD => loads.push(range),
            _ => {}
        }
    }
    Ok((notes, loads))
}

/// Notes are owner length, value length, type, then owner and value padded to four bytes.
fn has_pvh(mut notes: &[u8]) -> bool {
    while let Some((head, rest)) = notes.split_at_checked(12) {
        let field = |i: usize| {
            u32::from_le_bytes([head[4 * i], head[4 * i + 1], head[4 * i + 2], head[4 * i + 3]])
        };
        let (owner_len, value_len) = (field(0) as usize, field(1) as usize);
        let Some(owner) = rest.get(..owner_len) else { return false };
        if owner == b"Xen\0" && field(2) == XEN_ELFNOTE_PHYS32_ENTRY {
            return true;
        }
        let next = owner_len.next_multiple_of(4).saturating_add(value_len.next_multiple_of(4));
        let Some(rest) = rest.get(next..) else { return false };
        notes = rest;
    }
    false
}

/// Calls `look` with overlapping windows of the ranges and their offsets in the file.
fn search<R: Read + Seek>(
    file: &mut R,
    ranges: &[Range],
    mut look: impl FnMut(u64, &[u8]),
) -> Result<(), VmlinuxError> {
    let mut budget = MAX_SEARCH_BYTES;
    for &(offset, len) in ranges {
        let len = len.min(budget);
        budget -= len;
        file.seek(SeekFrom::Start(offset))?;
        let (mut window, mut at, mut left) = (Vec::new(), offset, len);
        while left > 0 {
            let want = left.min(CHUNK_BYTES as u64);
            let got = file.by_ref().take(want).read_to_end(&mut window)?;
            look(at, &window);
            if (got as u64) < want {
                break;
            }
            left -= want;
            let drop = window.len().saturating_sub(OVERLAP_BYTES);
            window.drain(..drop);
            at += drop as u64;
        }
    }
    Ok(())
}

/// The release behind a banner. Other places hold the banner's format, with a `%`.
fn find_release(mut window: &[u8]) -> Option<String> {
    while let Some(at) = find(window, BANNER) {
        window = &window[at + BANNER.len()..];
        let text = &window[..window.len().min(128)];
        if let Some(release) = super::release_word(text).filter(|r| r.contains('.')) {
            return Some(release);
        }
    }
    None
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// What cannot be unpacked is no configuration, and no error: there may be a file beside it.
fn embedded_config<R: Read + Seek>(file: &mut R, at: u64) -> Result<Option<String>, VmlinuxError> {
    file.seek(SeekFrom::Start(at))?;
    let unpacked = flate2::read::GzDecoder::new(file.by_ref().take(MAX_CONFIG_BYTES));
    let mut text = String::new();
    let limit = super::config::MAX_BYTES as u64 + 1;
    Ok(unpacked.take(limit).read_to_string(&mut text).is_ok().then_some(text))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Cursor, Write};

    use super::*;

    fn note(owner: &[u8], kind: u32) -> Vec<u8> {
        let mut note = Vec::new();
        for field in [owner.len() as u32, 4, kind] {
            note.extend_from_slice(&field.to_le_bytes());
        }
        note.extend_from_slice(owner);
        note.resize(note.len().next_multiple_of(4), 0);
        note.extend_from_slice(&[0, 0, 0x10, 0]);
        note
    }

    fn segment(out: &mut Vec<u8>, kind: u32, offset: usize, len: usize) {
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&4_u32.to_le_bytes());
        for field in [offset, 0, 0, len, len, 4] {
            out.extend_from_slice(&(field as u64).to_le_bytes());
        }
    }

    /// An ELF file with these notes and this loaded segment.
    pub(crate) fn sample(notes: &[u8], load: &[u8]) -> Vec<u8> {
        let mut out = b"\x7fELF\x02\x01\x01".to_vec();
        out.resize(16, 0);
        for half in [2_u16, EM_X86_64.0] {
            out.extend_from_slice(&half.to_le_bytes());
        }
        out.extend_from_slice(&1_u32.to_le_bytes());
        for field in [0_u64, 64, 0] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&0_u32.to_le_bytes());
        for half in [64_u16, 56, 2, 64, 0, 0] {
            out.extend_from_slice(&half.to_le_bytes());
        }
        segment(&mut out, 4, 176, notes.len());
        segment(&mut out, 1, 176 + notes.len(), load.len());
        out.extend_from_slice(notes);
        out.extend_from_slice(load);
        out
    }

    pub(crate) fn pvh_notes() -> Vec<u8> {
        [note(b"GNU\0", 3), note(b"Xen\0", 5), note(b"Xen\0", XEN_ELFNOTE_PHYS32_ENTRY)].concat()
    }

    fn load_with_banner(before: usize) -> Vec<u8> {
        let mut load = vec![0; before];
        load.extend_from_slice(b"Linux version %s (%s)\0Linux version 7.3.4-lab (a@b) #1\0");
        load
    }

    #[test]
    fn a_pvh_kernel_is_taken() {
        let found = inspect(Cursor::new(sample(&pvh_notes(), &load_with_banner(10)))).unwrap();
        assert_eq!(found, Vmlinux { release: "7.3.4-lab".into(), config: None });
    }

    #[test]
    fn a_banner_across_two_chunks_is_found() {
        for before in [CHUNK_BYTES - 30, CHUNK_BYTES - 8, CHUNK_BYTES - 1, 3 * CHUNK_BYTES - 40] {
            let file = sample(&pvh_notes(), &load_with_banner(before));
            assert_eq!(inspect(Cursor::new(file)).unwrap().release, "7.3.4-lab", "{before}");
        }
    }

    #[test]
    fn an_embedded_configuration_is_read() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"CONFIG_FUSE_FS=y\n").unwrap();
        let mut load = load_with_banner(3);
        load.extend_from_slice(CONFIG_START);
        load.extend_from_slice(&gz.finish().unwrap());
        load.extend_from_slice(b"IKCFG_ED");
        let found = inspect(Cursor::new(sample(&pvh_notes(), &load))).unwrap();
        assert_eq!(found.config.as_deref(), Some("CONFIG_FUSE_FS=y\n"));
    }

    #[test]
    fn without_the_note_the_error_names_the_option() {
        let other = [note(b"GNU\0", 18), note(b"Xen\0", 17)].concat();
        let error = inspect(Cursor::new(sample(&other, &load_with_banner(0)))).unwrap_err();
        assert!(error.to_string().contains("CONFIG_PVH"), "{error}");
    }

    #[test]
    fn programs_and_other_machines_are_told_apart() {
        let file = sample(&pvh_notes(), b"no banner here");
        assert!(matches!(inspect(Cursor::new(file)), Err(VmlinuxError::NoKernel)));
        let mut file = sample(&pvh_notes(), &load_with_banner(0));
        file[18] = 183;
        assert!(matches!(inspect(Cursor::new(file)), Err(VmlinuxError::OtherMachine)));
    }

    #[test]
    fn every_truncation_is_an_error_and_no_panic() {
        let file = sample(&pvh_notes(), &load_with_banner(0));
        let banner_end = file.len() - 20;
        for len in 0..banner_end {
            assert!(inspect(Cursor::new(&file[..len])).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn hostile_notes_end() {
        let mut huge = note(b"GNU\0", 1);
        huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(!has_pvh(&huge));
        huge[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(!has_pvh(&huge));
        assert!(!has_pvh(&[0; 4096]));
    }
}
