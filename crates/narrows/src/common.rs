//! Helpers of several verbs: parsing of sizes and durations, files that are written atomically, Ctrl-C, and the exit of
//! the program.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
pub use load::duration;
use miette::MietteHandlerOpts;
use printable::printable_lines;
use systems::{CatalogError, Fleeting, InputError, trace};
use textwrap::{Options, WordSeparator, WordSplitter};

use crate::given::GivenSink;

/// The exit code after Ctrl-C, as in shells: 128 plus the signal's number.
pub const INTERRUPTED: u8 = 130;

/// The kernel interface that carries the I/O.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReactorChoice {
    /// io_uring, or epoll if the kernel refuses it.
    #[default]
    Auto,
    /// io_uring only.
    Uring,
    /// epoll only.
    Epoll,
}

impl From<ReactorChoice> for reactor::Backend {
    fn from(choice: ReactorChoice) -> Self {
        match choice {
            ReactorChoice::Auto => Self::Auto,
            ReactorChoice::Uring => Self::Uring,
            ReactorChoice::Epoll => Self::Epoll,
        }
    }
}

/// How a verb ends.
pub type End = anyhow::Result<ExitCode>;

/// Prints to standard output.
pub fn print(text: impl AsRef<[u8]>) -> std::io::Result<()> {
    std::io::stdout().lock().write_all(text.as_ref())
}

/// Prints lines with texts of others, such as manifests, to standard output.
pub fn print_lines(text: impl AsRef<str>) -> std::io::Result<()> {
    print(printable_lines(text.as_ref()))
}

/// A file that is written completely or not at all: it is written under another name, and renamed when it is on
/// the disk.
pub struct AtomicFile {
    path: PathBuf,
    to: To,
}

/// Where the bytes of an [`AtomicFile`] go.
enum To {
    /// A file that is renamed when it is written.
    File(File, Fleeting),
    /// A pipe or a device.
    Sink(GivenSink),
}

impl AtomicFile {
    /// Opens the file before the work whose result it gets, so that an error is known early.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let context = || format!("cannot write {}", path.display());
        let known = std::fs::metadata(path).ok();
        if known.as_ref().is_some_and(|known| !known.is_file()) {
            let sink = GivenSink::open(path).with_context(context)?;
            return Ok(Self { path: path.to_owned(), to: To::Sink(sink) });
        }
        // Write to the target of a symbolic link, so that the link is kept.
        let path = if known.is_some() { path.canonicalize().with_context(context)? } else { path.to_owned() };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let temporary = Fleeting::new(path.with_file_name(name));
        let file = File::create(temporary.path()).with_context(context)?;
        if let Some(known) = known {
            let _ = file.set_permissions(known.permissions());
        }
        Ok(Self { path, to: To::File(file, temporary) })
    }

    /// Writes the text and gives the file its name.
    pub fn write(self, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let written = match self.to {
            To::File(mut file, temporary) => file
                .write_all(text.as_ref())
                .and_then(|()| file.sync_all())
                .and_then(|()| std::fs::rename(temporary.path(), &self.path)),
            To::Sink(mut sink) => sink.write_all(text.as_ref()),
        };
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Prints lines to standard error and ignores failures. `eprintln!` would panic if the reader has gone, and the work
/// in progress would be lost. They may quote files and programs, and so lose what would control the terminal.
pub fn say(line: impl std::fmt::Display) {
    say_as_it_is(printable_lines(&line.to_string()));
}

fn say_as_it_is(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A line on standard error that changes in place. `template` is indicatif's.
pub fn status_line(template: &str, steps: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::stderr());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The terminal's width in columns; 100 if standard output is no terminal.
pub fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col);
    if columns == 0 { 100 } else { usize::from(columns) }
}

/// Wraps text at `width` columns. The first line begins with `first`, the others with `further`. Words are not broken,
/// nor is text in backticks, so that a command can be copied.
pub fn wrapped(text: &str, width: usize, first: &str, further: &str) -> String {
    const GLUE: &str = "\u{a0}";
    let parts = text.split('`').enumerate();
    let glue = |(index, part): (usize, &str)| match index % 2 {
        1 => part.replace(' ', GLUE),
        _ => part.to_owned(),
    };
    let glued: Vec<String> = parts.map(glue).collect();
    let options = Options::new(width)
        .initial_indent(first)
        .subsequent_indent(further)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(&glued.join("`"), options).replace(GLUE, " ")
}

/// Whether to use colours: standard output is a terminal and NO_COLOR is not set (<https://no-color.org>).
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A usage error that the parser of the command line cannot detect.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The same error; one in the text of an argument becomes a usage error, which is still shown with its place.
pub fn of_usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    match error.is::<InputError>() {
        true => error.context(Usage("an argument is wrong".to_owned())),
        false => error,
    }
}

/// Begins the trace of what is started, asked and stopped, if the environment names a file for it.
pub fn begin_trace() -> anyhow::Result<()> {
    match std::env::var_os(trace::VARIABLE).filter(|name| !name.is_empty()) {
        None => Ok(()),
        Some(name) => trace::begin(Path::new(&name))
            .with_context(|| format!("{}={}: cannot write there", trace::VARIABLE, name.display())),
    }
}

/// Prints an error and chooses the exit code: 130 after a signal, 2 for a usage error, 1 for other errors.
pub fn exit(end: End) -> ExitCode {
    match end {
        Ok(code) => code,
        Err(error) => {
            let broken_pipe = error
                .chain()
                .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
                .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe);
            if is_interrupted() && broken_pipe {
                // Ctrl-C ended the reader of our output, too.
                return ExitCode::from(INTERRUPTED);
            } else if broken_pipe {
                // The reader of our output has read enough, as in `narrows report last | head`.
                return ExitCode::SUCCESS;
            }
            let code = if is_interrupted() {
                // What was read or waited for is not there because of the signal.
                ExitCode::from(INTERRUPTED)
            } else if error.is::<Usage>() {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            };
            // Names of systems contain hyphens. Do not break them, so that they can be copied.
            let handler = || MietteHandlerOpts::new().word_splitter(WordSplitter::NoHyphenation).build();
            let _ = miette::set_hook(Box::new(move |_| Box::new(handler())));
            // Errors in files and arguments are shown with their place and a remedy.
            match error.downcast::<InputError>() {
                // Without a text the renderer would not even show the file's name.
                Ok(input) if input.position().is_none() => say(format_args!("narrows: {}", input.one_line())),
                // What it shows of files is printable, and it has colours.
                Ok(input) => say_as_it_is(format_args!("{:?}", miette::Report::new(input))),
                Err(error) => match error.downcast::<CatalogError>() {
                    Ok(catalog) => say_as_it_is(format_args!("{:?}", miette::Report::new(catalog))),
                    Err(error) => say(format_args!("narrows: {error:#}")),
                },
            }
            code
        }
    }
}

/// A seed that differs from run to run. It is saved, so that a run can be repeated.
pub fn new_seed() -> u64 {
    since_epoch().as_nanos() as u64 % 1_000_000
}

/// The time since 1970.
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The arguments quoted for a shell, so that they can be typed again.
pub fn command_line(words: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%{}".contains(c);
    let quoted = words.map(|word| {
        let bare = !word.is_empty() && word.chars().all(plain);
        if bare { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// What [`cancellation`] watches with.
static CANCEL: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether the user interrupted, or something asked the program to end. Never so before [`cancellation`], because a signal then ends
/// the program.
pub fn is_interrupted() -> bool {
    CANCEL.get().is_some_and(|cancel| cancel.load(Ordering::Relaxed))
}

/// A flag that is set on Ctrl-C and SIGTERM. A second Ctrl-C ends the program at once.
pub fn cancellation() -> anyhow::Result<Arc<AtomicBool>> {
    if let Some(cancel) = CANCEL.get() {
        return Ok(Arc::clone(cancel));
    }
    let cancel = Arc::clone(CANCEL.get_or_init(Arc::default));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&cancel))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&cancel)))
            .context("cannot watch for Ctrl-C")?;
    }
    Ok(cancel)
}

/// How long a result may take after Ctrl-C.
const AFTER_INTERRUPTION: Duration = Duration::from_secs(5);

/// Does work that takes long if its input is large. None if it is not done within five seconds after the user interrupts. Its thread
/// then goes on until the program ends.
///
/// # Errors
/// The thread cannot be started.
pub fn unless_interrupted<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<Option<T>> {
    // As large as the stack of the first thread usually is.
    const STACK: usize = 8 << 20;
    let worker = std::thread::Builder::new().name("findings".to_owned()).stack_size(STACK);
    let worker = worker.spawn(work).context("cannot start a thread")?;
    Ok(result(worker, is_interrupted, AFTER_INTERRUPTION))
}

/// What a thread returns. None if the user interrupted, and it was not there within `patience`.
fn result<T>(worker: JoinHandle<T>, is_interrupted: fn() -> bool, patience: Duration) -> Option<T> {
    let mut interrupted = None;
    while !worker.is_finished() {
        if is_interrupted() && interrupted.get_or_insert_with(Instant::now).elapsed() >= patience {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Wakes a sleep as soon as Ctrl-C or SIGTERM arrives.
pub struct Alarm(UnixStream);

impl Alarm {
    /// Call [`cancellation`] before it, so that its flag is set when the sleep ends.
    pub fn new() -> anyhow::Result<Self> {
        let (sleeper, waker) = UnixStream::pair().context("cannot watch for Ctrl-C")?;
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            waker
                .try_clone()
                .and_then(|waker| signal_hook::low_level::pipe::register(signal, waker))
                .context("cannot watch for Ctrl-C")?;
        }
        Ok(Self(sleeper))
    }

    /// Sleeps for `time`, or until a signal arrives.
    pub fn sleep(&mut self, time: Duration) {
        // Its errors are the timeout and an interruption, and both end the sleep.
        let _ = self.0.set_read_timeout(Some(time)).and_then(|()| self.0.read(&mut [0; 8]));
    }
}

/// Parses a share such as a threshold.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a share above 0 and at most 1, such as 0.05 for 5 %".to_owned())
}

/// Parses a size in bytes: `64K`, `1M`, `1G` (powers of 1024), or a plain number.
pub fn size(text: &str) -> Result<u64, String> {
    systems::knob::parse_size(text)
        .and_then(|bytes| u64::try_from(bytes).map_err(|_| "a size cannot be negative".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_waited_for_unless_the_user_interrupts() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let endless = std::thread::spawn(move || ended.recv());
        assert!(result(endless, || true, Duration::ZERO).is_none());
        drop(end);
        assert_eq!(result(std::thread::spawn(|| 1), || false, Duration::ZERO), Some(1));
        assert_eq!(result(std::thread::spawn(|| 2), || true, Duration::from_secs(600)), Some(2));
    }

    #[test]
    fn a_command_line_can_be_typed_again() {
        let shown = |words: &[&str]| command_line(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(shown(&["run", "frames", "--set", "buffer=1460,64K"]), "run frames --set buffer=1460,64K");
        assert_eq!(shown(&["run", "my lab/a.toml", "it's", ""]), r"run 'my lab/a.toml' 'it'\''s' ''");
    }

    #[test]
    fn lines_are_wrapped_between_words_but_not_within_commands() {
        let text = "of go-client `sysctl -w a=1` or `b c`, then";
        assert_eq!(wrapped(text, 14, "> ", "  "), "> of go-client\n  `sysctl -w a=1`\n  or `b c`,\n  then");
    }
}
