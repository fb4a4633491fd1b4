//! The boot header of a bzImage; pure.

/// Bytes from the start of a file that suffice for [`release`].
pub const HEAD_BYTES: usize = 128 << 10;

const BOOT_FLAG: usize = 0x1fe;
const MAGIC: usize = 0x202;
const PROTOCOL: usize = 0x206;
const VERSION_POINTER: usize = 0x20e;
const LOADFLAGS: usize = 0x211;
const XLOADFLAGS: usize = 0x236;
/// The version string's pointer counts from here.
const SETUP_START: usize = 0x200;
/// The first protocol version with `xloadflags`.
/// Sectors of 512 bytes behind the first one, before the kernel proper.
const SETUP_SECTORS: usize = 0x1f1;
/// Size of the kernel proper, in paragraphs of 16 bytes.
const SYSTEM_SIZE: usize = 0x1f4;
const PROTOCOL_2_12: u16 = 0x020c;

/// Why a file with a boot header cannot be booted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BzImageError {
    /// The file ends inside its header.
    #[error("the boot header is cut off")]
    Truncated,
    /// The file is shorter than its header says.
    #[error("cut short: {is} bytes of the {should} that its header tells of")]
    Short {
        /// Size of the file, bytes.
        is: u64,
        /// Least size by the header, bytes.
        should: u64,
    },
    /// The boot protocol is older than 2.12, of Linux 3.8.
    #[error("boot protocol {major}.{minor} is too old, 2.12 is needed")]
    OldProtocol {
        /// Major number.
        major: u16,
        /// Minor number.
        minor: u16,
    },
    /// A zImage, or a kernel for 32-bit machines.
    #[error("no 64-bit bzImage")]
    Not64Bit,
    /// The version string is not there or is no text.
    #[error("the boot header has no readable version string")]
    NoVersion,
}

/// Whether `head` has the magic numbers of a Linux boot header.
pub fn recognise(head: &[u8]) -> bool {
    head.get(BOOT_FLAG..BOOT_FLAG + 2) == Some(&[0x55, 0xaa])
        && head.get(MAGIC..MAGIC + 4) == Some(b"HdrS")
}

/// The kernel release in the boot header of a recognised file, e.g. `7.3.4+deb13-cloud-amd64`.
///
/// # Errors
///
/// A header that is cut off, of another machine, too old, or without a version.
pub fn release(head: &[u8]) -> Result<String, BzImageError> {
    let protocol = u16_at(head, PROTOCOL)?;
    if protocol < PROTOCOL_2_12 {
        let (major, minor) = (protocol >> 8, protocol & 0xff);
        return Err(BzImageError::OldProtocol { major, minor });
    }
    let loaded_high = head.get(LOADFLAGS).ok_or(BzImageError::Truncated)? & 1 == 1;
    let has_64_bit_entry = u16_at(head, XLOADFLAGS)? & 1 == 1;
    if !(loaded_high && has_64_bit_entry) {
        return Err(BzImageError::Not64Bit);
    }
    let pointer = usize::from(u16_at(head, VERSION_POINTER)?);
    if pointer == 0 {
        return Err(BzImageError::NoVersion);
    }
    let text = head.get(SETUP_START + pointer..).ok_or(BzImageError::Truncated)?;
    super::release_word(text).ok_or(BzImageError::NoVersion)
}

/// Checks the size of a recognised file against its boot header.
///
/// # Errors
///
/// [`BzImageError::Short`], and a header that is cut off.
pub fn check_size(head: &[u8], file_bytes: u64) -> Result<(), BzImageError> {
    let sectors = match *head.get(SETUP_SECTORS).ok_or(BzImageError::Truncated)? {
        0 => 4, // of old
        sectors => u64::from(sectors),
    };
    let paragraphs =
        u64::from(u16_at(head, SYSTEM_SIZE)?) | u64::from(u16_at(head, SYSTEM_SIZE + 2)?) << 16;
    let should = (sectors + 1) * 512 + paragraphs * 16;
    // The last paragraph may be filled up in the header only.
    if file_bytes + 16 <= should {
        return Err(BzImageError::Short { is: file_bytes, should });
    }
    Ok(())
}

fn u16_at(head: &[u8], at: usize) -> Result<u16, BzImageError> {
    match head.get(at..at + 2) {
        Some(&[low, high]) => Ok(u16::from_le_bytes([low, high])),
        _ => Err(BzImageError::Truncated),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The head of a bzImage with this version string.
    pub(crate) fn sample(version: &str) -> Vec<u8> {
        let mut head = vec![0; 0x1000];
        head[BOOT_FLAG..BOOT_FLAG + 2].copy_from_slice(&[0x55, 0xaa]);
        head[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        head[PROTOCOL..PROTOCOL + 2].copy_from_slice(&0x020f_u16.to_le_bytes());
        head[VERSION_POINTER..VERSION_POINTER + 2].copy_from_slice(&0x400_u16.to_le_bytes());
        head[LOADFLAGS] = 1;
        head[XLOADFLAGS] = 0x7f;
        head[0x600..0x600 + version.len()].copy_from_slice(version.as_bytes());
        head
    }

    #[test]
    fn the_release_is_the_first_word() {
        let head = sample("7.3.4-cloud (a@b) #1 SMP");
        assert!(recognise(&head));
        assert_eq!(release(&head).unwrap(), "7.3.4-cloud");
    }

    #[test]
    fn every_truncation_is_an_error_and_no_panic() {
        let head = sample("7.3.4 #1");
        for len in 0..0x600 + 6 {
            let cut = &head[..len];
            assert!(!recognise(cut) || release(cut).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn other_machines_and_hostile_values_are_refused() {
        let change = |at: usize, bytes: &[u8]| {
            let mut head = sample("7.3.4 #1");
            head[at..at + bytes.len()].copy_from_slice(bytes);
            release(&head).unwrap_err()
        };
        assert_eq!(
            change(PROTOCOL, &[0x0b, 0x02]),
            BzImageError::OldProtocol { major: 2, minor: 11 }
        );
        assert_eq!(change(LOADFLAGS, &[0]), BzImageError::Not64Bit);
        assert_eq!(change(XLOADFLAGS, &[0]), BzImageError::Not64Bit);
        assert_eq!(change(VERSION_POINTER, &[0, 0]), BzImageError::NoVersion);
        assert_eq!(change(VERSION_POINTER, &[0xff, 0xff]), BzImageError::Truncated);
        assert_eq!(change(0x600, &[0]), BzImageError::NoVersion);
        assert_eq!(change(0x600, &[0x1b, b'[']), BzImageError::NoVersion);
        assert_eq!(change(0x600, &[b'x'; 600]), BzImageError::NoVersion);
    }

    #[test]
    fn other_files_are_not_recognised() {
        assert!(!recognise(b""));
        assert!(!recognise(&[0x7f; 0x1000]));
        assert!(!recognise(b"\x7fELF"));
    }

    #[test]
    fn a_file_that_is_cut_short_is_told_by_its_header() {
        let mut head = vec![0; 0x200];
        head[SETUP_SECTORS] = 39;
        head[SYSTEM_SIZE..SYSTEM_SIZE + 4].copy_from_slice(&1000u32.to_le_bytes());
        let should = 40 * 512 + 16_000;
        assert_eq!(check_size(&head, should), Ok(()));
        assert_eq!(check_size(&head, should - 15), Ok(()), "filled up");
        let short = BzImageError::Short { is: should - 16, should };
        assert_eq!(check_size(&head, should - 16), Err(short));
        assert_eq!(check_size(&head[..SYSTEM_SIZE + 3], should), Err(BzImageError::Truncated));
    }
}
