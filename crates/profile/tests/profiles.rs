//! Profiles of real processes. Where the kernel refuses to sample, or a compiler is missing, a test says so and ends.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::time::Duration;

use common::{Started, allowed, compile, start};
use profile::{Kind, Options, Profile, Profiler, Refused, Stack, Symbols};

/// Two functions that share the time 70 to 30.
const SHARES: &str = r"
static volatile unsigned sink;
__attribute__((noinline)) void spin(unsigned n) { for (unsigned i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void seventy(void) { for (int i = 0; i < 7; i++) spin(20000); sink++; }
__attribute__((noinline)) void thirty(void) { for (int i = 0; i < 3; i++) spin(20000); sink++; }
int main(void) { for (;;) { seventy(); thirty(); } }
";

/// Spends about half of its time in the kernel, and waits for a third.
const IN_KERNEL: &str = r#"
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned sink;
static char bytes[1 << 20];
static double used(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void spin(void) { for (unsigned i = 0; i < 20000; i++) sink++; }
int main(void) {
    int zero = open("/dev/zero", O_RDONLY);
    for (;;) {
        double began = used();
        while (used() < began + 0.01) spin();
        began = used();
        while (used() < began + 0.01) if (read(zero, bytes, sizeof bytes) <= 0) return 1;
        usleep(10000);
    }
}
"#;

/// Spends its time in one method.
const JAVA: &str = r#"
public class Spin {
    static volatile int sum;
    static void checkToken(int n) { for (int i = 0; i < n; i++) sum = sum * 31 + i; }
    public static void main(String[] none) { for (;;) checkToken(100000); }
}
"#;

/// Starts a thread, a process, and a process that ends soon, after a line arrives. The child ends with its parent.
const LATER: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned sink;
static double used(clockid_t id) { struct timespec t; clock_gettime(id, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void *in_thread(void *none) { for (;;) sink++; return none; }
__attribute__((noinline)) void in_child(pid_t parent) { while (getppid() == parent) for (int i = 0; i < 1000000; i++) sink++; }
__attribute__((noinline)) void in_brief_child(void) {
    while (used(CLOCK_PROCESS_CPUTIME_ID) < 0.2) for (int i = 0; i < 1000000; i++) sink++;
}
int main(void) {
    pthread_t thread;
    pid_t parent = getpid();
    getchar();
    pthread_create(&thread, 0, in_thread, 0);
    if (fork() == 0) { in_child(parent); return 0; }
    pid_t brief = fork();
    if (brief == 0) { in_brief_child(); _exit(0); }
    waitpid(brief, 0, 0);
    puts("done");
    fflush(stdout);
    pause();
}
"#;

/// Calls itself until the stack is deeper than the kernel walks.
const DEEP: &str = r"
static volatile unsigned sink;
__attribute__((noinline)) unsigned down(unsigned n) {
    if (n == 0) for (;;) sink++;
    return down(n - 1) + sink;
}
int main(void) { return down(300); }
";

/// `None` where the kernel does not let us sample.
fn begin(process: &Started) -> Option<Profiler> {
    allowed(Profiler::begin(&[process.0.id()], &Options::default()))
}

fn profile(process: &Started, symbols: &mut Symbols) -> Option<Profile> {
    sampled(process, &Options::default(), symbols)
}

/// Half a second of a process, and more where other programs leave it little time.
fn sampled(process: &Started, options: &Options, symbols: &mut Symbols) -> Option<Profile> {
    // It may take long on a busy machine.
    symbols.prepare(&[process.0.id()]);
    let mut all = Vec::new();
    for _ in 0..60 {
        let profiler = allowed(Profiler::begin(&[process.0.id()], options))?;
        std::thread::sleep(Duration::from_millis(500));
        all.push(profiler.finish(symbols));
        if all.iter().map(|profile| profile.samples).sum::<u64>() >= 200 {
            break;
        }
    }
    let sum = Profile::merge(&all).unwrap();
    assert_eq!(sum.samples, sum.stacks.iter().map(|stack| stack.count).sum::<u64>());
    assert_eq!(sum.period_ns, 1_003_009);
    Some(sum)
}

/// The share of the samples in which a function ran or had called what ran.
fn share(profile: &Profile, name: &str) -> f64 {
    let times = profile.self_and_inclusive();
    let inclusive: u64 = times.iter().filter(|time| time.name == name).map(|time| time.inclusive).sum();
    inclusive as f64 / profile.samples.max(1) as f64
}

#[test]
fn two_functions_have_their_shares() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), SHARES) else { return };
    let Some(process) = start(&mut Command::new(&program)) else { return };
    let Some(profile) = profile(&process, &mut Symbols::new()) else { return };
    let (seventy, thirty) = (share(&profile, "seventy"), share(&profile, "thirty"));
    assert!((0.5..0.9).contains(&seventy) && (0.1..0.5).contains(&thirty), "{seventy} {thirty}: {profile:?}");
    assert!(share(&profile, "main") > 0.8, "{profile:?}");
    let spin = profile.frames.iter().find(|frame| frame.name == "spin").unwrap();
    assert_eq!(
        (spin.kind, spin.module.as_str(), spin.line),
        (Kind::User, program.to_str().unwrap(), Some(3))
    );
    assert!(spin.file.as_ref().is_some_and(|file| file.ends_with("program.c")), "{spin:?}");
    assert!(profile::formats::folded(&profile).contains("main;seventy;spin"));
}

#[test]
fn the_kernel_that_may_not_be_seen_keeps_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), IN_KERNEL) else { return };
    let Some(process) = start(&mut Command::new(&program)) else { return };
    let mut symbols = Symbols::new();
    let shares = [true, false].map(|kernel| {
        let options = Options { kernel, ..Options::default() };
        let profile = sampled(&process, &options, &mut symbols)?;
        let of_kernel = |stack: &&Stack| profile.frames_of(stack).any(|frame| frame.kind == Kind::Kernel);
        let samples: u64 = profile.stacks.iter().filter(of_kernel).map(|stack| stack.count).sum();
        assert!(share(&profile, "spin") > 0.1, "{profile:?}");
        Some((profile.kernel, samples as f64 / profile.samples as f64))
    });
    let [Some((seen, truth)), Some((hidden, share))] = shares else { return };
    assert!(!hidden && (0.2..0.8).contains(&share), "{share}");
    // This user may not see the kernel at all.
    assert!(!seen || (truth - share).abs() < 0.15, "{truth} {share}");
}

#[test]
fn another_profiler_sees_the_same_shares() {
    let folder = tempfile::tempdir().unwrap();
    let functions = 1..=10;
    let body = |n: u32| {
        format!(
            "__attribute__((noinline)) void of{n}(void) {{ for (int i = 0; i < {n} * 5000; i++) sink++; }}\n"
        )
    };
    let calls: String = functions.clone().map(|n| format!("of{n}();")).collect();
    let source = format!(
        "static volatile unsigned sink;\n{}int main(void) {{ for (;;) {{ {calls} }} }}",
        functions.clone().map(body).collect::<String>()
    );
    let Some(program) = compile(folder.path(), &source) else { return };
    let Some(process) = start(&mut Command::new(&program)) else { return };
    let data = folder.path().join("perf.data");
    let record = ["record", "-q", "-e", "cpu-clock", "-F", "997", "-p", &process.0.id().to_string(), "-o"];
    let Some(mut other) = start(Command::new("perf").args(record).arg(&data).args(["--", "sleep", "3"]))
    else {
        return;
    };
    let Some(profile) = profile(&process, &mut Symbols::new()) else { return };
    if !other.0.wait().unwrap().success() {
        println!("skipped: perf cannot sample here");
        return;
    }
    let report = ["report", "--stdio", "-q", "--sort", "symbol", "-i"];
    let report = Command::new("perf").args(report).arg(&data).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    for n in functions {
        let name = format!("of{n}");
        let line = report.lines().find(|line| line.split_ascii_whitespace().nth(2) == Some(&*name));
        let percent = line
            .and_then(|line| line.split_once('%'))
            .and_then(|(percent, _)| percent.trim().parse::<f64>().ok());
        let theirs = percent.unwrap_or_else(|| panic!("{name}: {report}")) / 100.0;
        let ours = share(&profile, &name);
        // Of 200 samples, the largest share has a standard error of 0.03.
        assert!((ours - theirs).abs() < 0.1, "{name}: {ours} {theirs}");
    }
}

#[test]
fn a_program_that_was_replaced_keeps_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), SHARES) else { return };
    let Some(process) = start(&mut Command::new(&program)) else { return };
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "another").unwrap();
    let Some(profile) = profile(&process, &mut Symbols::new()) else { return };
    // Without CAP_SYS_ADMIN the old file cannot be opened, and only its path is known.
    let known = profile.frames.iter().any(|frame| frame.name == "seventy");
    assert!(known || !rustix::process::geteuid().is_root(), "{profile:?}");
    assert!(
        profile.frames.iter().any(|frame| Some(frame.module.as_str()) == program.to_str()),
        "{profile:?}"
    );
}

#[test]
fn threads_and_processes_that_begin_later_are_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), LATER) else { return };
    let Some(mut process) = start(&mut Command::new(&program)) else { return };
    let Some(profiler) = begin(&process) else { return };
    process.0.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
    let profile = profiler.finish(&mut Symbols::new());
    for name in ["in_thread", "in_child", "in_brief_child"] {
        assert!(share(&profile, name) > 0.02, "{name}: {profile:?}");
    }
    // The brief child used 0.2 s. If samples of inherited events counted twice, there would be 400.
    let brief = share(&profile, "in_brief_child") * profile.samples as f64;
    assert!((60.0..300.0).contains(&brief), "{brief}: {profile:?}");
}

#[test]
fn a_process_that_has_ended_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), SHARES) else { return };
    let Some(mut process) = start(&mut Command::new(&program)) else { return };
    let Some(profiler) = begin(&process) else { return };
    std::thread::sleep(Duration::from_millis(300));
    process.0.kill().unwrap();
    process.0.wait().unwrap();
    let profile = profiler.finish(&mut Symbols::new());
    assert_eq!(profile.samples, profile.stacks.iter().map(|stack| stack.count).sum::<u64>());
    let gone = Profiler::begin(&[process.0.id()], &Options::default());
    assert!(matches!(gone, Err(Refused::NoProcess(_))), "{gone:?}");
}

#[test]
fn a_deep_stack_says_that_it_is_deeper() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), DEEP) else { return };
    let Some(process) = start(&mut Command::new(&program)) else { return };
    let Some(profile) = profile(&process, &mut Symbols::new()) else { return };
    assert!(share(&profile, "[deeper frames]") > 0.8 && share(&profile, "down") > 0.8, "{profile:?}");
    assert!(profile.stacks.iter().all(|stack| stack.frames.len() <= 128 + 32), "{profile:?}");
}

#[test]
fn more_stacks_than_there_is_room_for_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), SHARES) else { return };
    let Some(process) = start(&mut Command::new(&program)) else { return };
    let options = Options { stacks: 1, ..Options::default() };
    if begin(&process).is_none() {
        return;
    }
    let profiler = Profiler::begin(&[process.0.id()], &options).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let profile = profiler.finish(&mut Symbols::new());
    // One stack, one for the others, and the kernel's where it may not be seen.
    assert!(profile.stacks.len() <= 3, "{profile:?}");
    assert_eq!(profile.samples, profile.stacks.iter().map(|stack| stack.count).sum::<u64>());
}

#[test]
fn an_interpreter_without_a_map_has_functions_of_its_own_only() {
    let Some(process) = start(Command::new("python3").args(["-c", "while True: pass"])) else { return };
    let mut symbols = Symbols::new();
    let Some(profile) = profile(&process, &mut symbols) else { return };
    assert!(profile.frames.iter().any(|frame| frame.module.contains("python")), "{profile:?}");
    assert!(profile.frames.iter().all(|frame| frame.kind != Kind::Runtime), "{profile:?}");
    assert!(!profile::formats::pprof(&profile).is_empty());
}

#[test]
fn a_jvm_is_asked_for_the_names_of_its_methods() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Spin.java");
    std::fs::write(&source, JAVA).unwrap();
    // The source is compiled and started by the same command.
    let Some(process) = start(Command::new("java").arg(&source)) else { return };
    let mut all = Vec::new();
    for _ in 0..60 {
        let Some(profiler) = begin(&process) else { return };
        std::thread::sleep(Duration::from_millis(500));
        let profile = profiler.finish(&mut Symbols::new());
        if profile.frames.iter().any(|frame| frame.name.contains("Spin.checkToken")) {
            return;
        }
        all.push(profile);
    }
    panic!("{all:?}");
}

#[test]
fn dropping_a_profiler_ends_it() {
    let Some(process) = start(Command::new("sleep").arg("60")) else { return };
    drop(begin(&process));
}
