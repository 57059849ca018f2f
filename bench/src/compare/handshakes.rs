//! Full handshakes: what the generator pays for one, against what nginx pays to accept it.
//!
//! The two ends make the same handshakes, so that one run gives both figures of a pair.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use super::machine;
use super::measure::{self, Run};
use super::options::Args;
use super::peer::{Peer, Task};
use super::results::Comparison;
use super::under_test::{Ports, Server};
use crate::{certificate, net};

/// Starts nginx, and lets the generator make full handshakes with it.
pub fn compare(
    scenario: String,
    task: &Task,
    us: &Peer,
    nginx: &Peer,
    server: &Server,
    args: &Args,
) -> anyhow::Result<Comparison> {
    let running = Nginx::start(nginx, task, server)?;
    let mut runs = Vec::new();
    for _ in 0..args.pairs() {
        runs.push(running.pair(task, us, nginx, server, &args.generator_cores)?);
    }
    Ok(Comparison { scenario, task: *task, peer: nginx.name, runs, calls: [None, None] })
}

/// nginx as one process. It is killed when this value is dropped.
struct Nginx {
    child: Child,
    port: u16,
    command: Vec<String>,
}

impl Nginx {
    /// Starts it on the server's core, with the server's certificate, and waits until it accepts connections.
    fn start(nginx: &Peer, task: &Task, server: &Server) -> anyhow::Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        fs::write(server.folder().join("nginx.conf"), configuration(port, server))?;
        let command = nginx.command(task, server.ports, server.folder());
        machine::pin(&[server.core])?;
        let errors = fs::File::create(server.folder().join("nginx-errors"))?;
        let mut program = Command::new(&command[0]);
        let child = program.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let mut started = Self { child: child.spawn().context("nginx")?, port, command };
        let deadline = Instant::now() + Duration::from_secs(10);
        while net::connect(port).is_err() {
            if started.child.try_wait()?.is_some() || Instant::now() > deadline {
                let errors = fs::read_to_string(server.folder().join("nginx-errors")).unwrap_or_default();
                bail!("nginx does not accept connections: {}", errors.trim());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(started)
    }

    /// One run: the generator's figures, and nginx's.
    fn pair(
        &self,
        task: &Task,
        us: &Peer,
        nginx: &Peer,
        server: &Server,
        cores: &[usize],
    ) -> anyhow::Result<(Run, Run)> {
        let words = us.command(task, Ports { tls: self.port, ..server.ports }, server.folder());
        let before = machine::cpu(self.child.id())?;
        let done = measure::spawn(&words, server, cores, task.seconds)?;
        let cpu = machine::cpu(self.child.id())? - before;
        let full = full(&done.output);
        let operations = *full.as_ref().unwrap_or(&0.0);
        let mut ours = Run { operations, ..Run::of(us, &words, &done, server.folder()) };
        ours.fault = ours.fault.or_else(|| full.err());
        let theirs = Run {
            tool: nginx.name,
            command: measure::shown(nginx.name, &self.command, server.folder()),
            operations: ours.operations,
            // The rate is that of the generator.
            seconds: f64::NAN,
            cpu,
            peak_kib: machine::memory(self.child.id(), "VmHWM").unwrap_or(0),
            ..Run::default()
        };
        Ok((ours, theirs))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The full handshakes that Narrows counted, if there were no others.
fn full(output: &str) -> Result<f64, String> {
    let json: Value = serde_json::from_str(output).unwrap_or_default();
    let count = |kind: &str| json["handshakes"][kind].as_u64().unwrap_or(0);
    let (full, others) = (count("full"), count("resumed") + count("retried"));
    if full > 0 && others == 0 {
        Ok(full as f64)
    } else {
        Err(format!("{full} handshakes were full, and {others} were not"))
    }
}

/// What nginx is for one process, whose time is then easy to tell, and what it needs to speak TLS. The rest has its defaults.
fn configuration(port: u16, server: &Server) -> String {
    let folder = server.folder().display();
    let (chain, key) = (certificate::chain(server.folder()), certificate::key(server.folder()));
    format!(
        "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx; proxy_temp_path {folder}/nginx; fastcgi_temp_path {folder}/nginx;
    uwsgi_temp_path {folder}/nginx; scgi_temp_path {folder}/nginx;
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096;
        ssl_certificate {chain}; ssl_certificate_key {key};
        location / {{ return 200 \"ok\"; }}
    }}
}}
",
        chain = chain.display(),
        key = key.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_handshake_is_no_full_one() {
        assert_eq!(full(r#"{"handshakes": {"full": 9, "retried": 0, "resumed": 0}}"#), Ok(9.0));
        let resumed = full(r#"{"handshakes": {"full": 9, "retried": 0, "resumed": 1}}"#);
        assert_eq!(resumed, Err("9 handshakes were full, and 1 were not".to_owned()));
        assert!(full("").is_err());
    }
}
