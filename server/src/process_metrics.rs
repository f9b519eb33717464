//! The process metrics of Prometheus' own clients, under the same names. Without `/proc` they are left out.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The units of a second in `/proc/PID/stat`: USER_HZ, which the kernel's ABI fixes.
const TICKS: f64 = 100.0;

#[derive(Debug)]
pub struct OfProcess {
    /// The Unix time of the start, in seconds.
    began: f64,
}

impl OfProcess {
    pub fn now() -> Self {
        OfProcess { began: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()) }
    }
}

impl Collector for OfProcess {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name: &str, help: &str, value: Option<f64>| match value {
            Some(value) => ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?),
            None => Ok(()),
        };
        gauge("process_start_time_seconds", "Start time of the process, in Unix seconds", Some(self.began))?;
        gauge("process_resident_memory_bytes", "Resident memory of the process", memory())?;
        gauge("process_open_fds", "Open files and connections", open_files())?;
        let Some(seconds) = processor_seconds() else { return Ok(()) };
        let help = "Processor time of the process";
        encoder
            .encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&seconds, None)
    }
}

fn memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes: f64 = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

fn open_files() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn processor_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in brackets, may have spaces and brackets. After it, utime and stime are the 12th and the 13th field.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / TICKS)
}
