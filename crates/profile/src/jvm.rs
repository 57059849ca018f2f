//! Asks a Java virtual machine for the names of the code that it has made.
//!
//! HotSpot writes `/tmp/perf-PID.map` when it is asked for it, from JDK 17 on (JDK-8254723), over a socket that every
//! JVM has for its tools. We speak its protocol ourselves, because `jcmd` is a Java program that would take CPU time
//! from what is measured: a file tells the JVM to open the socket, SIGQUIT tells it to look for the file
//! (attachListener_posix.cpp of OpenJDK).

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::tasks::{field, own_number};

/// How long a JVM may take to open its socket, and to answer. One that does its work needs some milliseconds.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often we look whether the socket is there.
const INTERVAL: Duration = Duration::from_millis(5);
/// Version 1 of the protocol, the command, and its three arguments, each with a zero byte behind it.
const REQUEST: &[u8] = b"1\0jcmd\0Compiler.perfmap\0\0\0";
/// SIGQUIT in the masks of /proc/PID/status, whose lowest bit is signal 1.
const QUIT: u64 = 1 << 2;

/// Lets a process write its map, if it is a JVM. A JVM that cannot or will not write it has no names, and nothing else
/// happens.
pub(crate) fn write_map(process: u32) {
    if is_jvm(process) {
        let _ = ask(process);
    }
}

/// Whether it is a JVM that takes SIGQUIT as a question. Any other program, and a JVM with `-Xrs`, would end of it.
fn is_jvm(process: u32) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let caught = field(&read("status"), "SigCgt:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    caught.is_some_and(|mask| mask & QUIT != 0)
        && read("maps").lines().any(|line| line.ends_with("/libjvm.so"))
}

fn ask(process: u32) -> Option<()> {
    let own = own_number(process)?;
    let folder = PathBuf::from(format!("/proc/{process}/root/tmp"));
    let socket = folder.join(format!(".java_pid{own}"));
    if !is_socket(&socket) {
        open_socket(process, &folder.join(format!(".attach_pid{own}")), &socket)?;
    }
    let mut stream = UnixStream::connect(&socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(REQUEST).ok()?;
    // It answers and closes when the map is written.
    let _ = io::copy(&mut stream, &mut io::sink());
    Some(())
}

/// Lets the JVM open its socket.
fn open_socket(process: u32, trigger: &Path, socket: &Path) -> Option<()> {
    fs::OpenOptions::new().write(true).create_new(true).open(trigger).ok()?;
    let pid = Pid::from_raw(process.cast_signed())?;
    let asked = kill_process(pid, Signal::QUIT);
    let deadline = Instant::now().checked_add(PATIENCE)?;
    while asked.is_ok() && !is_socket(socket) && Instant::now() < deadline {
        thread::sleep(INTERVAL);
    }
    let _ = fs::remove_file(trigger); // The JVM may have removed it.
    is_socket(socket).then_some(())
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}
