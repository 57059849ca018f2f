//! What `narrows load` refuses before it connects.

use crate::support::load;

#[test]
fn a_broken_check_is_a_usage_error_that_names_the_place() {
    let url = "http://127.0.0.1:1/";
    let says = ["json.a>", "--expect", "character 8: a value is expected"];
    load(&[url, "--expect", "json.a>"]).code(2).says(&says);
    let words = [url, "--expect", "status=404", "--expect-status", "200"];
    load(&words).code(2).says(&["the checks of the status leave no status"]);
    load(&["frames://127.0.0.1:1", "--expect", "length=1"]).code(2).says(&["not with frames"]);
    load(&["frames://127.0.0.1:1", "--compressed"]).code(2).says(&["not with frames"]);
}

#[test]
fn objectives_that_need_a_longer_window_are_refused_with_its_length() {
    let words = ["-d", "300ms", "--find-max-rate", "--slo", "p99.9<1s"];
    let ended = load(&[&["http://127.0.0.1:1/"], &words[..]].concat()).code(2);
    ended.says(&["the objectives need 10000 answers", "-d 2.8s or more", "--rate 9167 or more"]);
}

#[test]
fn options_that_contradict_the_target_or_each_other_are_refused() {
    let cases: [(&[&str], &str); 8] = [
        (&["http://127.0.0.1:1/", "-d", "0s"], "-d 0s measures nothing"),
        (&["http://127.0.0.1:1/", "--cores", "4096"], "may not run on core 4096"),
        (&["http://127.0.0.1:1/", "--frame-size", "10"], "only with frames"),
        (&["frames://127.0.0.1:1", "--body-size", "5"], "work only with requests"),
        (&["frames://127.0.0.1:1", "--close"], "work only with requests"),
        (
            &["http://127.0.0.1:1/", "--find-max-rate", "--slo", "errors<1%", "--rate", "1k..2k"],
            "must not be a ramp",
        ),
        (
            &["http://127.0.0.1:1/", "--find-max-rate", "--slo", "errors<1%", "--hlog", "x"],
            "cannot be used with",
        ),
        (&["http://127.0.0.1:1/", "--close", "--pipeline", "2"], "cannot be used with --close"),
    ];
    for (words, why) in cases {
        load(words).code(2).says(&[why]);
    }
}
