//! Values that were taken from an answer, and the texts of requests that name them: `{{token}}`.

/// Values by their names, and the cookies that the answer has set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    /// Names and values, in their order.
    pub named: Vec<(String, String)>,
    /// The value of `Cookie`; none if no cookies are kept.
    pub cookie: Option<String>,
}

impl Values {
    /// A text with the values in place of their names. What else stands in double braces stays as it is.
    pub fn fill(&self, text: &str) -> String {
        self.filled(text, str::to_owned)
    }

    /// The same for a path, in which a value must not end the line.
    pub fn fill_path(&self, path: &str) -> String {
        self.filled(path, |value| {
            let one = |byte: u8| match byte.is_ascii_graphic() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            };
            value.bytes().map(one).collect()
        })
    }

    /// The same for the headers of a request, and the cookies behind them.
    pub fn fill_headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let mut filled: Vec<(String, String)> =
            headers.iter().map(|(name, value)| (name.clone(), self.fill(value))).collect();
        let Some(cookie) = &self.cookie else { return filled };
        match filled.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
            Some((_, own)) => *own = format!("{own}; {cookie}"),
            None => filled.push(("Cookie".to_owned(), cookie.clone())),
        }
        filled
    }

    /// The same for a body. One that is not text has no names.
    pub fn fill_body(&self, body: &[u8]) -> Vec<u8> {
        std::str::from_utf8(body).map_or_else(|_| body.to_vec(), |text| self.fill(text).into_bytes())
    }

    fn filled(&self, text: &str, form: impl Fn(&str) -> String) -> String {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, inside)) = rest.split_once("{{") {
            filled += before;
            let found = inside.split_once("}}").and_then(|(name, behind)| {
                let (_, value) = self.named.iter().find(|(known, _)| known == name.trim())?;
                Some((value, behind))
            });
            match found {
                Some((value, behind)) => {
                    filled += &form(value);
                    rest = behind;
                }
                None => {
                    filled += "{{";
                    rest = inside;
                }
            }
        }
        filled + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_double_braces_are_replaced() {
        let named = vec![("token".to_owned(), "a b".to_owned()), ("id".to_owned(), "7".to_owned())];
        let values = Values { named, cookie: Some("s=1".to_owned()) };
        assert_eq!(values.fill("{{token}}-{{ id }}{{x}} {{"), "a b-7{{x}} {{");
        assert_eq!(values.fill_path("/u/{{id}}?t={{token}}"), "/u/7?t=a%20b");
        assert_eq!(values.fill_body(b"\xff{{id}}"), b"\xff{{id}}");
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            values.fill_headers(&[header("A", "{{id}}")]),
            [header("A", "7"), header("Cookie", "s=1")]
        );
        assert_eq!(values.fill_headers(&[header("cookie", "b=2")]), [header("cookie", "b=2; s=1")]);
    }
}
