//! Shared by the tests of processes: systems made of small shell scripts, and a search for what they left behind.

#![allow(dead_code, reason = "each test binary uses some of it")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use systems::{Context, Launch, Manifest, Point, Running, Source, SystemError};

/// A cancel flag that is never set.
pub static CALM: AtomicBool = AtomicBool::new(false);

/// A home folder with one system, `probe`.
pub struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    /// A temporary home with `systems/probe`, `systems/shared` and `experiments`.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["systems/probe", "systems/shared", "experiments"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn dir(&self) -> PathBuf {
        self.path().join("systems/probe")
    }

    /// A system with this role and these additional lines of manifest.
    pub fn manifest(&self, role: &str, lines: &str) -> Manifest {
        let workload = if role == "client" { "clients" } else { "requests" };
        let head =
            format!("name='probe'\nrole='{role}'\nworkloads=['{workload}']\nlanguage='sh'\nabout=''\n");
        Manifest::parse(&Source::new("system.toml", head + lines), &self.dir()).unwrap().remove(0)
    }

    /// A server that runs this script, which may ignore its port.
    pub fn server(&self, script: &str, lines: &str) -> Manifest {
        self.manifest("server", &format!("[start]\ncommand=['sh','-c','''{script}''','{{port}}']\n{lines}"))
    }

    pub fn client(&self, script: &str) -> Manifest {
        self.manifest("client", &format!("[start]\ncommand=['sh','-c','''{script}''']\n"))
    }

    /// A client that is built by this script. `lines` are added to its `[build]`.
    pub fn built_by(&self, script: &str, lines: &str) -> Manifest {
        let build =
            format!("[start]\ncommand=['true']\n[build]\ncommand=['sh','-c','''{script}''']\n{lines}");
        self.manifest("client", &build)
    }

    pub fn context(&self) -> Context<'_> {
        Context { narrows: Path::new("/bin/true"), cancel: &CALM }
    }

    /// How many lines builds have written to `{home}/count`.
    pub fn count(&self) -> usize {
        std::fs::read_to_string(self.path().join("count")).map_or(0, |text| text.lines().count())
    }

    /// Writes a file in the home and creates the folders above it.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn start(&self, manifest: &Manifest, port: Option<u16>) -> Result<Running, SystemError> {
        self.start_on(manifest, port, &[])
    }

    pub fn start_on(
        &self,
        manifest: &Manifest,
        port: Option<u16>,
        cores: &[usize],
    ) -> Result<Running, SystemError> {
        self.start_at(manifest, port, cores, &Point::new())
    }

    pub fn start_at(
        &self,
        manifest: &Manifest,
        port: Option<u16>,
        cores: &[usize],
        point: &Point,
    ) -> Result<Running, SystemError> {
        let narrows = Path::new("/bin/true");
        let listening = port.map(systems::Listening::Port);
        let listening = listening.as_ref();
        let (certificate, tls) = (None, None);
        let address = systems::Listening::USUAL;
        Launch {
            manifest,
            out: self.path(),
            address,
            listening,
            certificate,
            tls,
            http2: false,
            profiled: false,
            point,
            cores,
            narrows,
            tell: |_| {},
        }
        .start()
    }
}

/// A number of seconds that no other process sleeps, so that it identifies a process.
pub fn odd_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("6000.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The processes with this argument. Zombies have no arguments.
pub fn with_argument(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == text.as_bytes())
    };
    pids.filter(holds).collect()
}

/// Waits for something that must happen, even on a slow machine.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A deadline that is not reached when all is well.
pub fn late() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A short deadline for something that never happens.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_millis(300)
}
