//! Debug info of a kernel: from places in its code to files and lines.
//!
//! A place is looked up by symbol and offset, so that it does not matter where the kernel was
//! loaded. What does not fit is left out: a wrong line is worse than none.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::LittleEndian;
use object::elf::{FileHeader64, STT_FUNC, STT_NOTYPE};
use object::read::ReadCache;
use object::read::elf::{FileHeader, Sym};

use super::vmlinux;

type Elf = FileHeader64<LittleEndian>;

/// Most inlined functions told of one place.
const MAX_INLINED: usize = 8;

/// How much larger than its symbol the kernel may take a function for: it counts the padding up
/// to the next one.
const MAX_PADDING: u64 = 256;

/// File of the function at which every kernel begins: what is before it is the tree's own path.
const LANDMARK: (&str, &str) = ("start_kernel", "init/main.c");

/// Why there are no lines.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The vmlinux.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no ELF file that can be used.
    #[error("{path}: {text}")]
    Damaged {
        /// The vmlinux.
        path: PathBuf,
        /// Why.
        text: String,
    },
    /// It is the debug info of another build.
    #[error("{path} is of another build: `{found}`, the kernel said `{wanted}`")]
    OtherBuild {
        /// The vmlinux.
        path: PathBuf,
        /// Its banner.
        found: String,
        /// The banner that the kernel printed.
        wanted: String,
    },
}

/// Symbols and lines of one vmlinux.
pub struct Symbols {
    loader: Loader,
    /// Address and size by name.
    functions: HashMap<String, Vec<(u64, u64)>>,
    /// Path of the source tree with a slash, as the debug info has it.
    tree: String,
}

impl Symbols {
    /// Opens a vmlinux, which must be of the build that printed `banner` when it booted.
    ///
    /// # Errors
    ///
    /// [`SymbolsError`].
    pub fn open(path: &Path, banner: &str) -> Result<Symbols, SymbolsError> {
        let io = |source| SymbolsError::Io { path: path.into(), source };
        let damaged = |text: String| SymbolsError::Damaged { path: path.into(), text };
        let file = File::open(path).map_err(io)?;
        let found = vmlinux::banners(file.try_clone().map_err(io)?);
        let found = found.map_err(|e| damaged(e.to_string()))?;
        if !found.iter().any(|found| found == banner) {
            let (path, wanted) = (path.into(), banner.into());
            let found = found.join("` or `");
            return Err(SymbolsError::OtherBuild { path, found, wanted });
        }
        let functions = functions(file).map_err(|e| damaged(e.to_string()))?;
        let loader = Loader::new(path).map_err(|e| damaged(e.to_string()))?;
        let mut symbols = Symbols { loader, functions, tree: String::new() };
        symbols.tree = symbols.find_tree();
        Ok(symbols)
    }

    /// File and line of a place, those of inlined functions first: `fs/fuse/dev.c:710 (inlined
    /// name) < fs/fuse/dev.c:768`. None where it is not known for sure.
    pub fn locate(&self, name: &str, offset: u64, size: u64, exact: bool) -> Option<String> {
        let fits = |known: u64| (known..=known.saturating_add(MAX_PADDING)).contains(&size);
        let mut fitting = self.functions.get(name)?.iter().filter(|(_, known)| fits(*known));
        let (start, _) = fitting.next()?;
        if fitting.next().is_some() || offset > size {
            return None;
        }
        // A call returns behind itself, perhaps into the next line or function.
        let address = start.checked_add(offset)?.checked_sub(u64::from(!exact))?;
        let mut frames = self.loader.find_frames(address).ok()?;
        let mut told: Vec<(String, Option<String>)> = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let place = frame.location.and_then(|place| Some((place.file?, place.line?)));
            let (file, line) = place?;
            let file = file.strip_prefix(&*self.tree).unwrap_or(file);
            let function = frame.function.and_then(|f| f.raw_name().ok().map(|n| n.into_owned()));
            told.push((format!("{file}:{line}"), function));
            if told.len() > MAX_INLINED {
                break;
            }
        }
        let last = told.len().checked_sub(1)?;
        let told = told.into_iter().enumerate().map(|(at, (place, function))| match function {
            Some(function) if at < last => format!("{place} (inlined {function})"),
            _ => place,
        });
        Some(told.collect::<Vec<_>>().join(" < "))
    }

    fn find_tree(&self) -> String {
        let (function, file) = LANDMARK;
        let start = self.functions.get(function).and_then(|found| found.first());
        let Some((start, _)) = start else { return String::new() };
        match self.loader.find_location(*start) {
            Ok(Some(place)) => {
                let path = place.file.unwrap_or_default();
                path.strip_suffix(file).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        }
    }
}

fn functions(file: File) -> Result<HashMap<String, Vec<(u64, u64)>>, object::read::Error> {
    let cache = ReadCache::new(file);
    let header = Elf::parse(&cache)?;
    let sections = header.sections(LittleEndian, &cache)?;
    let table = sections.symbols(LittleEndian, &cache, object::elf::SHT_SYMTAB)?;
    let mut found: Vec<(String, u64, u64)> = Vec::new();
    for symbol in table.iter() {
        let kind = symbol.st_type();
        let code = kind == STT_FUNC || kind == STT_NOTYPE;
        let (start, size) = (symbol.st_value(LittleEndian), symbol.st_size(LittleEndian));
        if !code || start == 0 {
            continue;
        }
        let name = table.symbol_name(LittleEndian, symbol)?;
        found.push((String::from_utf8_lossy(name).into_owned(), start, size));
    }
    let mut starts: Vec<u64> = found.iter().map(|(_, start, _)| *start).collect();
    starts.sort_unstable();
    let mut functions: HashMap<String, Vec<(u64, u64)>> = HashMap::new();
    for (name, start, size) in found {
        // Assembler code does not always say how long it is: up to the next symbol, as the
        // kernel takes it.
        let next = starts.get(starts.partition_point(|other| *other <= start));
        let size = if size == 0 { next.map_or(0, |next| next - start) } else { size };
        if size > 0 {
            functions.entry(name).or_default().push((start, size));
        }
    }
    Ok(functions)
}

#[cfg(test)]
#[path = "symbols_tests.rs"]
mod tests;
