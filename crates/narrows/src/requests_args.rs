//! The options of requests that come from a file.

use std::cell::RefCell;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lab::ask::Listed;
use load::target::{Http, Url};
use load::{ListBuilder, Order, Recording, Script, Values};
use report::number;
use requests::{Format, Found, Options, Origin, Rows};
use ring::digest::{Context as Digest, SHA256};
use serde::{Deserialize, Serialize};

use crate::common::{self, Usage};
use crate::given::{self, GivenFile};

/// A file of requests. `load`, `try` and `tune` share its options.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "Request files")]
pub struct FileArgs {
    /// Send the requests of this file: vegeta's targets, JSON lines, HAR, or an access log in nginx's combined form. In paths,
    /// headers and bodies, {{uuid}}, {{counter}}, {{random 1..100}} and {{COLUMN}} of --data are filled in
    #[arg(long, value_name = "FILE", conflicts_with_all = ["request", "body", "body_size", "expect_continue"])]
    requests: Option<PathBuf>,
    /// The format of the file [default: recognised]
    #[arg(long, value_enum, value_name = "FORMAT", requires = "requests")]
    requests_format: Option<FormatChoice>,
    /// The order of the requests [default: in-order, or random if the file has weights]
    #[arg(long, value_enum, value_name = "ORDER", requires = "requests")]
    requests_order: Option<OrderChoice>,
    /// Fill in {{COLUMN}} from this file, one row after the other: CSV with the names in the first line, or JSON lines
    #[arg(long, value_name = "FILE", requires = "requests")]
    data: Option<PathBuf>,
}

/// Options of files of requests, and of who asks.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request files")]
pub struct RequestsArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Send requests whose URLs name other hosts to the target, too
    #[arg(long, requires = "requests")]
    rebase: bool,
    /// Send the requests of an access log in the order and at the distances in which they arrived, so many times as fast (1, 2,
    /// 0.5); -d ends it earlier
    #[arg(long, value_name = "FACTOR", value_parser = speed, requires = "requests",
        conflicts_with_all = ["rate", "number", "warmup", "find_max_rate", "requests_order"])]
    speed: Option<f64>,
    /// Send this name and password in every request (Basic); with @FILE they are read from a file
    #[arg(long, value_name = "USER:PASSWORD", conflicts_with = "auth_bearer")]
    auth: Option<String>,
    /// Send this token in every request (Bearer); with @FILE it is read from a file
    #[arg(long, value_name = "TOKEN")]
    auth_bearer: Option<String>,
}

/// Formats of files of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum FormatChoice {
    /// `METHOD URL`, headers, `@FILE`.
    Vegeta,
    /// One object a line.
    Json,
    /// One object a line, with `header` and a body in base64.
    VegetaJson,
    /// As browsers save it.
    Har,
    /// Nginx's combined form.
    Log,
}

/// Orders of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum OrderChoice {
    /// As in the file, again and again. Each thread begins at its own part.
    InOrder,
    /// At random, by their weights.
    Random,
    /// As in the file, each once; then the drive ends.
    Once,
}

impl From<FormatChoice> for Format {
    fn from(choice: FormatChoice) -> Self {
        match choice {
            FormatChoice::Vegeta => Self::Vegeta,
            FormatChoice::Json => Self::Json,
            FormatChoice::VegetaJson => Self::VegetaJson,
            FormatChoice::Har => Self::Har,
            FormatChoice::Log => Self::Log,
        }
    }
}

/// Parses a speed: `2` or `0.5`.
fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| (0.001..=1e6).contains(speed));
    speed.ok_or_else(|| format!("{text:?} is not a speed: write 1, 2 or 0.5"))
}

/// The arrivals of a log, and how long they last.
pub struct Replay {
    /// The arrivals.
    pub recording: Recording,
    /// From the first second of the log to the end of its last one, at the chosen speed.
    pub length: Duration,
}

/// The requests of a file for several servers.
pub struct Scripted {
    /// The requests.
    pub script: Arc<Script>,
    /// What a plan keeps of them.
    pub listed: Listed,
}

impl FileArgs {
    /// Whether there is a file of requests.
    pub fn any(&self) -> bool {
        self.requests.is_some()
    }

    /// Reads the file for several servers, and checks that its requests can be sent. `http` says what they have in common. The
    /// hosts of its URLs do not matter. `captured` are names of values that become known when a server runs. None if there is
    /// no file.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is wrong.
    pub fn script(&self, http: &Http, seed: u64, captured: &[String]) -> anyhow::Result<Option<Scripted>> {
        let Some(path) = &self.requests else { return Ok(None) };
        let order = match self.requests_order {
            None => None,
            Some(OrderChoice::InOrder) => Some(Order::InOrder),
            Some(OrderChoice::Random) => Some(Order::Random),
            Some(OrderChoice::Once) => bail!(Usage(
                "--requests-order once ends when all requests are answered, and a trial lasts a time: use in-order or random"
                    .to_owned()
            )),
        };
        let digest = RefCell::new(Digest::new(&SHA256));
        let rows = self.rows(Some(&digest))?;
        let columns = columns(&rows, captured)?;
        // Each request is encoded once, so that what is wrong with it is found with its line.
        let mut requests = Vec::new();
        let some: Vec<(String, String)> = captured.iter().map(|name| (name.clone(), name.clone())).collect();
        let tried = Script::new(Vec::new(), rows.clone(), None, seed);
        let mut builder = ListBuilder::new(http, rows.clone());
        let from = Taking { url: &Url::parse("http://localhost/")?, rebase: true, digest: Some(&digest) };
        let found = self.read(path, &columns, from, |request| {
            builder.push(tried.filled_in(&request, &some), |texts| http.expect.besides(texts))?;
            requests.push(request);
            Ok(())
        })?;
        builder.finish(Order::InOrder, seed).map_err(|error| Usage(error.to_string()))?;
        say_what_is_left_out(path, &found);
        let digits = digest.into_inner().finish();
        let listed = Listed {
            file: path.to_string_lossy().into_owned(),
            requests: requests.len() as u64,
            sha256: digits.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        Ok(Some(Scripted { script: Arc::new(Script::new(requests, rows, order, seed)), listed }))
    }

    fn rows(&self, digest: Option<&RefCell<Digest>>) -> anyhow::Result<Rows> {
        let Some(path) = &self.data else { return Ok(Rows::default()) };
        let rows = requests::read_data(&mut open(path, digest)?, &path.to_string_lossy());
        Ok(rows.map_err(|error| Usage(error.to_string()))?)
    }

    fn read(
        &self,
        path: &Path,
        columns: &[String],
        from: Taking<'_>,
        mut take: impl FnMut(requests::Request) -> Result<(), String>,
    ) -> anyhow::Result<Found> {
        let Taking { url, rebase, digest } = from;
        let options = Options {
            file: &path.to_string_lossy(),
            format: self.requests_format.map(Format::from),
            origin: &Origin::new(&url.scheme, &url.host, url.port),
            rebase,
            columns,
        };
        // Files with bodies are beside the file of requests, or named as they are seen from here.
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut body = |name: &str| {
            let bytes = match folder.join(name) {
                beside if beside.exists() => read_body(&beside),
                _ => read_body(Path::new(name)),
            }?;
            if let Some(digest) = digest {
                digest.borrow_mut().update(&bytes);
            }
            Ok(bytes)
        };
        let found = requests::read(&mut open(path, digest)?, &options, &mut body, &mut take);
        Ok(found.map_err(|error| Usage(error.to_string()))?)
    }
}

/// The columns of the data, and then the names of values.
fn columns(rows: &Rows, captured: &[String]) -> anyhow::Result<Vec<String>> {
    if let Some(name) = rows.columns.iter().find(|name| captured.contains(name)) {
        bail!(Usage(format!("--capture {name} and a column of --data have one name: choose another")));
    }
    Ok([&rows.columns, captured].concat())
}

/// Whose requests are taken from a file, and what sees its bytes.
#[derive(Clone, Copy)]
struct Taking<'a> {
    /// The target.
    url: &'a Url,
    /// Whether requests to other targets are taken, too.
    rebase: bool,
    digest: Option<&'a RefCell<Digest>>,
}

impl RequestsArgs {
    /// Whether there is a file of requests.
    pub fn any(&self) -> bool {
        self.file.any()
    }

    /// Whether options apply only to requests.
    pub fn needs_requests(&self) -> bool {
        self.any() || self.auth.is_some() || self.auth_bearer.is_some()
    }

    /// Whether each request is sent once.
    pub fn once(&self) -> bool {
        self.file.requests_order == Some(OrderChoice::Once)
    }

    /// The header that says who asks.
    ///
    /// # Errors
    /// The file with the secret cannot be read, or the secret is none.
    pub fn authorization(&self) -> anyhow::Result<Option<(String, String)>> {
        let value = match (&self.auth, &self.auth_bearer) {
            (Some(pair), _) => {
                let pair = secret(pair)?;
                if !pair.contains(':') {
                    bail!(Usage("--auth: write it as USER:PASSWORD, or @FILE".to_owned()));
                }
                format!("Basic {}", STANDARD.encode(pair))
            }
            (None, Some(token)) => format!("Bearer {}", secret(token)?),
            (None, None) => return Ok(None),
        };
        Ok(Some(("Authorization".to_owned(), value)))
    }

    /// Reads the file and prepares its requests. `http` says what they have in common, and `values` what placeholders stand for
    /// besides columns.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is wrong.
    pub fn prepare(
        &self,
        http: &mut Http,
        url: &Url,
        seed: u64,
        values: &Values,
    ) -> anyhow::Result<Option<Replay>> {
        let Some(path) = &self.file.requests else { return Ok(None) };
        let rows = self.file.rows(None)?;
        let names: Vec<String> = values.named.iter().map(|(name, _)| name.clone()).collect();
        let columns = columns(&rows, &names)?;
        let blank = Script::new(Vec::new(), rows.clone(), None, seed);
        let mut builder = ListBuilder::new(http, rows);
        let from = Taking { url, rebase: self.rebase, digest: None };
        let found = self.file.read(path, &columns, from, |request| {
            let request = if names.is_empty() { request } else { blank.filled_in(&request, &values.named) };
            builder.push(request, |texts| http.expect.besides(texts))
        })?;
        say_what_is_left_out(path, &found);
        let replay = match self.speed {
            None => None,
            Some(speed) => {
                let (recording, length) = builder.record(speed, seed).ok_or_else(|| {
                    anyhow!(Usage(format!(
                        "--speed needs an access log, and {} has no times",
                        path.display()
                    )))
                })?;
                Some(Replay { recording, length })
            }
        };
        let order = match self.file.requests_order {
            _ if replay.is_some() => Order::Recorded,
            Some(OrderChoice::InOrder) => Order::InOrder,
            Some(OrderChoice::Once) => Order::Once,
            None if !builder.is_weighted() => Order::InOrder,
            Some(OrderChoice::Random) | None => Order::Random,
        };
        let list = builder.finish(order, seed).map_err(|error| Usage(error.to_string()))?;
        http.list = Some(Arc::new(list));
        Ok(replay)
    }
}

/// Reads a file, and shows its bytes to a digest.
struct Digested<'a, R> {
    inner: R,
    digest: Option<&'a RefCell<Digest>>,
}

impl<R: Read> Read for Digested<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if let Some(digest) = self.digest {
            digest.borrow_mut().update(buffer.get(..count).unwrap_or_default());
        }
        Ok(count)
    }
}

fn open<'a>(
    path: &Path,
    digest: Option<&'a RefCell<Digest>>,
) -> anyhow::Result<BufReader<Digested<'a, GivenFile>>> {
    let inner = GivenFile::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 16, Digested { inner, digest }))
}

/// The longest body in a file of its own.
const LONGEST_BODY: u64 = 64 << 20;

fn read_body(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GivenFile::open(path)?.take(LONGEST_BODY + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_BODY {
        return Err(io::Error::other(format!(
            "it is longer than {} MiB, which is the limit of such a body: name a shorter one",
            LONGEST_BODY >> 20
        )));
    }
    Ok(bytes)
}

/// A secret, or the first line of the file that has it.
fn secret(text: &str) -> anyhow::Result<String> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let bytes = given::read(Path::new(file))?;
    let text = String::from_utf8(bytes).map_err(|_| Usage(format!("{file} is not text")))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Says which parts of a file are not sent.
fn say_what_is_left_out(path: &Path, found: &Found) {
    let file = path.display();
    let requests = |count: u64| number::several(count, "request");
    if found.bodiless > 0 {
        let count = requests(found.bodiless);
        common::say(format_args!("{file}: left out {count}, because a log does not have bodies"));
    }
    if found.elsewhere > 0 {
        let count = requests(found.elsewhere);
        common::say(format_args!("{file}: left out {count} to hosts other than the first one's"));
    }
    if let Some(first) = &found.first_unreadable {
        let count = number::several(found.unreadable, "line");
        common::say(format_args!("left out {count} without a request; the first: {first}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_a_file_of_its_own_has_a_limit() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for (length, fits) in [(LONGEST_BODY, true), (LONGEST_BODY + 1, false)] {
            file.as_file().set_len(length).expect("a sparse file");
            let read =
                read_body(file.path()).map(|body| body.len() as u64).map_err(|error| error.to_string());
            match fits {
                true => assert_eq!(read, Ok(length)),
                false => assert!(read.expect_err("too long").contains("it is longer than 64 MiB")),
            }
        }
    }
}
