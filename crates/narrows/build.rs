//! Lists the systems and experiments that come with the program, for `src/built_in.rs`: the path of each file, and where it lies
//! when the program is built.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// What people and builds leave in the folders.
const LEFT_OUT: [&str; 7] =
    ["target", "node_modules", "_build", "_checkouts", "__pycache__", "erl_crash.dump", "rebar.lock"];

fn main() -> io::Result<()> {
    let folder = |name| env::var_os(name).map(PathBuf::from).ok_or(io::ErrorKind::NotFound);
    let root = folder("CARGO_MANIFEST_DIR")?.join("../..").canonicalize()?;
    let mut files = Vec::new();
    // Not the folder of all systems: builds write there.
    println!("cargo::rerun-if-changed={}", root.join("experiments").display());
    for name in ["experiments", "systems"] {
        collect(&root.join(name), &mut files)?;
    }
    let mut hasher = DefaultHasher::new();
    let mut table = String::from("&[\n");
    for path in &files {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        (&name, fs::read(path)?).hash(&mut hasher);
        table += &format!("    ({name:?}, {}, include_bytes!({path:?})),\n", is_program(path)?);
    }
    table += "]\n";
    println!("cargo::rustc-env=BUILT_IN_HASH={:016x}", hasher.finish());
    fs::write(folder("OUT_DIR")?.join("built_in.rs"), table)
}

/// Appends the files under `folder`, sorted by name.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if LEFT_OUT.contains(&&*name) || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn is_program(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(path)?.permissions().mode() & 0o100 != 0)
}
