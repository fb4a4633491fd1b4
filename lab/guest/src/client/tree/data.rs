//! Reading, writing, truncating, mapping and copying file contents.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use super::tape::{Tape, pattern, sum};
use crate::sys::file::{self, Map};

pub(super) fn run(tape: &Tape) {
    create(tape);
    read_and_write(tape);
    truncate(tape);
    append(tape);
    ranges(tape);
    maps(tape);
}

fn both() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

fn size(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

fn create(tape: &Tape) {
    let f = || tape.at("f");
    tape.op("open absent", || File::open(tape.at("absent")).map(|_| ()));
    tape.op("create f O_EXCL", || both().create_new(true).open(f()).map(|_| ()));
    tape.op("create f O_EXCL again", || both().create_new(true).open(f()).map(|_| ()));
    tape.op("open f O_CREAT", || both().create(true).truncate(false).open(f()).map(|_| ()));
    tape.op("open d for writing", || both().open(tape.at("d")).map(|_| ()));
    tape.op("open f/x", || File::open(tape.at("f/x")).map(|_| ()));
    tape.op("read f when empty", || Ok(fs::read(f())?.len()));
}

fn read_and_write(tape: &Tape) {
    let open = || both().open(tape.at("f"));
    let read = |length: usize, at: u64| -> io::Result<String> {
        let mut bytes = vec![0xaa; length];
        let count = open()?.read_at(&mut bytes, at)?;
        Ok(sum(&bytes[..count]))
    };
    tape.op("pwrite f 11 at 0", || open()?.write_at(b"hello world", 0));
    tape.op("read f", || fs::read_to_string(tape.at("f")));
    tape.op("pread f 5 at 6", || read(5, 6));
    tape.op("pread f across the end", || read(100, 6));
    tape.op("pread f at the end", || read(8, 11));
    tape.op("pread f past the end", || read(8, 4096));
    tape.op("pwrite f 300000 at 0", || open()?.write_all_at(&pattern(300_000, 1), 0));
    tape.op("read f 300000", || Ok(sum(&fs::read(tape.at("f"))?)));
    tape.op("pwrite f 5000 at 4095", || open()?.write_all_at(&pattern(5000, 2), 4095));
    tape.op("pread f 9000 at 1000", || read(9000, 1000));
    tape.op("pwrite f 1 at 1048576", || open()?.write_at(b"z", 1 << 20));
    tape.op("size of f", || size(&open()?));
    tape.op("pread f in the hole", || read(4096, 500_000));
    tape.op("pwrite f by a read-only handle", || File::open(tape.at("f"))?.write_at(b"x", 0));
    tape.op("pread f by a write-only handle", || {
        OpenOptions::new().write(true).open(tape.at("f"))?.read_at(&mut [0; 4], 0)
    });
    tape.op("fsync f", || open()?.sync_all());
    tape.op("fdatasync f", || open()?.sync_data());
}

fn truncate(tape: &Tape) {
    let open = || both().open(tape.at("f"));
    tape.op("truncate f to 10", || open()?.set_len(10));
    tape.op("read f after 10", || Ok(sum(&fs::read(tape.at("f"))?)));
    tape.op("truncate f to 5000", || open()?.set_len(5000));
    tape.op("read f after 5000", || Ok(sum(&fs::read(tape.at("f"))?)));
    tape.op("truncate f by a read-only handle", || File::open(tape.at("f"))?.set_len(1));
    tape.op("open f O_TRUNC", || {
        let file = both().truncate(true).open(tape.at("f"))?;
        size(&file)
    });
}

fn append(tape: &Tape) {
    let path = tape.at("log");
    let open = || OpenOptions::new().append(true).create(true).open(&path);
    tape.op("append log from two handles", || {
        let (mut one, mut two) = (open()?, open()?);
        one.write_all(b"one ")?;
        two.write_all(b"two ")?;
        one.write_all(b"three")
    });
    tape.op("read log", || fs::read_to_string(&path));
    tape.op("unlink log while open", || {
        let file = File::open(&path)?;
        fs::remove_file(&path)?;
        let mut bytes = [0; 3];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(format!("{} nlink {}", String::from_utf8_lossy(&bytes), nlink(&file)?))
    });
    tape.op("stat log", || fs::symlink_metadata(&path).map(|_| ()));
}

fn nlink(file: &File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink())
}

fn ranges(tape: &Tape) {
    let open = || both().open(tape.at("f"));
    tape.op("write f 8192", || fs::write(tape.at("f"), pattern(8192, 3)));
    tape.op("lseek f SEEK_DATA 0", || file::seek(&open()?, 0, libc::SEEK_DATA));
    tape.op("lseek f SEEK_HOLE 0", || file::seek(&open()?, 0, libc::SEEK_HOLE));
    tape.op("lseek f SEEK_DATA at the end", || file::seek(&open()?, 8192, libc::SEEK_DATA));
    tape.op("lseek f SEEK_END -2", || file::seek(&open()?, -2, libc::SEEK_END));
    tape.op("lseek f SEEK_SET -1", || file::seek(&open()?, -1, libc::SEEK_SET));
    tape.op("fallocate f 8192 at 8192", || {
        let file = open()?;
        file::allocate(&file, 0, 8192, 8192)?;
        size(&file)
    });
    tape.op("fallocate f length 0", || file::allocate(&open()?, 0, 0, 0));
    tape.op("read f 16384", || Ok(sum(&fs::read(tape.at("f"))?)));
    tape.op("copy_file_range f to g", || {
        let to = both().create(true).truncate(true).open(tape.at("g"))?;
        file::copy_range(&open()?, &to, 100, 6000)
    });
    tape.op("read g", || Ok(sum(&fs::read(tape.at("g"))?)));
}

fn maps(tape: &Tape) {
    let open = || both().open(tape.at("f"));
    tape.op("mmap f read", || {
        let map = Map::shared(&open()?, 8192, false)?;
        Ok(format!("{} {} {}", map.byte(0), map.byte(4097), map.byte(8191)))
    });
    tape.op("mmap f write", || {
        let file = open()?;
        let map = Map::shared(&file, 8192, true)?;
        map.put(4090, b"mapped bytes");
        map.sync()?;
        let mut bytes = [0; 12];
        file.read_exact_at(&mut bytes, 4090)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    tape.op("pwrite f seen by mmap", || {
        let file = open()?;
        let map = Map::shared(&file, 4096, false)?;
        let before = map.byte(7);
        file.write_all_at(&[before ^ 0xff], 7)?;
        Ok(format!("changed {}", map.byte(7) == before ^ 0xff))
    });
    tape.op("mmap f write by a read-only handle", || {
        Map::shared(&File::open(tape.at("f"))?, 4096, true).map(|_| ())
    });
    tape.op("read f after mmap", || Ok(sum(&fs::read(tape.at("f"))?)));
}
