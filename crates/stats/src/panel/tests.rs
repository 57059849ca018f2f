use super::*;

/// The systems, the reference and its twin of an HTTP comparison in three rounds, on a shared machine: log requests per
/// second of nginx, hyper, uvicorn, node, the reference and its twin.
const SERVERS: [[f64; 3]; 6] = [
    [10.857650, 10.838546, 10.602363],
    [10.716636, 10.915670, 10.562927],
    [9.932617, 9.839688, 10.141566],
    [9.973919, 9.550656, 9.352562],
    [10.758244, 10.697703, 10.832180],
    [10.923248, 10.785061, 10.891620],
];

fn panel(rows: &[[f64; 3]], systems: usize) -> Panel {
    let row = |(index, numbers): (usize, &[f64; 3])| PanelRow {
        by_round: (0..).zip(*numbers).collect(),
        system: index < systems,
        ..PanelRow::default()
    };
    Panel::new(rows.iter().enumerate().map(row).collect())
}

#[test]
fn a_real_run_by_hand() {
    // Computed with a second program, in another language.
    let expected = [
        (1, 0, -0.034442, 0.161353, 5.649333, 0.838464),
        (2, 0, -0.794896, 0.168403, 5.958453, 0.003318),
        (2, 1, -0.760454, 0.189340, 5.885922, 0.007270),
        (3, 0, -1.140474, 0.207288, 3.402205, 0.008423),
        (3, 1, -1.106032, 0.213133, 3.881367, 0.007124),
        (3, 2, -0.345578, 0.241350, 3.567665, 0.233632),
    ];
    let panel = panel(&SERVERS, 4);
    for (a, b, estimate, error, df, p) in expected {
        let found = panel.difference(a, b, &[0, 1, 2]).unwrap();
        let near = |x: f64, y: f64| (x - y).abs() < 2e-6;
        assert!(
            near(found.estimate, estimate) && near(found.error, error) && near(found.df, df),
            "{found:?}"
        );
        assert!(near(found.p(), p), "{a} {b}: {} {p}", found.p());
    }
}

#[test]
fn what_a_round_did_to_all_is_no_difference_but_is_in_the_error_of_a_row() {
    // Every row falls by half in round 1.
    let disturbed = |level: f64, noise: [f64; 3]| {
        let mut numbers = noise.map(|x| level + x);
        numbers[1] -= 0.7;
        numbers
    };
    let rows = [
        disturbed(3.0, [0.01, 0.0, -0.01]),
        disturbed(2.0, [0.0, 0.01, -0.01]),
        disturbed(1.0, [-0.01, 0.01, 0.0]),
        disturbed(2.5, [0.01, -0.01, 0.0]),
    ];
    let rounds = [0, 1, 2];
    let mean = panel(&rows, 3).mean(0, &rounds);
    assert_eq!(mean, Location::of(&rows[0]));
    let difference = panel(&rows, 3).difference(0, 1, &rounds).unwrap();
    assert!(difference.error < 0.7 * mean.unwrap().error, "{difference:?} {mean:?}");
}

#[test]
fn however_few_rounds_have_a_gap_and_a_middle() {
    let row = |numbers: &[(u32, f64)]| PanelRow {
        by_round: numbers.iter().copied().collect(),
        ..PanelRow::default()
    };
    let panel = Panel::new(vec![
        row(&[(0, 1.0), (1, 2.0), (2, 6.0)]),
        row(&[(1, 0.5), (2, 0.5)]),
        row(&[(2, 3.0)]),
        row(&[]),
    ]);
    let gaps = [(0, 1), (0, 2), (2, 0), (0, 3)].map(|(a, b)| panel.gap(a, b));
    assert_eq!(gaps, [Some(3.5), Some(3.0), Some(-3.0), None]);
    let middles = (0..4).map(|row| panel.middle(row).map(|middle| (middle.level, middle.n)));
    assert_eq!(middles.collect::<Vec<_>>(), [Some((3.0, 3)), Some((0.5, 2)), Some((3.0, 1)), None]);
}

#[test]
fn without_other_rows_a_pair_is_compared_by_its_differences() {
    let rows = [[0.3, 0.5, 0.1], [0.2, 0.1, 0.0]];
    let found = panel(&rows, 2).difference(0, 1, &[0, 1, 2]).unwrap();
    let differences: Vec<f64> = rows[0].iter().zip(rows[1]).map(|(a, b)| a - b).collect();
    assert_eq!(Some(found), Location::of(&differences));
}

#[test]
fn from_nine_rounds_on_the_pair_is_enough() {
    let row = |numbers: Vec<f64>| PanelRow {
        by_round: (0..).zip(numbers).collect(),
        system: true,
        ..PanelRow::default()
    };
    let numbers = |factor: f64| (0..9).map(|i| f64::from(i * i % 7) * factor).collect::<Vec<f64>>();
    let panel = Panel::new([1.0, 0.5, 0.3, 0.1].map(numbers).map(row).to_vec());
    let rounds: Vec<u32> = (0..9).collect();
    let differences: Vec<f64> = numbers(1.0).iter().zip(numbers(0.5)).map(|(a, b)| a - b).collect();
    assert_eq!(panel.difference(0, 1, &rounds), Location::of(&differences));
}

#[test]
fn rows_that_missed_a_round_do_not_take_part() {
    let mut rows: Vec<PanelRow> = panel(&SERVERS, 4).rows;
    rows.insert(0, PanelRow { by_round: [(0, 99.0), (2, -5.0)].into(), system: true, ..PanelRow::default() });
    let with = Panel::new(rows);
    let without = panel(&SERVERS, 4);
    assert_eq!(with.difference(3, 1, &[0, 1, 2]), without.difference(2, 0, &[0, 1, 2]));
    assert_eq!(with.shared_rounds(0, 1), [0, 2]);
    assert_eq!(with.difference(0, 1, &[0]), None);
}

#[test]
fn numbers_without_any_noise_are_certain() {
    let rows = [[1.0; 3], [2.0; 3], [3.0; 3], [4.0; 3]];
    let found = panel(&rows, 4).difference(1, 0, &[0, 1, 2]).unwrap();
    assert!(found.estimate == 1.0 && found.error == 0.0 && found.df.is_finite(), "{found:?}");
}

#[test]
fn of_many_rows_some_are_enough_and_those_compared_are_among_them() {
    let row = |index: u32| PanelRow {
        by_round: (0..3).map(|round| (round, f64::from(index * 7919 % 13 + round * index % 5))).collect(),
        system: true,
        ..PanelRow::default()
    };
    let panel = Panel::new((0..1000).map(row).collect());
    for (a, b) in [(0, 999), (501, 3), (17, 18)] {
        let found = panel.difference(a, b, &[0, 1, 2]).unwrap();
        let mean = |index: usize| (0..3).map(|round| panel.rows[index].by_round[&round]).sum::<f64>() / 3.0;
        assert!((found.estimate - (mean(a) - mean(b))).abs() < 1e-9, "{a} {b}: {found:?}");
    }
}
