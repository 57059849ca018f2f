//! Compiles the library that is preloaded. It needs no other library, so it fits programs of glibc and of musl alike.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=inject.c");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder")).join("inject.so");
    // Flags for Rust's objects, such as those for static programs, do not fit a library.
    let compiler = cc::Build::new().no_default_flags(true).cargo_metadata(false).get_compiler();
    let mut command = compiler.to_command();
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-nostdlib", "-s"]);
    command.args([
        "-ftls-model=initial-exec",
        "-fno-stack-protector",
        "-U_FORTIFY_SOURCE",
        "-Wl,--build-id=none",
    ]);
    command.arg("-o").arg(out).arg("inject.c");
    assert!(command.status().expect("a C compiler").success(), "{command:?} failed");
}
