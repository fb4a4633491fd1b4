//! Request kinds: numbers, names, and where the fixed part of a request ends.

use super::request as req;

macro_rules! opcodes {
    ($($variant:ident = $number:literal, $name:literal, $fixed:expr;)*) => {
        /// A request kind of the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Opcode { $($variant = $number),* }

        impl Opcode {
            /// Every opcode, ascending.
            pub const ALL: &[Opcode] = &[$(Opcode::$variant),*];

            /// The opcode of a number, if this protocol version has it.
            pub fn from_number(number: u32) -> Option<Opcode> {
                match number { $($number => Some(Opcode::$variant),)* _ => None }
            }

            /// Lower-case name without prefix, as in scenarios and telemetry.
            pub fn name(self) -> &'static str {
                match self { $(Opcode::$variant => $name),* }
            }

            /// Bytes of the fixed part that comes before names and data.
            pub fn fixed_len(self) -> usize {
                match self { $(Opcode::$variant => $fixed),* }
            }
        }
    };
}

opcodes! {
    Lookup = 1, "lookup", 0;
    Forget = 2, "forget", size_of::<req::ForgetIn>();
    Getattr = 3, "getattr", size_of::<req::GetattrIn>();
    Setattr = 4, "setattr", size_of::<req::SetattrIn>();
    Readlink = 5, "readlink", 0;
    Symlink = 6, "symlink", 0;
    Mknod = 8, "mknod", size_of::<req::MknodIn>();
    Mkdir = 9, "mkdir", size_of::<req::MkdirIn>();
    Unlink = 10, "unlink", 0;
    Rmdir = 11, "rmdir", 0;
    Rename = 12, "rename", size_of::<req::RenameIn>();
    Link = 13, "link", size_of::<req::LinkIn>();
    Open = 14, "open", size_of::<req::OpenIn>();
    Read = 15, "read", size_of::<req::ReadIn>();
    Write = 16, "write", size_of::<req::WriteIn>();
    Statfs = 17, "statfs", 0;
    Release = 18, "release", size_of::<req::ReleaseIn>();
    Fsync = 20, "fsync", size_of::<req::FsyncIn>();
    Setxattr = 21, "setxattr", size_of::<req::SetxattrIn>();
    Getxattr = 22, "getxattr", size_of::<req::GetxattrIn>();
    Listxattr = 23, "listxattr", size_of::<req::GetxattrIn>();
    Removexattr = 24, "removexattr", 0;
    Flush = 25, "flush", size_of::<req::FlushIn>();
    Init = 26, "init", 16;
    Opendir = 27, "opendir", size_of::<req::OpenIn>();
    Readdir = 28, "readdir", size_of::<req::ReadIn>();
    Releasedir = 29, "releasedir", size_of::<req::ReleaseIn>();
    Fsyncdir = 30, "fsyncdir", size_of::<req::FsyncIn>();
    Getlk = 31, "getlk", 48;
    Setlk = 32, "setlk", 48;
    Setlkw = 33, "setlkw", 48;
    Access = 34, "access", size_of::<req::AccessIn>();
    Create = 35, "create", size_of::<req::CreateIn>();
    Interrupt = 36, "interrupt", size_of::<req::InterruptIn>();
    Bmap = 37, "bmap", 16;
    Destroy = 38, "destroy", 0;
    Ioctl = 39, "ioctl", 32;
    Poll = 40, "poll", 24;
    NotifyReply = 41, "notify_reply", 40;
    BatchForget = 42, "batch_forget", size_of::<req::BatchForgetIn>();
    Fallocate = 43, "fallocate", size_of::<req::FallocateIn>();
    Readdirplus = 44, "readdirplus", size_of::<req::ReadIn>();
    Rename2 = 45, "rename2", size_of::<req::Rename2In>();
    Lseek = 46, "lseek", size_of::<req::LseekIn>();
    CopyFileRange = 47, "copy_file_range", 56;
    Setupmapping = 48, "setupmapping", 40;
    Removemapping = 49, "removemapping", 4;
    Syncfs = 50, "syncfs", 8;
    Tmpfile = 51, "tmpfile", size_of::<req::CreateIn>();
    Statx = 52, "statx", 24;
    CopyFileRange64 = 53, "copy_file_range_64", 56;
}

/// The opcode of a name as used in scenarios.
pub fn by_name(name: &str) -> Option<Opcode> {
    Opcode::ALL.iter().copied().find(|opcode| opcode.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique_and_come_back() {
        for &opcode in Opcode::ALL {
            assert_eq!(Opcode::from_number(opcode as u32), Some(opcode));
            assert_eq!(by_name(opcode.name()), Some(opcode));
        }
        assert_eq!(Opcode::from_number(7), None);
        assert_eq!(by_name("LOOKUP"), None);
    }

    #[test]
    fn fixed_parts_fit_the_ring_header() {
        assert!(Opcode::ALL.iter().all(|opcode| opcode.fixed_len() <= 128));
    }
}
