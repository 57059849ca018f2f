//! Samples of programs that are known to use CPU and memory, though not how much.

mod common;

use std::time::Duration;

use common::{Home, eventually, late};

#[test]
fn busy_programs_use_what_their_children_use() {
    let home = Home::new();
    let manifest = home.client("(while :; do :; done) & echo up; wait");
    let running = home.start(&manifest, None).unwrap();
    running.line(Duration::from_secs(60)).unwrap();
    eventually("a sample sees it", || {
        let mut sampler = running.sampler();
        sampler.mark();
        std::thread::sleep(Duration::from_millis(50));
        let used = sampler.finish();
        assert!(used.peak_pss_bytes > 0 && used.peak_rss_bytes >= used.peak_pss_bytes / 2, "{used:?}");
        let highest = used.pss_course.iter().map(|(_, bytes)| *bytes).max();
        assert_eq!(highest, Some(used.peak_pss_bytes), "{used:?}");
        used.cpu_s > 0.0 && used.context_switches > 0
    });
    running.stop();
}

#[test]
fn children_that_ended_are_counted() {
    let home = Home::new();
    let busy = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done";
    let manifest =
        home.client(&format!("read go; (exec sh -c \"{}\"); echo done; read end", busy.replace('$', "\\$")));
    let mut running = home.start(&manifest, None).unwrap();
    let mut sampler = running.sampler();
    sampler.mark();
    running.write_line("go").unwrap();
    assert_eq!(running.line(Duration::from_secs(60)).unwrap().as_deref(), Some("done"));
    // The shell itself only waits. These are its child's ticks.
    let used = sampler.finish();
    assert!(used.cpu_s > 0.02, "{used:?}");
}

#[test]
fn a_program_that_has_ended_uses_nothing() {
    let home = Home::new();
    let running = home.start(&home.client("exit 0"), None).unwrap();
    let mut sampler = running.sampler();
    running.wait_exit(late(), &common::CALM).unwrap();
    sampler.mark();
    running.stop();
    let used = sampler.finish();
    assert!(used.cpu_s.abs() < f64::EPSILON && used.peak_pss_bytes == 0, "{used:?}");
}
