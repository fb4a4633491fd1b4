//! What an ELF program or library needs to be started; pure.

use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_X86_64, FileHeader64, PT_DYNAMIC, PT_INTERP,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// Libraries that one file may name; real ones name below a hundred.
const MAX_NEEDED: usize = 512;

type Elf = FileHeader64<LittleEndian>;

/// Why a file's needs are not known.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// The file does not hold what its headers say.
    #[error("damaged ELF file: {0}")]
    Damaged(#[from] object::read::Error),
    /// Another machine.
    #[error("not an ELF file for x86-64")]
    OtherMachine,
    /// The section headers were cut out.
    #[error("a dynamic ELF file without section headers")]
    NoSections,
    /// A name that is no text.
    #[error("an ELF file with a name that is no text")]
    NotText,
    /// Beyond a limit.
    #[error("an ELF file that needs more than {MAX_NEEDED} libraries")]
    TooMany,
}

/// What a file asks the dynamic loader for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// The loader; absent for libraries and static programs.
    pub interpreter: Option<String>,
    /// Libraries by soname, in order.
    pub libraries: Vec<String>,
    /// Directories searched before all others, in force only without `runpath`.
    pub rpath: Vec<String>,
    /// Directories searched before the standard ones.
    pub runpath: Vec<String>,
}

/// Reads the needs of the ELF file in `data`.
///
/// # Errors
///
/// [`ElfError`].
pub fn needs(data: &[u8]) -> Result<Needs, ElfError> {
    let header = Elf::parse(data)?;
    if header.e_machine(LittleEndian) != EM_X86_64 {
        return Err(ElfError::OtherMachine);
    }
    let segments = header.program_headers(LittleEndian, data)?;
    let mut needs = Needs::default();
    for segment in segments {
        if segment.p_type(LittleEndian) == PT_INTERP {
            needs.interpreter = segment.interpreter(LittleEndian, data)?.map(text).transpose()?;
        }
    }
    let sections = header.sections(LittleEndian, data)?;
    let Some((entries, strings)) = sections.dynamic(LittleEndian, data)? else {
        // Without section headers the table is there, but not found: "needs nothing" would be
        // wrong.
        let is_dynamic = segments.iter().any(|s| s.p_type(LittleEndian) == PT_DYNAMIC);
        return if is_dynamic { Err(ElfError::NoSections) } else { Ok(needs) };
    };
    let strings = sections.strings(LittleEndian, data, strings)?;
    for entry in entries {
        let list = match entry.tag(LittleEndian) {
            DT_NEEDED => &mut needs.libraries,
            DT_RPATH => &mut needs.rpath,
            DT_RUNPATH => &mut needs.runpath,
            _ => continue,
        };
        let value = text(entry.string(LittleEndian, strings)?)?;
        if entry.tag(LittleEndian) == DT_NEEDED {
            list.push(value);
        } else {
            list.extend(value.split(':').filter(|dir| !dir.is_empty()).map(str::to_owned));
        }
        if list.len() > MAX_NEEDED {
            return Err(ElfError::TooMany);
        }
    }
    Ok(needs)
}

fn text(bytes: &[u8]) -> Result<String, ElfError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| ElfError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_needs_its_loader_and_libc() {
        let data = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = needs(&data).unwrap();
        assert!(needs.interpreter.unwrap().contains("ld-linux"));
        assert!(needs.libraries.iter().any(|name| name == "libc.so.6"));
    }

    #[test]
    fn the_guest_needs_nothing() {
        let needs = needs(crate::image::guest::binary()).unwrap();
        assert_eq!((needs.interpreter, needs.libraries), (None, vec![]));
    }

    #[test]
    fn without_sections_the_needs_are_unknown() {
        let mut data = std::fs::read("/proc/self/exe").unwrap();
        // Offset, count and string index of the section headers.
        data[40..48].fill(0);
        data[60..64].fill(0);
        assert!(matches!(needs(&data), Err(ElfError::NoSections)));
    }

    #[test]
    fn truncated_files_are_errors_and_no_panic() {
        let data = crate::image::guest::binary();
        for len in (0..1024).chain((1024..data.len()).step_by(9973)) {
            let _ = needs(&data[..len]);
        }
        assert!(needs(&data[..40]).is_err());
        assert!(needs(b"#!/bin/sh\n").is_err());
    }
}
