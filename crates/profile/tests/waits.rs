//! Where real processes wait. Where the kernel refuses to sample, or a compiler is missing, a test says so
//! and ends.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::Command;

use common::{Started, allowed, compile, start};
use profile::{Options, Symbols, Wait, Waiter, Waits};

/// A thread for each kind of wait, after a line arrives. `done` says that all have ended.
const WAITS: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t locked;
static int sockets[2], pipes[2], full[2], listener;
static struct sockaddr_in address;
static const char *path;
/* Sleeps go on after the few signals that there are. */
__attribute__((noinline)) void rest(void) { struct timespec t = {0, 5000000}; while (nanosleep(&t, &t) != 0); }
/* Those that others wait for begin late, so that the others wait on a busy machine, too. */
void late(void) { for (int i = 0; i < 40; i++) rest(); }
__attribute__((noinline)) void *sleeper(void *n) { for (int i = 0; i < 20; i++) rest(); return n; }
__attribute__((noinline)) void *holder(void *n) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(&locked);
        rest();
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&locked);
    }
    return n;
}
__attribute__((noinline)) void *locker(void *n) {
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&locked);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&locked);
    }
    return n;
}
__attribute__((noinline)) void *receiver(void *n) { char c; for (int i = 0; i < 20; i++) recv(sockets[0], &c, 1, 0); return n; }
__attribute__((noinline)) void *reader(void *n) { char c; for (int i = 0; i < 20; i++) read(pipes[0], &c, 1); return n; }
__attribute__((noinline)) void *feeder(void *n) {
    late();
    for (int i = 0; i < 20; i++) { rest(); write(sockets[1], "x", 1); write(pipes[1], "x", 1); }
    return n;
}
__attribute__((noinline)) void *sender(void *n) { char c[65536] = {0}; for (int i = 0; i < 40; i++) send(full[0], c, sizeof c, 0); return n; }
__attribute__((noinline)) void *drain(void *n) {
    static char c[65536];
    late();
    for (size_t got = 0; got < 40 * sizeof c;) { rest(); got += recv(full[1], c, sizeof c, 0); }
    return n;
}
__attribute__((noinline)) void *accepter(void *n) { for (int i = 0; i < 5; i++) close(accept(listener, 0, 0)); return n; }
__attribute__((noinline)) void *connecter(void *n) {
    late();
    for (int i = 0; i < 5; i++) {
        rest();
        int s = socket(AF_INET, SOCK_STREAM, 0);
        connect(s, (void *)&address, sizeof address);
        close(s);
    }
    return n;
}
__attribute__((noinline)) void *syncer(void *n) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 20; i++) { pwrite(file, &i, sizeof i, 0); fsync(file); }
    return n;
}
__attribute__((noinline)) void *poller(void *n) {
    struct epoll_event event;
    int epoll = epoll_create1(0);
    for (int i = 0; i < 20; i++) epoll_wait(epoll, &event, 1, 5);
    return n;
}
__attribute__((noinline)) void *parent(void *n) { if (fork() == 0) { usleep(100000); _exit(0); } wait(0); return n; }
__attribute__((noinline)) void *spinner(void *n) {
    volatile unsigned sink = 0;
    for (unsigned i = 0; i < 50000000; i++) sink += i;
    return n;
}
int main(int count, char **words) {
    void *(*all[])(void *) = {sleeper, holder, locker, receiver, reader, feeder, sender, drain, accepter, connecter, syncer,
                              poller, parent, spinner};
    enum { THREADS = sizeof all / sizeof *all };
    pthread_t threads[THREADS];
    socklen_t size = sizeof address;
    path = count > 1 ? words[1] : "file";
    pthread_barrier_init(&locked, 0, 2);
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    socketpair(AF_UNIX, SOCK_STREAM, 0, full);
    pipe(pipes);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, (void *)&address, size);
    getsockname(listener, (void *)&address, &size);
    listen(listener, 5);
    getchar();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, all[i], 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    puts("done");
    fflush(stdout);
    pause();
}
"#;

/// Two processes that hand a byte to and fro, as fast as they can.
const SWITCHES: &str = r"
#include <unistd.h>
int main(void) {
    int there[2], back[2];
    char c = 0;
    pipe(there);
    pipe(back);
    if (fork() == 0) {
        close(there[1]); /* So that a read ends with the parent. */
        while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1);
        return 0;
    }
    while (write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1);
}
";

fn begin(process: &Started) -> Option<Waiter> {
    allowed(Waiter::begin(&[process.0.id()], &Options::default()))
}

/// The program's waits from before its threads begin until all have ended.
fn waits(options: &Options) -> Option<Waits> {
    let mut symbols = Symbols::new();
    // On a busy machine the names may take longer than `finish` waits. The next time they are there.
    for _ in 0..5 {
        let waits = watch(options, &mut symbols)?;
        if waits.frames.iter().any(|frame| frame.name == "sleeper") {
            return Some(waits);
        }
    }
    panic!("the program has no names");
}

fn watch(options: &Options, symbols: &mut Symbols) -> Option<Waits> {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), WAITS)?;
    let mut process = start(Command::new(&program).arg(folder.path().join("file")))?;
    symbols.prepare(&[process.0.id()]);
    let waiter = allowed(Waiter::begin(&[process.0.id()], options))?;
    process.0.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
    Some(waiter.finish(symbols))
}

/// The blocked time of one kind of wait, in milliseconds, and how often threads blocked.
fn blocked(waits: &Waits, wait: &Wait) -> (u64, u64) {
    let times = waits.by_wait();
    let times = times.iter().filter(|time| time.wait == *wait);
    times.fold((0, 0), |(ms, count), time| (ms + time.blocked_ns / 1_000_000, count + time.count))
}

#[test]
fn each_kind_of_wait_is_told() {
    let Some(waits) = waits(&Options::default()) else { return };
    assert_eq!(waits.lost, 0, "{waits:?}");
    // Without the kernel's names a socket that is read, a pipe and a file look the same.
    if !waits.kernel || waits.frames.iter().all(|frame| frame.name != "schedule") {
        println!("skipped: the kernel hides its functions");
        return;
    }
    // Times that do not depend on when other threads run: 20 sleeps in each of three threads, 40 in three,
    // and 20 timeouts.
    let least = [
        (Wait::Timer, 3 * 100 + 3 * 200),
        (Wait::Lock, 10),
        (Wait::Receive, 10),
        (Wait::Pipe, 10),
        (Wait::Send, 10),
        (Wait::Accept, 10),
        (Wait::Readiness, 80),
        (Wait::Child, 1),
    ];
    for (wait, least) in least {
        let (ms, count) = blocked(&waits, &wait);
        assert!(ms >= least && count > 0, "{wait:?}: {ms} ms in {count}: {:?}", waits.by_wait());
    }
    let total: u64 = waits.stacks.iter().map(|stack| stack.blocked + stack.preempted).sum();
    assert!(total >= waits.switches, "{total} of {}: {waits:?}", waits.switches);
}

#[test]
fn a_file_system_that_waits_for_its_disk_is_told() {
    let Some(waits) = waits(&Options::default()) else { return };
    let fsync = |name: &str| name.contains("fsync");
    let waited = waits.stacks.iter().any(|stack| {
        let mut frames = waits.frames_of(stack);
        stack.blocked > 0 && frames.any(|frame| fsync(&frame.name))
    });
    if !waited {
        println!("skipped: this file system does not wait in fsync");
        return;
    }
    assert!(blocked(&waits, &Wait::Disk).1 > 0, "{:?}", waits.by_wait());
}

#[test]
fn a_sleep_has_its_callers_and_a_thread_that_runs_is_not_blocked() {
    let Some(waits) = waits(&Options::default()) else { return };
    let times = waits.blocked_and_inclusive(None);
    let inclusive =
        |name: &str| times.iter().filter(|time| time.name == name).map(|time| time.inclusive).sum::<u64>();
    assert!(inclusive("sleeper") >= 100_000_000, "{times:?}");
    assert!(inclusive("spinner") < 50_000_000, "{times:?}");
}

#[test]
fn what_calls_a_library_without_frame_pointers_is_known() {
    let Some(waits) = waits(&Options::default()) else { return };
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: only the kernel walks stacks here");
        return;
    }
    let times = waits.by_wait();
    let callers = |wait: &Wait| -> Vec<&str> {
        times.iter().filter(|time| time.wait == *wait).filter_map(|time| time.by.as_deref()).collect()
    };
    for (wait, by) in [
        (Wait::Timer, "rest"),
        (Wait::Lock, "locker"),
        (Wait::Receive, "receiver"),
        (Wait::Pipe, "reader"),
        (Wait::Accept, "accepter"),
        (Wait::Readiness, "poller"),
        (Wait::Child, "parent"),
    ] {
        if waits.kernel || !matches!(wait, Wait::Pipe) {
            assert!(callers(&wait).contains(&by), "{wait:?}: {times:?}");
        }
    }
    // The callers of the caller are there once.
    let stacks =
        waits.stacks.iter().map(|stack| waits.frames_of(stack).map(|frame| frame.name.as_str()).collect());
    let stacks: Vec<Vec<&str>> = stacks.collect();
    let times = |stack: &Vec<&str>, name: &str| stack.iter().filter(|frame| **frame == name).count();
    let sleeping: Vec<_> = stacks.iter().filter(|stack| stack.contains(&"rest")).collect();
    assert!(!sleeping.is_empty() && sleeping.iter().all(|stack| times(stack, "rest") == 1), "{stacks:?}");
    assert!(sleeping.iter().any(|stack| times(stack, "sleeper") == 1), "{stacks:?}");
}

#[test]
fn without_the_kernel_the_functions_of_libc_tell() {
    let Some(waits) = waits(&Options { kernel: false, ..Options::default() }) else { return };
    assert!(
        !waits.kernel && waits.frames.iter().all(|frame| frame.kind != profile::Kind::Kernel),
        "{waits:?}"
    );
    for wait in [Wait::Timer, Wait::Lock, Wait::Readiness] {
        let (ms, _) = blocked(&waits, &wait);
        assert!(ms >= 10, "{wait:?}: {:?}", waits.by_wait());
    }
}

#[test]
fn a_thread_that_slept_before_and_still_sleeps_has_slept_all_the_time() {
    let Some(process) = start(Command::new("sleep").arg("60")) else { return };
    std::thread::sleep(std::time::Duration::from_millis(300));
    let Some(waiter) = begin(&process) else { return };
    std::thread::sleep(std::time::Duration::from_millis(300));
    let waits = waiter.finish(&mut Symbols::new());
    assert!(blocked(&waits, &Wait::Unknown).0 >= 250, "{waits:?}");
    assert!(waits.frames.iter().any(|frame| frame.name == "[already waiting]"), "{waits:?}");
}

#[test]
fn more_switches_than_stacks_may_be_taken_are_still_timed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), SWITCHES) else { return };
    let Some(process) = start(&mut Command::new(&program)) else { return };
    let options = Options { stacks: 1, ..Options::default() };
    // The child is there before the watch begins, and is not watched.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let Some(waiter) = allowed(Waiter::begin(&[process.0.id()], &options)) else { return };
    std::thread::sleep(std::time::Duration::from_secs(1));
    let waits = waiter.finish(&mut Symbols::new());
    assert!(waits.switches > 0 && waits.stacks.len() <= 4, "{waits:?}");
    let counted: u64 = waits.stacks.iter().map(|stack| stack.blocked + stack.preempted).sum();
    assert!(counted + waits.lost + 2 >= waits.switches, "{waits:?}");
}

#[test]
fn a_process_that_has_ended_is_refused() {
    let Some(mut process) = start(&mut Command::new("true")) else { return };
    process.0.wait().unwrap();
    assert!(matches!(
        Waiter::begin(&[process.0.id()], &Options::default()),
        Err(profile::Refused::NoProcess(_))
    ));
}
