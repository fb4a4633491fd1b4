//! The guest binary that travels inside `lab`.

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
