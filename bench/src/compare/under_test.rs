//! The server of the comparison, which runs on its own core, and its counts.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::machine;
use super::peer::{BODY, LIST, on_path};
use crate::{certificate, net};

/// The ports of the server.
#[derive(Clone, Copy)]
pub struct Ports {
    pub http: u16,
    pub stream: u16,
    pub tls: u16,
    pub iperf3: u16,
}

/// What the server has counted since its start.
#[derive(Clone, Copy, PartialEq)]
pub struct Count {
    pub requests: u64,
    pub connections: u64,
    pub bytes: u64,
}

/// The running server. It is killed when this value is dropped.
pub struct Server {
    children: Vec<Child>,
    pub ports: Ports,
    pub core: usize,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts our server, and iperf3's if it is installed.
    pub fn start(core: usize) -> anyhow::Result<Self> {
        machine::pin(&[core])?;
        let folder = tempfile::tempdir()?;
        certificate::issue(folder.path())?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["server", "--certificate"]).arg(folder.path());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        let mut server = Self {
            children: vec![child],
            ports: Ports { http: 0, stream: 0, tls: 0, iperf3: 0 },
            core,
            folder,
        };
        BufReader::new(out).read_line(&mut line)?;
        let mut ports = line.split_whitespace().map(str::parse);
        let (Some(Ok(http)), Some(Ok(stream)), Some(Ok(tls))) = (ports.next(), ports.next(), ports.next())
        else {
            bail!("the server did not name its ports");
        };
        server.ports = Ports { http, stream, tls, iperf3: server.iperf3()? };
        Ok(server)
    }

    fn iperf3(&mut self) -> anyhow::Result<u16> {
        let Some(program) = on_path("iperf3") else { return Ok(0) };
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new(program);
        command.args(["-s", "-p", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        self.children.push(command.spawn()?);
        Ok(port)
    }

    /// The count, once it no longer changes.
    pub fn settled(&self) -> anyhow::Result<Count> {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut last = self.count()?;
        loop {
            std::thread::sleep(Duration::from_millis(30));
            let now = self.count()?;
            if now.requests == last.requests && now.bytes == last.bytes || Instant::now() > deadline {
                return Ok(now);
            }
            last = now;
        }
    }

    /// The count now.
    pub fn count(&self) -> anyhow::Result<Count> {
        let mut stream = net::connect(self.ports.http)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(b"GET /count HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let numbers = text.rsplit("\r\n").next().unwrap_or_default();
        let mut numbers = numbers.split(' ').map(str::parse);
        let mut next = || numbers.next().context("no count")?.context("no number");
        Ok(Count { requests: next()?, connections: next()?, bytes: next()? })
    }

    /// A sparse file of this size, for tools that send a file.
    pub fn file(&self, size: u64) -> std::io::Result<()> {
        File::create(self.folder.path().join(BODY))?.set_len(size)
    }

    /// A file of 100,000 requests, all of them different and equally long.
    pub fn list(&self) -> std::io::Result<()> {
        let port = self.ports.http;
        let lines = (0..100_000).map(|number| format!("GET http://127.0.0.1:{port}/item/{number:05}\n"));
        fs::write(self.folder.path().join(LIST), lines.collect::<String>())
    }

    /// A folder that is deleted with the server. It has the certificate.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
