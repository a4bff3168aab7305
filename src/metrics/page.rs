//! The Prometheus text format, version 0.0.4.
//!
//! A family starts with its name, kind and help, followed by its samples. Durations are in seconds, sizes in bytes.
//! Label values are escaped here, so they may be any text.

use std::fmt::{self, Display, Write};
use std::time::Duration;

use super::histogram::{BOUNDS_US, HistogramSnapshot};

/// The kind of a family of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn key(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The labels of one sample, in output order.
type Labels<'a> = &'a [(&'static str, &'a str)];

/// A page under construction.
#[derive(Debug, Default)]
pub struct MetricsPage {
    text: String,
    name: &'static str,
}

impl MetricsPage {
    pub const MEDIA_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Starts a family, to be followed by its samples.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) -> &mut Self {
        self.name = name;
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.key()));
        self
    }

    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) -> &mut Self {
        self.line("", labels, None, value);
        self
    }

    /// Adds the samples of a histogram.
    pub fn histogram(&mut self, labels: Labels<'_>, spread: &HistogramSnapshot) -> &mut Self {
        let mut seen = 0;
        for (bound_us, count) in BOUNDS_US.iter().zip(spread.buckets) {
            seen += count;
            let bound = Seconds(Duration::from_micros(*bound_us)).to_string();
            self.line("_bucket", labels, Some(&bound), seen);
        }
        self.line("_bucket", labels, Some("+Inf"), spread.count());
        self.line("_sum", labels, None, Seconds(Duration::from_nanos(spread.sum_ns)));
        self.line("_count", labels, None, spread.count());
        self
    }

    pub fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let bound = bound.map(|bound| ("le", bound));
        let mut before = '{';
        for (name, text) in labels.iter().copied().chain(bound) {
            self.put(format_args!("{before}{name}=\""));
            self.escaped(text);
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        self.put(format_args!(" {value}\n"));
    }

    fn escaped(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                character => self.text.push(character),
            }
        }
    }

    fn put(&mut self, arguments: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(arguments);
    }
}

/// A duration in seconds, exact to the nanosecond.
struct Seconds(Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{}.{:09}", self.0.as_secs(), self.0.subsec_nanos());
        f.write_str(digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Histogram;
    use super::*;

    #[test]
    fn page_is_in_prometheus_text_format() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_micros(70));
        histogram.record(Duration::from_secs(6));
        let mut page = MetricsPage::default();
        page.family("a_total", Kind::Counter, "Things.").sample(&[], 3);
        page.family("b", Kind::Gauge, "More.").sample(&[("of", "a\"b\\c\nd"), ("and", "é")], 0.5);
        page.family("c_seconds", Kind::Histogram, "Times.").histogram(&[("of", "x")], &histogram.snapshot());
        let text = page.finish();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            &lines[..7],
            [
                "# HELP a_total Things.",
                "# TYPE a_total counter",
                "a_total 3",
                "# HELP b More.",
                "# TYPE b gauge",
                r#"b{of="a\"b\\c\nd",and="é"} 0.5"#,
                "# HELP c_seconds Times.",
            ]
        );
        assert_eq!(lines[8], r#"c_seconds_bucket{of="x",le="0.00005"} 0"#);
        assert_eq!(lines[9], r#"c_seconds_bucket{of="x",le="0.0001"} 1"#);
        assert_eq!(lines[23], r#"c_seconds_bucket{of="x",le="5"} 1"#);
        assert_eq!(
            &lines[24..],
            [
                r#"c_seconds_bucket{of="x",le="+Inf"} 2"#,
                r#"c_seconds_sum{of="x"} 6.00007"#,
                r#"c_seconds_count{of="x"} 2"#
            ]
        );
    }
}
