//! Figures of a search: the path of its race, what each knob does, what the two strongest do together, and the front.

use lab::experiment::Figure as Quantity;
use lab::experiment::grid::Axis as Knob;
use lab::findings::{Advice, Heat as Round, KnobEffect, PairEffect, Tried, Tuned, Unit};
use lab::search::Stage;
use systems::{Point as Setting, Value};

use super::super::figure::Figure;
use super::{INTERVAL, View, numeric};
use crate::number::interval_in_hundredths;
use crate::svg::{
    Axis, Cell, Drawing, Drawn, Heat, Interval, Lines, Point, Scale, Series, Small, Style, Ticks,
};
use crate::words::tuned::{default_of, defaults, first, is_shown, knobs, never_works, setting};
use crate::words::{list, quantity};

/// The meaning of a hollow mark.
const BREAKS: &str = "breaks a limit";

/// The meaning of a cell with a dotted edge.
const ESTIMATED: &str = "estimated";

/// The shapes of marks.
const ON_LINE: usize = 0;
const OTHER: usize = 1;
const PROVEN: usize = 3;

/// All that the search has data for, its path first.
pub(super) fn figures(view: &View, found: &Tuned) -> Vec<Figure> {
    let search = Search { view, found };
    let all = [search.path(), search.knobs(), search.together(), search.front()];
    all.into_iter().flatten().collect()
}

struct Search<'a> {
    view: &'a View<'a>,
    found: &'a Tuned,
}

impl Search<'_> {
    fn style(&self, shape: usize) -> Style {
        let system = self.view.e.base.as_ref().map_or("", |base| base.scenario.system.as_str());
        self.view.palette.style(system, shape)
    }

    fn name(&self, point: &Setting) -> String {
        setting(self.view.e, point)
    }

    fn tried(&self, at: usize) -> Option<&Tried> {
        self.found.tried.get(at)
    }

    fn default(&self) -> Series {
        let style = Style { hue: None, shape: ON_LINE, hollow: false };
        Series { label: defaults(self.view.e)[0].to_owned(), style, drawn: Drawn::Line, points: Vec::new() }
    }

    /// The heats from left to right, and the proof.
    fn path(&self) -> Option<Figure> {
        let heats = &self.found.heats;
        if heats.is_empty() {
            return None;
        }
        let place = |at: usize| at as f64 + 1.0;
        let proof = self.proof(place(heats.len()));
        let last = heats.len() - 1 + usize::from(proof.is_some());
        let level = [Point::new(place(0), 1.0), Point::new(place(last), 1.0)];
        let mut series = vec![Series { points: level.to_vec(), ..self.default() }];
        let best = heats.iter().enumerate();
        let best = best.filter_map(|(at, heat)| Some(Point::new(place(at), self.best(heat)?))).collect();
        let style = self.style(ON_LINE);
        series.push(Series { label: BEST.to_owned(), style, drawn: Drawn::Line, points: best });
        series.extend(self.dots());
        let mut legend =
            vec![(defaults(self.view.e)[0].to_owned(), self.default().style), (BEST.to_owned(), style)];
        legend.push(("a setting in a heat".to_owned(), self.style(OTHER)));
        legend.extend(proof.is_some().then(|| ("in fresh rounds".to_owned(), self.style(PROVEN))));
        let hollow = series.iter().flat_map(|series| &series.points).any(|point| point.hollow);
        let hollow = if hollow { " Hollow marks broke a limit." } else { "" };
        let mut ticks: Vec<(f64, String)> =
            heats.iter().enumerate().map(|(at, heat)| (place(at), stage(heat.stage).to_owned())).collect();
        ticks.extend(proof.is_some().then(|| (place(last), stage(Stage::Proof).to_owned())));
        series.extend(proof);
        let proven = match self.found.advice {
            Some(_) => format!("Only the fresh rounds at the end, with their {INTERVAL}, prove something."),
            None => "Nothing is proven yet.".to_owned(),
        };
        let about = format!(
            "The heats of the race from left to right; each mark is the median of a setting's rounds beside {}. The race \
             chose what to try again, so its marks flatter. {proven}{hollow}",
            defaults(self.view.e)[0]
        );
        let label = format!("times better in {} (logarithmic)", quantity(self.view.e.figure));
        let y = axis(&label, Scale::Log, Unit::Times, Ticks::Round);
        let x = axis("heats of the race", Scale::Linear, Unit::Count, Ticks::At(ticks));
        Some(Figure {
            title: self.path_in_words(),
            about,
            legend,
            drawing: Drawing::Lines(lines(x, y, series)),
            main: false,
        })
    }

    fn path_in_words(&self) -> String {
        let Tuned { advice, favourite, .. } = self.found;
        match (advice, favourite) {
            (Some(advice), _) => {
                let winner = self.name(&advice.winner);
                let shown = if advice.changes() { self.name(&advice.point) } else { winner.clone() };
                let shown = if shown == winner { "it".to_owned() } else { format!("`{shown}`") };
                let gain = advice.gain.map_or_else(
                    || "without a figure".to_owned(),
                    |gain| format!("at {}", interval_in_hundredths(gain)),
                );
                format!("The race led to `{winner}`; fresh rounds show {shown} {gain}")
            }
            (None, Some(favourite)) => format!("The race leads to `{}` so far", self.name(&favourite.point)),
            (None, None) => "The race has no favourite".to_owned(),
        }
    }

    /// The ratio of the best setting after a heat: in that heat if it ran in it.
    fn best(&self, heat: &Round) -> Option<f64> {
        let in_heat = heat.settings.iter().find(|(at, _)| *at == heat.best).and_then(|(_, ratio)| *ratio);
        in_heat.or_else(|| self.tried(heat.best)?.ratios.first().copied().flatten())
    }

    /// A series for each setting, so that each mark has its name.
    fn dots(&self) -> Vec<Series> {
        let of = |(at, tried): (usize, &Tried)| {
            let points = self.found.heats.iter().enumerate().filter_map(|(heat, each)| {
                let (_, ratio) = each.settings.iter().find(|(known, _)| *known == at)?;
                Some(Point { hollow: !tried.keeps, ..Point::new(heat as f64 + 1.0, (*ratio)?) })
            });
            let points: Vec<Point> = points.collect();
            Series { label: self.name(&tried.point), style: self.style(OTHER), drawn: Drawn::Apart, points }
        };
        let all = self.found.tried.iter().enumerate().map(of);
        all.filter(|series| !series.points.is_empty()).collect()
    }

    /// What the fresh rounds show.
    fn proof(&self, x: f64) -> Option<Series> {
        let advice = self.found.advice.as_ref()?;
        let gain = advice.gain?;
        let shown = if advice.changes() { &advice.point } else { &advice.winner };
        let interval: Option<Interval> = Some((gain.low, gain.high));
        Some(Series {
            label: format!("{} in fresh rounds", self.name(shown)),
            style: self.style(PROVEN),
            drawn: Drawn::Apart,
            points: vec![Point { interval, ..Point::new(x, gain.estimate) }],
        })
    }

    fn knob(&self, name: &str) -> Option<&Knob> {
        self.view.e.axes.iter().find(|axis| axis.knob == name)
    }

    /// A small chart for each knob, the strongest first.
    fn knobs(&self) -> Option<Figure> {
        let charts: Vec<Lines> = knobs(self.found).filter_map(|effect| self.effect(effect)).collect();
        let names = |flat: bool| {
            let of = knobs(self.found).filter(|effect| effect.flat == flat);
            of.map(|effect| format!("`{}`", effect.knob)).collect::<Vec<_>>()
        };
        let title = match (&names(false)[..], &names(true)[..]) {
            ([], _) => "No knob seems to matter by itself".to_owned(),
            (some, []) => format!("What {} seem to do, the strongest first", list(some)),
            (some, flat) => {
                let verb = if some.len() == 1 { "seems" } else { "seem" };
                let other = if flat.len() == 1 { "does" } else { "do" };
                format!("{} {verb} to matter; {} hardly {other}", list(some), list(flat))
            }
        };
        let mut legend = vec![("a value".to_owned(), self.style(ON_LINE))];
        let own = first(self.view.e);
        legend.push((format!("the {own}"), self.style(PROVEN)));
        (!charts.is_empty()).then(|| Figure {
            title,
            about: format!(
                "How many times better each value is than the knob's {own}, as the race estimates it, averaged over what the other \
                 knobs do. What few trials show is shrunk towards no difference. Grey knobs hardly matter. Values that never work \
                 are left out."
            ),
            legend,
            drawing: Drawing::Small(Small { x: "value".to_owned(), y: "times better".to_owned(), charts }),
            main: false,
        })
    }

    fn effect(&self, effect: &KnobEffect) -> Option<Lines> {
        let knob = self.knob(&effect.knob)?;
        let works = |value: &Value| {
            is_shown(self.view.e, self.found, &effect.knob, value)
                && !never_works(self.found, &effect.knob, value)
        };
        let values: Vec<&(Value, f64)> = effect.values.iter().filter(|(value, _)| works(value)).collect();
        let points: Vec<Point> =
            values.iter().enumerate().map(|(at, (_, ratio))| Point::new(at as f64, *ratio)).collect();
        let default = default_of(self.view.e, &effect.knob);
        let of_default = values.iter().position(|(value, _)| Some(value) == default).map(|at| points[at]);
        let colour = |style: Style| if effect.flat { Style { hue: None, ..style } } else { style };
        let ticks = values.iter().enumerate().map(|(at, (value, _))| (at as f64, knob.show(value)));
        let x = axis("", Scale::Linear, Unit::Count, Ticks::At(ticks.collect()));
        let series = vec![
            Series {
                label: effect.knob.clone(),
                style: colour(self.style(ON_LINE)),
                drawn: if numeric(knob) { Drawn::Joined } else { Drawn::Apart },
                points,
            },
            Series {
                label: format!("{}, the {}", effect.knob, first(self.view.e)),
                style: colour(self.style(PROVEN)),
                drawn: Drawn::Apart,
                points: of_default.into_iter().collect(),
            },
        ];
        let y = axis(&effect.knob, Scale::Log, Unit::Times, Ticks::Round);
        Some(lines(x, y, series))
    }

    /// The two strongest knobs as a grid.
    fn together(&self) -> Option<Figure> {
        let PairEffect { first, second, ratios, tried } = self.found.together.as_ref()?;
        let (down, across) = (self.knob(first)?, self.knob(second)?);
        let shown = |knob: &Knob| {
            let of_knob = |value: &Value| is_shown(self.view.e, self.found, &knob.knob, value);
            (0..knob.values.len()).filter(|at| of_knob(&knob.values[*at])).collect::<Vec<usize>>()
        };
        let (rows, columns) = (shown(down), shown(across));
        let cell = |row: usize, column: usize| {
            let fails = never_works(self.found, first, &down.values[row])
                || never_works(self.found, second, &across.values[column]);
            let value = *ratios.get(row)?.get(column)?;
            let ran = tried.get(row).and_then(|row| row.get(column)) == Some(&true);
            (!fails).then_some(Cell { value, ranked: ran })
        };
        let cells: Vec<Vec<Option<Cell>>> =
            rows.iter().map(|row| columns.iter().map(|column| cell(*row, *column)).collect()).collect();
        let values = || cells.iter().flatten().flatten().map(|cell| cell.value);
        // Differences that do not matter are not made to look large.
        let worth = 1.0 + self.view.e.threshold;
        let range = values().fold((1.0 / worth, worth), |(l, h), v| (l.min(v), h.max(v)));
        let place = |(row, column): (usize, usize)| Some((cells[row][column]?, row, column));
        let all = (0..cells.len()).flat_map(|row| (0..cells[row].len()).map(move |column| (row, column)));
        let ran = all.filter_map(place).filter(|(cell, ..)| cell.ranked);
        // The estimates do not know the limits.
        let limited = self.found.tried.iter().any(|tried| !tried.keeps);
        let best = ran.filter(|_| !limited).max_by(|(a, ..), (b, ..)| a.value.total_cmp(&b.value));
        let best = best.map(|(_, row, column)| {
            let [row, column] =
                [down.show(&down.values[rows[row]]), across.show(&across.values[columns[column]])];
            format!(", best at `{first}={row} {second}={column}`")
        });
        let words = |knob: &Knob, shown: &[usize]| {
            (knob.knob.clone(), shown.iter().map(|at| knob.show(&knob.values[*at])).collect())
        };
        Some(Figure {
            title: format!("`{first}` and `{second}` together{}", best.unwrap_or_default()),
            about: format!(
                "How many times better than {}, as the race estimates it, with all other knobs as in the favourite of the \
                 race. Brighter is better, and the best setting that ran is framed. Cells with a dotted edge never ran.{}",
                defaults(self.view.e)[0],
                if limited { " Some of them break a limit." } else { "" }
            ),
            legend: Vec::new(),
            drawing: Drawing::Heat(Heat {
                across: words(across, &columns),
                down: words(down, &rows),
                cells,
                unit: Unit::Times,
                more_is_better: true,
                range,
                hollow: ESTIMATED,
            }),
            main: false,
        })
    }

    /// All settings by the first two figures.
    fn front(&self) -> Option<Figure> {
        let Tuned { figures, front, .. } = self.found;
        let [first, second, ..] = figures[..] else { return None };
        let mut line: Vec<Point> = front.iter().filter_map(|at| place(self.tried(*at)?)).collect();
        line.sort_by(|a, b| a.x.total_cmp(&b.x));
        let mut marks = self.marks();
        if line.is_empty() || marks.len() < 2 {
            return None;
        }
        // What is on the front is drawn over the others, and what is advised over all.
        let over = |series: &Series| (series.style == self.style(PROVEN), series.drawn != Drawn::Apart);
        marks.sort_by_key(over);
        let lettered = marks.iter().filter(|series| matches!(series.drawn, Drawn::Lettered(_)));
        let mut legend: Vec<(String, Style)> = lettered.map(|s| (s.label.clone(), s.style)).collect();
        legend.sort_by(|(a, _), (b, _)| a.cmp(b));
        legend.push(("other settings".to_owned(), self.style(OTHER)));
        legend.push((defaults(self.view.e)[0].to_owned(), self.default_mark()));
        let changes = self.found.advice.as_ref().is_some_and(Advice::changes);
        legend.extend(changes.then(|| ("advised".to_owned(), self.style(PROVEN))));
        let style = self.style(ON_LINE);
        let joined = Series { label: "the front".to_owned(), style, drawn: Drawn::Line, points: line };
        let more = if figures.len() > 2 {
            format!(" The front is of all {} figures; two are drawn.", figures.len())
        } else {
            String::new()
        };
        let by = |figure: Quantity| {
            let label = format!("{}: times better", quantity(figure));
            axis(&label, Scale::Log, Unit::Times, Ticks::Round)
        };
        let series = std::iter::once(joined).chain(marks).collect();
        Some(Figure {
            title: self.front_in_words(first, second),
            about: format!(
                "Each mark is a setting that ran; up and right is better, and both axes are logarithmic. The line is the front: no setting beats one of it in every \
                 figure. These are medians over the race and the fresh rounds, and prove nothing by themselves. Hollow marks break a \
                 limit.{more}"
            ),
            legend,
            drawing: Drawing::Lines(lines(by(first), by(second), series)),
            main: false,
        })
    }

    /// A mark for each setting. Those on the front have letters, from left to right.
    fn marks(&self) -> Vec<Series> {
        let Tuned { front, tried, advice, .. } = self.found;
        let x = |at: &usize| self.tried(*at).and_then(place).map_or(0.0, |point| point.x);
        let mut order = front.clone();
        order.sort_by(|a, b| x(a).total_cmp(&x(b)));
        let advised = advice.as_ref().map(|advice| &advice.point);
        let mark = |(at, one): (usize, &Tried)| {
            let name = self.name(&one.point);
            let letter =
                order.iter().zip('A'..='Z').find(|(known, _)| **known == at).map(|(_, letter)| letter);
            let style = match letter {
                _ if name == defaults(self.view.e)[0] => self.default_mark(),
                _ if advised == Some(&one.point) => self.style(PROVEN),
                Some(_) => self.style(ON_LINE),
                None => self.style(OTHER),
            };
            let (label, drawn) = match letter {
                Some(letter) => (format!("{letter}: {name}"), Drawn::Lettered(letter)),
                None => (name, Drawn::Apart),
            };
            Some(Series { label, style, drawn, points: vec![place(one)?] })
        };
        tried.iter().enumerate().filter_map(mark).collect()
    }

    fn default_mark(&self) -> Style {
        Style { hue: None, shape: PROVEN, hollow: false }
    }

    fn front_in_words(&self, first: Quantity, second: Quantity) -> String {
        let both = format!("{} and in {}", quantity(first), quantity(second));
        match self.found.front[..] {
            [only] => {
                let name = self.tried(only).map(|tried| self.name(&tried.point)).unwrap_or_default();
                format!("`{name}` has the best medians in {both}")
            }
            _ => format!(
                "No setting that ran has better medians than these {} in {both}",
                self.found.front.len()
            ),
        }
    }
}

const BEST: &str = "the best so far";

/// Where a setting lies by its first two figures.
fn place(tried: &Tried) -> Option<Point> {
    let [Some(x), Some(y), ..] = tried.ratios[..] else { return None };
    Some(Point { hollow: !tried.keeps, ..Point::new(x, y) })
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Spread => "spread",
        Stage::Climb => "climb",
        Stage::Pairs => "pairs",
        Stage::Rivals => "rivals",
        Stage::Proof => "proof",
    }
}

fn axis(label: &str, scale: Scale, unit: Unit, ticks: Ticks) -> Axis {
    Axis { label: label.to_owned(), unit, scale, ticks }
}

fn lines(x: Axis, y: Axis, series: Vec<Series>) -> Lines {
    Lines { x, y, series, bands: Vec::new(), interval: INTERVAL.to_owned(), hollow: BREAKS }
}
