//! What profiles cost: twice as many functions, stacks or regions take about twice the time.

use cost::is_near_linear;

use crate::Profile;
use crate::formats::{folded, pprof, speedscope};
use crate::maps::Image;
use crate::profile::tests::profile;

/// A profile of so many stacks of eight functions each. No two of them have a function in common but the first.
fn wide(stacks: usize) -> Profile {
    let names: Vec<Vec<String>> = (0..stacks)
        .map(|stack| {
            (0..8).map(|depth| format!("f{}", if depth == 0 { 0 } else { 8 * stack + depth })).collect()
        })
        .collect();
    let names: Vec<Vec<&str>> =
        names.iter().map(|stack| stack.iter().map(String::as_str).collect()).collect();
    profile(&names.iter().map(|stack| (stack.as_slice(), 1)).collect::<Vec<_>>())
}

#[test]
fn profiles_of_many_stacks() {
    let works: [fn(&Profile); 5] = [
        |profile| drop(profile.self_and_inclusive()),
        |profile| drop(Profile::merge(&[profile.clone(), profile.clone()]).expect("like profiles")),
        |profile| drop(folded(profile)),
        |profile| drop(speedscope(&[("a".into(), profile), ("b".into(), profile)], "t")),
        |profile| drop(pprof(profile)),
    ];
    for work in works {
        is_near_linear(500, |stacks| {
            let profile = wide(stacks);
            move || work(&profile)
        });
    }
}

#[test]
fn maps_of_many_regions() {
    is_near_linear(2000, |regions| {
        let line = |number| format!("{number:x}000-{number:x}fff r-xp 00000000 08:01 7 /lib/x (deleted)\n");
        let maps: String = (0..regions).rev().map(line).collect();
        move || {
            let image = Image::with(1, &maps);
            assert!((0..regions as u64).all(|number| image.region(number << 12).is_some()));
        }
    });
}
