// SPDX-License-Identifier: GPL-2.0
//! Command line: `--name value` options and plain words.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::Fail;

/// A parsed command line.
pub struct Args {
    /// Words that are not options, in order.
    pub words: Vec<String>,
    options: BTreeMap<String, String>,
}

impl Args {
    /// Parses `argv` (without the program's name). An option that ends in `!` on the
    /// command line (`--nodelay!`) has no value.
    pub fn parse(argv: impl Iterator<Item = String>) -> Result<Self, Fail> {
        let mut words = Vec::new();
        let mut options = BTreeMap::new();
        let mut argv = argv;
        while let Some(arg) = argv.next() {
            if let Some(name) = arg.strip_prefix("--") {
                if let Some(flag) = name.strip_suffix('!') {
                    options.insert(flag.to_string(), String::new());
                    continue;
                }
                let value = argv.next().ok_or(format!("--{name} needs a value"))?;
                options.insert(name.to_string(), value);
            } else {
                words.push(arg);
            }
        }
        Ok(Self { words, options })
    }

    /// The option's text, if given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Whether a flag was given.
    pub fn flag(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The option's value, or a default. Numbers may end in `k` or `m` and start with `0x`.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, Fail> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => number(text).ok_or(Fail::from(format!("--{name} {text}: not a number"))),
        }
    }

    /// The option's value parsed as `T`, or a default.
    pub fn value<T: FromStr>(&self, name: &str, default: T) -> Result<T, Fail> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| Fail::from(format!("--{name} {text}: not understood"))),
        }
    }
}

/// A number as people write it: `64k`, `1m`, `0x03010000`, `17`.
pub fn number(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1 << 10),
        b'm' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
