//! The requests of a file before it is known to which server they go.

use std::collections::HashSet;
use std::sync::Arc;

use requests::{Request, Rows};
use stats::SplitMix64;

use super::builder::ListBuilder;
use super::{Filler, List, Order};
use crate::target::{Expect, Http};

/// Requests, and in which order they are sent.
#[derive(Debug, Clone)]
pub struct Script {
    requests: Vec<Request>,
    rows: Arc<Rows>,
    /// None takes them by their weights if they have any, and else as they are listed.
    order: Option<Order>,
    seed: u64,
}

/// One request as it is sent, and the answers that are right.
#[derive(Debug, Clone)]
pub struct Message {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Which answers are right.
    pub expect: Expect,
}

impl Script {
    /// A script. Placeholders take their values from `rows`.
    pub fn new(requests: Vec<Request>, rows: Rows, order: Option<Order>, seed: u64) -> Self {
        Self { requests, rows: Arc::new(rows), order, seed }
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The same with values in place of the columns that follow those of the data, in their order.
    pub fn filled(&self, values: &[(String, String)]) -> Self {
        let requests = self.requests.iter().map(|request| self.filled_in(request, values)).collect();
        Self { requests, ..self.clone() }
    }

    /// The same for one request that follows the columns of this script's data.
    pub fn filled_in(&self, request: &Request, values: &[(String, String)]) -> Request {
        let first = self.rows.columns.len();
        let values: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
        let headers = request.headers.iter();
        Request {
            path: request.path.with(first, &values, true),
            headers: headers.map(|(name, text)| (name.clone(), text.with(first, &values, false))).collect(),
            body: request.body.as_ref().map(|body| body.with(first, &values, false)),
            ..request.clone()
        }
    }

    /// The first `most` requests, prepared for a server. `base` says what all of them have in common.
    ///
    /// # Errors
    /// One of them cannot be sent.
    pub fn list(&self, base: &Http, most: usize) -> Result<List, String> {
        let mut builder = ListBuilder::new(base, Arc::clone(&self.rows));
        for request in self.requests.iter().take(most) {
            builder.push(request.clone(), |texts| base.expect.besides(texts))?;
        }
        let usual = if builder.is_weighted() { Order::Random } else { Order::InOrder };
        builder.finish(self.order.unwrap_or(usual), self.seed).map_err(|error| error.to_string())
    }

    /// The first request of each name, at most so many, as they are sent to a server.
    ///
    /// # Errors
    /// One of them cannot be sent.
    pub fn samples(&self, base: &Http, most: usize) -> Result<Vec<Message>, String> {
        let mut names = HashSet::new();
        let different = self.requests.iter().filter(|request| names.insert(request.name.as_str()));
        different.take(most).map(|request| self.message(base, request)).collect()
    }

    fn message(&self, base: &Http, request: &Request) -> Result<Message, String> {
        let mut builder = ListBuilder::new(base, Arc::clone(&self.rows));
        builder.push(request.clone(), |texts| base.expect.besides(texts))?;
        let list = builder.finish(Order::InOrder, self.seed).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        list.append(0, &mut Filler::new(SplitMix64::new(self.seed), 0, 1), &mut bytes);
        let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let path = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        Ok(Message {
            method: request.method.clone(),
            path: String::from_utf8_lossy(path).into_owned(),
            expect: list.expects().first().unwrap_or(&base.expect).clone(),
            bytes,
        })
    }
}
