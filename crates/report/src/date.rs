//! Formats seconds since the Unix epoch as a date.

/// Formats a time in UTC: `2026-01-31 09:05`. The date is computed as in Hinnant's "chrono-Compatible Low-Level Date
/// Algorithms".
pub fn utc(unix_s: f64) -> String {
    let seconds = unix_s.max(0.0) as i64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", rest / 3600, rest / 60 % 60)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_agree_with_those_of_date() {
        // By `date -u -d @N`.
        for (seconds, shown) in [
            (0.0, "1970-01-01 00:00"),
            (951_782_399.9, "2000-02-28 23:59"),
            (951_782_400.0, "2000-02-29 00:00"),
            (1_709_208_000.0, "2024-02-29 12:00"),
            (1_735_689_599.0, "2024-12-31 23:59"),
            (-5.0, "1970-01-01 00:00"),
        ] {
            assert_eq!(super::utc(seconds), shown);
        }
    }
}
