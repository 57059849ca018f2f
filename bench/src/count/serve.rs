//! `narrows serve`, the server of the paths over HTTP/2: the one of the comparison speaks HTTP/1.1.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::{io, mem};

use anyhow::Context;

use crate::compare::machine;

/// The running server. It is killed when this value is dropped.
pub struct Serve {
    child: Child,
    pub port: u16,
}

impl Serve {
    /// Starts it on another core than the one on which this process runs: how many answers a read brings depends on that.
    pub fn start(narrows: &Path, own_core: usize) -> anyhow::Result<Self> {
        machine::pin(&[usize::from(own_core == 0)])?;
        let mut command = Command::new(narrows);
        command.args(["serve", "--port", "0", "--threads", "1"]).stdout(Stdio::null());
        let spawned = command.stderr(Stdio::piped()).spawn();
        machine::pin(&[own_core])?;
        let mut serve = Self { child: spawned.context("narrows serve")?, port: 0 };
        let mut line = String::new();
        let said = serve.child.stderr.take().context("no output")?;
        BufReader::new(said).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        serve.port = port.context("narrows serve did not name its port")?;
        Ok(serve)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The most memory that `narrows load` has with 1,000 connections of 100 streams, in MiB.
pub fn memory(narrows: &Path, serve: &Serve) -> anyhow::Result<f64> {
    let target = format!("http://127.0.0.1:{}/", serve.port);
    let mut command = Command::new(narrows);
    command.args(["load", &target, "--json", "--http2"]).args(MEMORY.split(' '));
    let child = command.stdout(Stdio::null()).spawn().context("narrows load")?;
    // SAFETY: both are plain data for which zeros are valid, and the call writes only to them.
    let (status, usage) = unsafe {
        let (mut status, mut usage): (i32, libc::rusage) = mem::zeroed();
        if libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) < 0 {
            return Err(io::Error::last_os_error().into());
        }
        (ExitStatus::from_raw(status), usage)
    };
    anyhow::ensure!(status.success(), "narrows load with 1,000 connections: {status}");
    Ok(usage.ru_maxrss as f64 / 1024.0)
}

/// The options of the drive whose memory is measured.
pub const MEMORY: &str = "-c 1000 --streams 100 --reactor uring -n 1000000";
