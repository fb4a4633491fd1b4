//! The guest binary: the one that travels inside `lab`, unless a tester of lab names another.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use crate::host::files;

/// Largest guest binary, bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The guest binary of a run: the file `other` where one is named, else [`binary`].
///
/// # Errors
///
/// The file cannot be read, or is larger than 64 MiB.
pub fn chosen(other: Option<&Path>) -> io::Result<Cow<'static, [u8]>> {
    match other {
        Some(path) => Ok(files::read_bounded(path, MAX_BYTES)?.into()),
        None => Ok(binary().into()),
    }
}

/// The static guest binary, an ELF executable for x86-64; it is `/init` of every image.
pub fn binary() -> &'static [u8] {
    include_bytes!(env!("LAB_GUEST_BIN"))
}

#[cfg(test)]
mod tests {
    use object::read::elf::{FileHeader, ProgramHeader};

    #[test]
    fn the_embedded_binary_needs_no_interpreter() {
        let data = super::binary();
        let header = object::elf::FileHeader64::<object::LittleEndian>::parse(data).unwrap();
        let segments = header.program_headers(object::LittleEndian, data).unwrap();
        let interp =
            segments.iter().any(|s| s.p_type(object::LittleEndian) == object::elf::PT_INTERP);
        assert!(!interp, "PID 1 must start without a dynamic loader in the image");
    }
}
