//! Debug info, against a program that is compiled for it.

use std::process::Command;

use super::*;

/// A banner as a kernel has it, one that it shows elsewhere, and a function with another inlined.
const SOURCE: &str = "\
const char other[] = \"Linux version 7.3.4-test (a@b) (cc) # SMP\\n\";
const char banner[] = \"Linux version 7.3.4-test (a@b) (cc) #1 SMP\\n\";
static inline __attribute__((always_inline)) void inner(volatile int *p)
{
	*p = 1;
}
void outer(volatile int *p)
{
	*p = 0;
	inner(p);
}
int start_kernel(void)
{
	return banner[0] + other[0];
}
";

/// Two functions of one name, and one that assembler code does not give a size.
const TWIN: &str = "\
static __attribute__((noinline, used)) int twin(int *p)
{
	return *p;
}
";

const BARE: &str = "\
.text
.globl bare
bare:
	nop
	nop
	ret
.globl behind
behind:
	ret
";

const BANNER: &str = "Linux version 7.3.4-test (a@b) (cc) #1 SMP";

/// A vmlinux of that source; none where there is no compiler.
#[allow(clippy::disallowed_methods)] // the compiler makes what is tested, the lab starts none
fn vmlinux(dir: &Path) -> Option<PathBuf> {
    std::fs::create_dir(dir.join("init")).unwrap();
    std::fs::write(dir.join("init/main.c"), SOURCE).unwrap();
    for (name, text) in [("a.c", TWIN), ("b.c", TWIN), ("bare.S", BARE)] {
        std::fs::write(dir.join("init").join(name), text).unwrap();
    }
    let out = dir.join("vmlinux");
    let status = Command::new("cc")
        .args(["-g", "-O1", "-nostdlib", "-static", "-Wl,-e,start_kernel", "-o"])
        .arg(&out)
        .args(["main.c", "a.c", "b.c", "bare.S"].map(|name| dir.join("init").join(name)))
        .status()
        .ok()?;
    status.success().then_some(out)
}

#[test]
fn places_become_files_and_lines() {
    let dir = tempfile::tempdir().unwrap();
    let Some(path) = vmlinux(dir.path()) else {
        assert!(std::env::var_os("CI").is_none(), "CI has a compiler");
        return;
    };
    let symbols = Symbols::open(&path, BANNER).unwrap();
    let (_, size) = symbols.functions["outer"][0];
    assert_eq!(symbols.locate("outer", 0, size, true).unwrap(), "init/main.c:9");
    let inlined = (0..size).filter_map(|at| symbols.locate("outer", at, size + 8, true));
    let inlined: Vec<String> = inlined.filter(|place| place.contains("inlined")).collect();
    assert!(
        inlined.contains(&"init/main.c:5 (inlined inner) < init/main.c:10".into()),
        "{inlined:?}"
    );
    // Neither a function of another size nor a place behind its end, nor an unknown one.
    assert_eq!(symbols.locate("outer", 0, size - 1, true), None);
    assert_eq!(symbols.locate("outer", 0, size + 4096, true), None);
    assert_eq!(symbols.locate("outer", size + 9, size + 8, true), None);
    assert_eq!(symbols.locate("other", 0, size, true), None);
    // Which of two it is cannot be told.
    let twins = &symbols.functions["twin"];
    assert_eq!((twins.len(), twins[0].1), (2, twins[1].1));
    assert_eq!(symbols.locate("twin", 0, twins[0].1, true), None);
    // As the kernel does, a function without a size is taken to end where the next one begins.
    assert_eq!(symbols.locate("bare", 1, 3, true).unwrap(), "init/bare.S:5");
}

#[test]
fn debug_info_of_another_build_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let Some(path) = vmlinux(dir.path()) else { return };
    let error = Symbols::open(&path, "Linux version 7.3.4-test (a@b) (cc) #2 SMP").err().unwrap();
    assert!(matches!(error, SymbolsError::OtherBuild { .. }), "{error}");
    let text = dir.path().join("init/main.c");
    assert!(matches!(Symbols::open(&text, BANNER).err(), Some(SymbolsError::Damaged { .. })));
    let none = Symbols::open(&dir.path().join("none"), BANNER).err();
    assert!(matches!(none, Some(SymbolsError::Io { .. })));
}
