//! Compiles the library that is preloaded. It needs no other library, so it fits programs of glibc and of musl alike.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=inject.c");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder")).join("inject.so");
    // Flags for Rust's objects, such as those for static programs, do not fit a library.
    let mut build = cc::Build::new();
    build.no_default_flags(true).cargo_metadata(false).file("inject.c");
    for flag in ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-ftls-model=initial-exec"] {
        build.flag(flag);
    }
    build.flag("-fno-stack-protector").flag("-U_FORTIFY_SOURCE");
    // It is compiled and linked in two steps: zig's compiler, which builds for other processors, finds no headers with -nostdlib.
    let objects = build.compile_intermediates();
    let mut command = build.get_compiler().to_command();
    command.args(["-shared", "-nostdlib", "-s", "-Wl,--build-id=none", "-o"]).arg(out).args(objects);
    assert!(command.status().expect("a C compiler").success(), "{command:?} failed");
}
