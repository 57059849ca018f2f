//! A link with a rate and a delay: its TCP is the limit, and not the system. `scripts/machines run --rate 1gbit --delay 5ms` makes it.

use crate::support::home::Home;
use crate::support::{narrows, run, squeezed};
use crate::{GENERATORS, say, skip};

#[test]
#[ignore = "needs the machines of scripts/machines, with a delay"]
fn o_far_machines_are_limited_by_the_way() {
    let seen = run(&mut narrows(["doctor", "--json", "--gen", "ssh://gen1"])).code(0).json();
    // Each packet of a machine waits for 5 ms, and those of this place do not.
    if seen["machines"][0]["path"]["round_trip_ns"].as_f64().is_none_or(|ns| ns < 4.5e6) {
        return skip("a link with 5 ms", "the machines were made without --delay 5ms");
    }
    let home = Home::new();
    let serve = format!("{} serve --host {{address}} -p {{port}}", crate::support::NARROWS);
    let machines = ["--sut", "ssh://sut", "--gen", GENERATORS];
    let (trip, tcp, full) = (
        "of the time to an answer was the way there and back",
        "of the time to an answer was spent on the network: TCP needs",
        "the network carried",
    );
    for (what, connections, body, one_of) in [
        ("GET", "12", None, &[trip][..]),
        ("64 KiB each way, few connections", "3", Some("64K"), &[tcp]),
        ("1 MiB each way, few connections", "3", Some("1M"), &[tcp, full]),
        // A full link loses packets, and TCP may then wait for longer than anything that was measured before.
        ("64 KiB each way, many connections", "48", Some("64K"), &[]),
        ("1 MiB each way, many connections", "48", Some("1M"), &[]),
    ] {
        let echo: Vec<&str> = body.iter().flat_map(|size| ["--path", "/echo", "--body-size", size]).collect();
        let words = ["try", &serve, "-c", connections, "--rounds", "3", "-d", "2s", "--warmup", "1s"];
        let ended = home.run([&words[..], &echo, &machines].concat()).code(0);
        let said = squeezed(&ended.stdout);
        let warning = said.split("warning: ").find(|part| part.contains(" way") || part.contains("network"));
        let warning = warning.and_then(|warning| warning.split(" Remedy:").next());
        let figure = ended.stdout.lines().find(|line| line.starts_with("narrows "));
        say(&format!("{what}: {}; {}", warning.unwrap_or("no doubt"), figure.unwrap_or_default()));
        assert!(one_of.is_empty() || one_of.iter().any(|words| said.contains(words)), "{what}: {ended:#?}");
    }
}
