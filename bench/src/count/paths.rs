//! The paths through the generator that are counted. To count another, add a line to [`PATHS`].

use std::path::Path as File;

use super::serve::Serve;
use crate::certificate;
use crate::compare::under_test::Server;

/// Payload bytes of one frame.
const FRAME: u64 = 1000;
/// MiB of one upload.
const UPLOAD: u64 = 16;

/// A path through a generator.
pub struct Path {
    pub name: &'static str,
    pub program: Program,
    pub unit: Unit,
    /// How many more requests, uploads or frames each count has than the one before.
    pub step: u64,
    /// The options of the program.
    options: &'static str,
}

/// Whose path it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Program {
    /// `narrows load`
    Narrows,
    /// `narrows load` over TLS
    Secured,
    /// `narrows load` against `narrows serve`, over HTTP/2 in plain text
    Http2,
    /// The floor of this name.
    Floor(&'static str),
    /// The floor of this name, over TLS.
    FloorTls(&'static str),
}

/// What a cost refers to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    Request,
    /// A MiB of uploads.
    Uploaded,
    /// A MiB of frames' payload.
    Framed,
}

use Program::{Floor, FloorTls, Http2, Narrows, Secured};
use Unit::{Framed, Request, Uploaded};

const fn path(name: &'static str, program: Program, unit: Unit, step: u64, options: &'static str) -> Path {
    Path { name, program, unit, step, options }
}

/// All paths.
#[rustfmt::skip]
pub const PATHS: &[Path] = &[
    path("kept-100-uring", Narrows, Request, 100_000, "-c 100 --reactor uring"),
    path("kept-100-epoll", Narrows, Request, 50_000, "-c 100 --reactor epoll"),
    path("kept-1-uring", Narrows, Request, 60_000, "-c 1 --reactor uring"),
    path("kept-1-epoll", Narrows, Request, 60_000, "-c 1 --reactor epoll"),
    path("pipelined-16-uring", Narrows, Request, 400_000, "-c 100 --pipeline 16 --reactor uring"),
    path("pipelined-16-epoll", Narrows, Request, 400_000, "-c 100 --pipeline 16 --reactor epoll"),
    path("each-its-own-uring", Narrows, Request, 10_000, "-c 100 --close --reactor uring"),
    path("each-its-own-epoll", Narrows, Request, 10_000, "-c 100 --close --reactor epoll"),
    path("open-2k-uring", Narrows, Request, 5_000, "-c 100 --rate 2k --reactor uring"),
    path("open-2k-epoll", Narrows, Request, 5_000, "-c 100 --rate 2k --reactor epoll"),
    path("upload-uring", Narrows, Uploaded, 32, "-c 1 --body-size 16M --reactor uring"),
    path("upload-epoll", Narrows, Uploaded, 32, "-c 1 --body-size 16M --reactor epoll"),
    path("frames-uring", Narrows, Framed, 400_000, "-c 1 --frame-size 1000 --reactor uring"),
    path("frames-epoll", Narrows, Framed, 400_000, "-c 1 --frame-size 1000 --reactor epoll"),
    path("http2-1x1-uring", Http2, Request, 20_000, "-c 1 --streams 1 --reactor uring"),
    path("http2-100x1-uring", Http2, Request, 20_000, "-c 100 --streams 1 --reactor uring"),
    path("http2-1x100-uring", Http2, Request, 100_000, "-c 1 --streams 100 --reactor uring"),
    path("http2-10x10-uring", Http2, Request, 100_000, "-c 10 --streams 10 --reactor uring"),
    path("http2-upload-uring", Http2, Uploaded, 8, "-c 1 --body-size 16M --reactor uring"),
    path("tls-kept-100-uring", Secured, Request, 20_000, "-c 100 --reactor uring"),
    path("tls-kept-100-epoll", Secured, Request, 20_000, "-c 100 --reactor epoll"),
    path("tls-kept-1-uring", Secured, Request, 20_000, "-c 1 --reactor uring"),
    path("tls-kept-1-epoll", Secured, Request, 20_000, "-c 1 --reactor epoll"),
    path("tls-each-its-own-uring", Secured, Request, 500, "-c 10 --close --reactor uring"),
    path("tls-each-its-own-epoll", Secured, Request, 500, "-c 10 --close --reactor epoll"),
    path("tls-resumed-uring", Secured, Request, 500, "-c 10 --close --tls-sessions always --reactor uring"),
    path("tls-resumed-epoll", Secured, Request, 500, "-c 10 --close --tls-sessions always --reactor epoll"),
    path("tls-upload-uring", Secured, Uploaded, 2, "-c 1 --body-size 16M --reactor uring"),
    path("tls-upload-epoll", Secured, Uploaded, 2, "-c 1 --body-size 16M --reactor epoll"),
    path("floor-kept-100-uring", Floor("floor-uring"), Request, 100_000, "-c 100"),
    path("floor-kept-100-epoll", Floor("floor-epoll"), Request, 50_000, "-c 100"),
    path("floor-kept-1-uring", Floor("floor-uring"), Request, 20_000, "-c 1"),
    path("floor-kept-1-epoll", Floor("floor-epoll"), Request, 20_000, "-c 1"),
    path("floor-each-its-own-uring", Floor("floor-uring"), Request, 10_000, "-c 100 --close"),
    path("floor-each-its-own-epoll", Floor("floor-epoll"), Request, 10_000, "-c 100 --close"),
    path("floor-tls-kept-100", FloorTls("floor-tls"), Request, 20_000, "-c 100"),
    path("floor-tls-kept-1", FloorTls("floor-tls"), Request, 20_000, "-c 1"),
    path("floor-tls-each-its-own", FloorTls("floor-tls"), Request, 500, "-c 10 --close"),
    path("floor-tls-upload", FloorTls("send-tls"), Uploaded, 2, "--size 16777216"),
];

/// The servers that are driven.
pub struct Servers<'a> {
    pub usual: &'a Server,
    pub serve: &'a Serve,
}

impl Path {
    /// The program and its arguments, for this number of operations.
    pub fn command(
        &self,
        narrows: &File,
        servers: &Servers<'_>,
        number: u64,
    ) -> std::io::Result<Vec<String>> {
        let server = servers.usual;
        let (target, root) = (self.target(servers), certificate::root(server.folder()));
        let (ports, root) = (server.ports, root.display());
        // The time of a floor is long enough for the number.
        let (program, first) = match self.program {
            Narrows => (narrows.to_owned(), format!("load {target} --json")),
            Secured => (narrows.to_owned(), format!("load {target} --json --cacert {root}")),
            Http2 => (narrows.to_owned(), format!("load {target} --json --http2")),
            Floor(name) => (std::env::current_exe()?, format!("{name} --port {} --seconds 600", ports.http)),
            FloorTls(name) => {
                let seconds = if self.unit == Request { " --seconds 600" } else { "" };
                (std::env::current_exe()?, format!("{name} --port {} --root {root}{seconds}", ports.tls))
            }
        };
        let mut words = vec![program.to_string_lossy().into_owned()];
        words.extend(first.split(' ').chain(self.options.split(' ')).map(str::to_owned));
        words.extend(["-n".to_owned(), number.to_string()]);
        Ok(words)
    }

    fn target(&self, servers: &Servers<'_>) -> String {
        let ports = servers.usual.ports;
        let http = match self.program {
            Secured | FloorTls(_) => format!("https://127.0.0.1:{}", ports.tls),
            Http2 => format!("http://127.0.0.1:{}", servers.serve.port),
            Narrows | Floor(_) => format!("http://127.0.0.1:{}", ports.http),
        };
        match self.unit {
            Framed => format!("frames://127.0.0.1:{}", ports.stream),
            Request => format!("{http}/"),
            Uploaded => format!("{http}/upload"),
        }
    }

    /// The options, as the table shows them.
    pub fn options(&self) -> String {
        match self.program {
            Narrows | Secured => self.options.to_owned(),
            Http2 => format!("--http2 {}", self.options),
            Floor(name) | FloorTls(name) => format!("{name} {}", self.options),
        }
    }
}

impl Unit {
    /// How many units a request, upload or frame is.
    pub fn per_step(self) -> f64 {
        match self {
            Self::Request => 1.0,
            Self::Uploaded => UPLOAD as f64,
            Self::Framed => FRAME as f64 / f64::from(1 << 20),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Uploaded => "MiB of a body",
            Self::Framed => "MiB of frames",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_of_paths_is_consistent() {
        let names: BTreeSet<&str> = PATHS.iter().map(|path| path.name).collect();
        assert_eq!(names.len(), PATHS.len(), "a name occurs twice");
        for path in PATHS {
            let says = |option: &str| path.options.contains(option);
            let size = [format!("--body-size {UPLOAD}M"), format!("--size {}", UPLOAD << 20)];
            assert_eq!(path.unit == Uploaded, size.iter().any(|size| says(size)), "{}", path.name);
            let tls = matches!(path.program, Secured | FloorTls(_));
            assert_eq!(path.program == Http2, path.name.starts_with("http2-"), "{}", path.name);
            assert_eq!(
                tls,
                path.name.starts_with("tls-") || path.name.starts_with("floor-tls-"),
                "{}",
                path.name
            );
            assert_eq!(path.unit == Framed, says(&format!("--frame-size {FRAME}")), "{}", path.name);
            assert!(!matches!(path.program, Floor(_)) || path.unit == Request, "{}", path.name);
        }
    }
}
