//! Prepares requests one by one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use requests::{Request, Rows, Text};
use stats::SplitMix64;
use wire::http::Method;

use super::parts::RequestParts;
use super::template::{Hole, Template};
use super::{ANY, Entry, List, NONE, Order};
use crate::pacer::Recording;
use crate::target::{Expect, Http};

/// What is wrong with the data of a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:1: the value of {column:?} has a control character, and a header cannot carry it")]
pub struct ListError {
    file: String,
    line: u64,
    column: String,
}

/// The most seconds between two requests of a record: 100 years.
const LONGEST_RECORD: i64 = 100 * 366 * 24 * 3600;

/// Prepares a list.
#[derive(Debug)]
pub struct ListBuilder {
    /// What all requests have in common: the host, headers, and whether connections are kept.
    base: Http,
    list: List,
    /// The numbers of what answers must be.
    expects: HashMap<Vec<String>, u16>,
    /// The numbers of the names that requests have.
    numbers: HashMap<String, u32>,
    /// The number of each request's name.
    names: Vec<u32>,
    weights: Vec<f64>,
    /// When each request arrived, in seconds; empty if requests have no times.
    times: Vec<i64>,
    /// The earliest and the latest of them.
    span: Option<(i64, i64)>,
    /// Columns whose values stand in headers.
    in_headers: BTreeSet<usize>,
    /// The bytes of names, and of what is filled in.
    other_bytes: usize,
}

impl ListBuilder {
    /// An empty list. `base` says what all requests have in common; its headers replace those of a request. Placeholders
    /// take their values from `rows`.
    pub fn new(base: &Http, rows: impl Into<Arc<Rows>>) -> Self {
        let list = List {
            bytes: Arc::default(),
            entries: Vec::new(),
            templates: Vec::new(),
            rows: rows.into(),
            expects: Vec::new(),
            names: Vec::new(),
            chances: Vec::new(),
            order: Order::InOrder,
            seed: 0,
            longest: 0,
        };
        Self {
            base: base.clone(),
            list,
            expects: HashMap::new(),
            numbers: HashMap::new(),
            names: Vec::new(),
            weights: Vec::new(),
            times: Vec::new(),
            span: None,
            in_headers: BTreeSet::new(),
            other_bytes: 0,
        }
    }

    /// Adds a request. `expect` reads what its answers must be.
    ///
    /// # Errors
    /// The request cannot be sent, or there are too many.
    pub fn push(
        &mut self,
        request: Request,
        expect: impl FnOnce(&[String]) -> Result<Expect, String>,
    ) -> Result<(), String> {
        let span = request.at.map(|at| self.span_with(at)).transpose()?;
        let expect = self.expectation(&request.expect, expect)?;
        let start = self.bytes().len();
        let template = self.encode(&request)?;
        let len = self.bytes().len() - start;
        self.list.longest = self.list.longest.max(len);
        let number = match self.numbers.get(&request.name) {
            Some(number) => *number,
            None => {
                self.other_bytes += request.name.len();
                let number = self.numbers.len() as u32;
                self.numbers.insert(request.name, number);
                number
            }
        };
        self.names.push(number);
        // Weights are kept from the first one that differs on.
        if request.weight != 1.0 && self.weights.is_empty() {
            self.weights.resize(self.list.entries.len(), 1.0);
        }
        if !self.weights.is_empty() || request.weight != 1.0 {
            self.weights.push(request.weight);
        }
        self.times.extend(request.at);
        self.span = span.or(self.span);
        let template = match template {
            Some(template) => {
                self.other_bytes += size_of::<Template>() + template.holes.len() * size_of::<Hole>();
                self.list.templates.push(template);
                self.list.templates.len() as u32 - 1
            }
            None => NONE,
        };
        let head = Method::from_name(request.method.as_bytes()) == Method::Head;
        self.list.entries.push(Entry {
            start: start as u32,
            len: len as u32,
            template,
            expect,
            name: 0,
            head,
        });
        self.check_size()
    }

    /// The list is complete.
    ///
    /// # Errors
    /// A value of the data cannot be sent.
    pub fn finish(mut self, order: Order, seed: u64) -> Result<List, ListError> {
        let legal =
            |value: &[u8]| value.iter().all(|byte| *byte == b'\t' || (*byte >= 0x20 && *byte != 0x7f));
        for column in &self.in_headers {
            if let Some(line) = self.list.rows.find(*column, legal) {
                let rows = &self.list.rows;
                return Err(ListError {
                    file: rows.file.clone(),
                    line,
                    column: rows.columns.get(*column).cloned().unwrap_or_default(),
                });
            }
        }
        self.name();
        let mut sum = 0.0;
        self.list.chances = self
            .weights
            .iter()
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        (self.list.order, self.list.seed) = (order, seed);
        Ok(self.list)
    }

    /// Whether requests have different weights.
    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    /// The arrivals of the requests, `speed` times as fast as they were recorded, and how long they last. Sorts the requests
    /// by their times. Times are whole seconds, within which `seed` spreads them. `None` if a request has no time.
    #[expect(clippy::indexing_slicing, reason = "there is a time and a name for each request")]
    pub fn record(&mut self, speed: f64, seed: u64) -> Option<(Recording, Duration)> {
        let (first, last) = self.span?;
        if self.times.len() < self.names.len() {
            return None;
        }
        let mut random = SplitMix64::new(seed);
        let mut spread = |second: i64| {
            let within = (u128::from(random.next_u64()) * 1_000_000_000) >> 64;
            (second - first) as u64 * 1_000_000_000 + within as u64
        };
        let times: Vec<u64> = self.times.iter().map(|second| spread(*second)).collect();
        let mut order: Vec<usize> = (0..times.len()).collect();
        order.sort_by_key(|number| times[*number]);
        self.list.entries = order.iter().map(|number| self.list.entries[*number]).collect();
        self.names = order.iter().map(|number| self.names[*number]).collect();
        let sorted = order.into_iter().map(|number| times[number]).collect();
        let length = Duration::try_from_secs_f64((last - first + 1) as f64 / speed).ok()?;
        Some((Recording::new(Arc::new(sorted), speed), length))
    }

    /// The earliest and the latest time, with one more.
    fn span_with(&self, at: i64) -> Result<(i64, i64), String> {
        let (first, last) = self.span.map_or((at, at), |(first, last)| (first.min(at), last.max(at)));
        if last.saturating_sub(first) > LONGEST_RECORD {
            return Err(
                "its time is more than 100 years from that of another request: mend it or leave it out"
                    .to_owned(),
            );
        }
        Ok((first, last))
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        Arc::make_mut(&mut self.list.bytes)
    }

    fn check_size(&mut self) -> Result<(), String> {
        let (bytes, count) = (self.bytes().len() + self.other_bytes, self.list.entries.len());
        let what = match () {
            () if bytes > List::MOST_BYTES => format!("{} MiB of requests", List::MOST_BYTES >> 20),
            () if count > List::MOST_REQUESTS => format!("{} requests", List::MOST_REQUESTS),
            () => return Ok(()),
        };
        Err(format!(
            "with this request the file has more than {what}, which is the limit: use a part of the file"
        ))
    }

    fn expectation(
        &mut self,
        texts: &[String],
        read: impl FnOnce(&[String]) -> Result<Expect, String>,
    ) -> Result<u16, String> {
        if texts.is_empty() {
            return Ok(ANY);
        }
        if let Some(known) = self.expects.get(texts) {
            return Ok(*known);
        }
        let number = self.list.expects.len() as u16;
        if number == ANY {
            return Err(format!("the file expects more than {ANY} different answers"));
        }
        self.list.expects.push(read(texts)?);
        self.expects.insert(texts.to_vec(), number);
        Ok(number)
    }

    /// Gives the names to the requests: the most frequent ones, and one for all others.
    #[expect(clippy::indexing_slicing, reason = "the numbers of names count from 0, without a gap")]
    fn name(&mut self) {
        let mut counts = vec![0_u64; self.numbers.len()];
        self.names.iter().for_each(|number| counts[*number as usize] += 1);
        let mut texts: Vec<(String, u32)> = std::mem::take(&mut self.numbers).into_iter().collect();
        texts.sort_by_key(|(_, number)| (std::cmp::Reverse(counts[*number as usize]), *number));
        if texts.len() > List::MOST_NAMES {
            texts.truncate(List::MOST_NAMES - 1);
            texts.push(("other".to_owned(), NONE));
        }
        let other = (texts.len() - 1) as u16;
        let mut places = vec![other; counts.len()];
        for (place, (_, number)) in texts.iter().enumerate().filter(|(_, (_, number))| *number != NONE) {
            places[*number as usize] = place as u16;
        }
        for (entry, number) in self.list.entries.iter_mut().zip(&self.names) {
            entry.name = places[*number as usize];
        }
        self.list.names = texts.into_iter().map(|(text, _)| text).collect();
    }

    /// What a request consists of: its own parts, and what all requests have in common.
    fn parts<'r>(&self, request: &'r Request) -> Result<RequestParts<'r>, String> {
        let common = &self.base.headers;
        let replaced = |name: &str| common.iter().any(|(common, _)| common.eq_ignore_ascii_case(name));
        let own = request.headers.iter().filter(|(name, _)| !replaced(name)).cloned();
        let common = common.iter().map(|(name, value)| (name.clone(), Text::literal(value.as_str())));
        let fields: Vec<_> = own.chain(common).collect();
        let changes = request.body.as_ref().is_some_and(|body| !body.is_literal());
        if changes && fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
            return Err("the length of the body changes, so it needs no header Content-Length: leave it out"
                .to_owned());
        }
        let (method, path, body) = (request.method.as_str(), &request.path, request.body.as_ref());
        Ok(RequestParts { method, path, fields, body })
    }

    /// Appends the bytes of a request. Returns what is filled in each time.
    fn encode(&mut self, request: &Request) -> Result<Option<Template>, String> {
        let parts = self.parts(request)?;
        let (host, keep_alive) = (self.base.host.clone(), self.base.keep_alive);
        let template = parts.encode_http1(&host, keep_alive, self.bytes())?;
        self.in_headers.extend(parts.columns_in_fields());
        Ok(template)
    }
}
