//! `--upstream`: Narrows' own server beside all commands, for gateways and proxies that need something behind them.

use super::StartArgs;

/// What stands in commands for the URL of the server.
const PLACEHOLDER: &str = "{upstream}";

impl StartArgs {
    /// Puts the URL of the server into the commands, `texts` and those of the options. `knobs` are what `-k` and `-L` give.
    ///
    /// # Errors
    /// No command has a place for it, or one has a place and there is no server.
    pub fn put_upstream<'a>(
        &mut self,
        texts: &mut [String],
        mut knobs: impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let is_knob = knobs.any(|knob| knob == "upstream");
        let hooks = [&mut self.setup, &mut self.prepare, &mut self.conclude].into_iter().flatten();
        let own = self.env.iter_mut().chain(&mut self.services).chain(hooks);
        let places: Vec<&mut String> =
            texts.iter_mut().chain(own).filter(|text| text.contains(PLACEHOLDER)).collect();
        match (self.upstream, places.is_empty()) {
            (Some(_), _) if is_knob => {
                Err("--upstream and a knob of that name: call the knob something else".to_owned())
            }
            (Some(_), true) => Err(format!(
                "--upstream starts a server for {PLACEHOLDER}, which no command has: write it where a command takes the URL of its upstream"
            )),
            (None, false) if !is_knob => Err(format!(
                "{PLACEHOLDER} needs --upstream, which starts `narrows serve` beside all commands"
            )),
            (None, _) => Ok(()),
            (Some(port), false) => {
                let url = format!("http://127.0.0.1:{port}");
                places.into_iter().for_each(|text| *text = text.replace(PLACEHOLDER, &url));
                Ok(())
            }
        }
    }

    /// The command that starts the server, word by word.
    ///
    /// # Errors
    /// The path of this program is not known, or is no text.
    pub fn upstream_words(&self) -> anyhow::Result<Option<Vec<String>>> {
        let Some(port) = self.upstream else { return Ok(None) };
        let program = std::env::current_exe()?.into_os_string().into_string();
        let program = program.map_err(|path| anyhow::anyhow!("{path:?} is not UTF-8"))?;
        Ok(Some([&program, "serve", "--port", &port.to_string()].map(str::to_owned).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(upstream: Option<u16>, text: &str, knobs: &[&str]) -> Result<String, String> {
        let mut start = StartArgs { upstream, env: vec!["BASE=x".to_owned()], ..StartArgs::default() };
        let mut texts = [text.to_owned()];
        start.put_upstream(&mut texts, knobs.iter().copied())?;
        let [text] = texts;
        Ok(text)
    }

    #[test]
    fn the_url_stands_where_a_command_wants_it() {
        let found = put(Some(7000), "proxy {port} {upstream}/v1", &[]);
        assert_eq!(found.as_deref(), Ok("proxy {port} http://127.0.0.1:7000/v1"));
        assert_eq!(put(None, "proxy {upstream}", &["upstream"]).as_deref(), Ok("proxy {upstream}"), "a knob");
        assert_eq!(put(None, "proxy {port}", &[]).as_deref(), Ok("proxy {port}"));
        for (upstream, text, knobs, why) in [
            (None, "proxy {upstream}", &[][..], "needs --upstream"),
            (Some(7000), "proxy {port}", &[], "no command has"),
            (Some(7000), "proxy {upstream}", &["upstream"], "call the knob something else"),
        ] {
            let wrong = put(upstream, text, knobs).expect_err(text);
            assert!(wrong.contains(why), "{wrong}");
        }
    }
}
