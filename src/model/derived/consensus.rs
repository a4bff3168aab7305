//! The consensus of several bookmakers: the median of each one's own fair probabilities.

/// The least number of bookmakers that make a consensus.
pub const CONSENSUS_MIN: usize = 3;

/// Joins the fair probabilities of bookmakers. Its buffer is reused from bet to bet.
#[derive(Debug, Default)]
pub struct Consensus {
    column: Vec<f64>,
}

impl Consensus {
    /// Appends the median of each outcome, rescaled so that they sum to the number of winners. `fair` has the probabilities of
    /// one bookmaker after the other. Appends nothing and returns false where there are too few bookmakers, or where no
    /// probabilities follow.
    pub fn append(&mut self, fair: &[f64], outcomes: usize, winners: f64, out: &mut Vec<f64>) -> bool {
        if outcomes == 0 || fair.len() / outcomes < CONSENSUS_MIN {
            return false;
        }
        let start = out.len();
        for outcome in 0..outcomes {
            self.column.clear();
            self.column.extend(fair.iter().skip(outcome).step_by(outcomes));
            out.push(median(&mut self.column));
        }
        let factor = winners / out[start..].iter().sum::<f64>();
        out[start..].iter_mut().for_each(|fair| *fair *= factor);
        let is_sound = out[start..].iter().all(|fair| *fair > 0.0 && *fair < 1.0);
        if !is_sound {
            out.truncate(start);
        }
        is_sound
    }
}

/// The middle value, or the mean of the two in the middle. There is at least one.
fn median(values: &mut [f64]) -> f64 {
    let (middle, is_odd) = (values.len() / 2, values.len() % 2 == 1);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if is_odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::MIN, f64::max);
    f64::midpoint(lower, upper)
}
