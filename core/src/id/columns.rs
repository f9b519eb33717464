//! Columns: the parts of many IDs, and IDs of many parts, block by block, without a branch for each ID.
//!
//! A block is copied first. So it may come from memory of any stride, alignment and byte order. Its check and its parts see the same
//! numbers, even if another thread writes to that memory.

use crate::id::layout::Layout;
use crate::id::{Id, decimal};
use frazil_base::error::{Error, ErrorKind, Result, shown, spec_error};
use frazil_base::nearest::did_you_mean;
use frazil_base::time::LAST_MS;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The number of IDs in a block. They stay in a processor's first cache until each of their parts is written, while it fetches the next ones.
const BLOCK: usize = 128;
/// The number of rows that are composed at once, because a block of each column must fit the cache.
const COMPOSED: usize = 512;
/// The number of values above which columns are written past the caches, because the caches could not hold them.
const STREAMED: usize = 1 << 19;

/// The columns of IDs, as [`Layout::decode`] names them: `time` (Unix ms), each node field, `sequence` and `tick`. Or those that
/// [`Layout::compose`] takes, which are the same without `tick`.
pub struct Columns {
    names: Vec<String>,
    parts: Vec<Part>,
    largest: u64,
}

/// A part of an ID: its bits, as they are or as an instant. The mask is the largest value of a part that is composed.
#[derive(Clone, Copy)]
struct Part {
    shift: u32,
    mask: u64,
    factor: u64,
    offset: u64,
}

/// All bits.
const BITS: Part = Part { shift: 0, mask: u64::MAX, factor: 1, offset: 0 };

/// The rows of a column that hold no ID of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfits {
    /// The first of these rows.
    pub row: usize,
    /// The number in that row. It is 0 for a text.
    pub bits: u64,
    /// The number of these rows.
    pub count: usize,
}

impl Misfits {
    /// Returns the error of the first row as an ID, of any layout if there is none, with the note.
    pub fn error(&self, layout: Option<&Layout>, is_unsigned: bool) -> Error {
        let of_first = match i64::try_from(self.bits) {
            Err(_) if is_unsigned => {
                let why = format!("ids[{}]={} is out of range: 0 to {}", self.row, self.bits, i64::MAX);
                Err(Error::new(ErrorKind::IdInvalid, why))
            }
            _ => Id::new(self.bits as i64).and_then(|id| layout.map_or(Ok(()), |layout| layout.time_of(id).map(|_| ()))),
        };
        self.noted(&of_first.expect_err("the layout has the ID"), "ids")
    }

    fn noted(&self, error: &Error, name: &str) -> Error {
        Error::new(error.kind(), format!("{error}{}", self.note(name)))
    }

    /// Returns the end of the first row's error: which row it is, and how many there are.
    pub fn note(&self, name: &str) -> String {
        match self.count {
            1 => format!("; {name}[{}] is the only bad row", self.row),
            count => format!("; {name}[{}] is the first of {count} bad rows", self.row),
        }
    }

    /// Counts rows. `earlier` has the rows before them.
    fn and(earlier: Option<Self>, row: usize, bits: u64, count: usize) -> Option<Self> {
        Some(earlier.map_or(Misfits { row, bits, count }, |first| Misfits { count: first.count + count, ..first }))
    }
}

impl Columns {
    /// The columns of a layout: all of them, or those with these names.
    ///
    /// # Errors
    /// `UNKNOWN_KEY` for a name without a column in the layout, `SPEC` for a name that is given twice.
    pub fn of(layout: &Layout, wanted: Option<&[String]>) -> Result<Self> {
        let tick = Part { shift: layout.time_shift(), ..BITS };
        Self::chosen(layout, u64::MAX, Some(("tick", tick)), wanted)
    }

    /// The columns of which IDs are composed.
    ///
    /// # Errors
    /// As [`of`](Columns::of), and `NODE_MISSING` for a column that has no name among these.
    pub fn of_parts(layout: &Layout, given: &[String]) -> Result<Self> {
        let last = layout.tick_start_ms(layout.last_tick() + 1) - 1;
        Self::chosen(layout, (last.min(LAST_MS) - layout.epoch_ms()) as u64, None, Some(given))
    }

    /// Those among all with these names. Without a tick, none of the others may be missing.
    fn chosen(layout: &Layout, mask: u64, tick: Option<(&str, Part)>, wanted: Option<&[String]>) -> Result<Self> {
        let time = Part { shift: layout.time_shift(), mask, factor: layout.tick_ms(), offset: layout.epoch_ms() as u64 };
        let mut all = vec![("time", time)];
        for field in layout.node_fields().iter().chain([layout.sequence()]) {
            all.push((field.name(), Part { shift: field.shift(), mask: field.max(), ..BITS }));
        }
        all.extend(tick);
        let wanted = wanted.map_or_else(|| all.iter().map(|(name, _)| (*name).to_owned()).collect(), <[String]>::to_vec);
        let mut parts = Vec::new();
        for (at, name) in wanted.iter().enumerate() {
            let Some((_, part)) = all.iter().find(|(known, _)| known == name) else {
                let known: Vec<_> = all.iter().map(|(name, _)| *name).collect();
                let near = did_you_mean(name, known.iter().copied());
                let why = format!("the layout has no column {}{near}; it has: {}", shown(name), known.join(", "));
                return Err(Error::new(ErrorKind::UnknownKey, why));
            };
            if wanted[..at].contains(name) {
                return Err(spec_error(format!("the column {name} is given twice")));
            }
            parts.push(*part);
        }
        let missing = all.iter().find(|(name, _)| tick.is_none() && !wanted.iter().any(|given| given == name));
        if let Some((name, _)) = missing {
            return Err(Error::new(ErrorKind::NodeMissing, format!("the column {name} is not given")));
        }
        let low = (1 << layout.time_shift()) - 1;
        Ok(Columns { names: wanted, parts, largest: layout.last_tick() << layout.time_shift() | low })
    }

    /// One column with the IDs themselves, of any layout.
    pub fn of_ids() -> Self {
        Columns { names: vec!["id".to_owned()], parts: vec![BITS], largest: i64::MAX as u64 }
    }

    /// The name of each column, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Decodes as many IDs as each column has rows. `load` copies the IDs of a block from their memory, beginning with a row.
    ///
    /// Every row of every column is written if all IDs belong to the layout, and some are otherwise.
    ///
    /// # Errors
    /// The rows whose number [`Layout::decode`] refuses.
    pub fn decode(
        &self,
        rows: usize,
        mut load: impl FnMut(usize, &mut [u64]),
        columns: &mut [&mut [MaybeUninit<i64>]],
    ) -> std::result::Result<(), Misfits> {
        assert!(columns.len() == self.parts.len() && columns.iter().all(|column| column.len() == rows), "a row of each column for each ID");
        let streams = rows.saturating_mul(self.parts.len()) >= STREAMED;
        let write = if streams { Part::stream } else { Part::write };
        let mut block = [0; BLOCK];
        let mut misfits = None;
        for row in (0..rows).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(rows - row)];
            load(row, block);
            // No ID of the block is above the OR of them all. So most blocks need no second check.
            if block.iter().fold(0, |all, bits| all | bits) > self.largest {
                let count = block.iter().filter(|bits| **bits > self.largest).count();
                if let Some(at) = block.iter().position(|bits| *bits > self.largest) {
                    misfits = Misfits::and(misfits, row + at, block[at], count);
                }
            }
            if misfits.is_none() {
                for (part, column) in self.parts.iter().zip(columns.iter_mut()) {
                    write(*part, block, &mut column[row..row + block.len()]);
                }
            }
        }
        #[cfg(target_arch = "x86_64")]
        if streams {
            // SAFETY: every processor of x86-64 has this instruction, which comes before any other access to the columns.
            unsafe { std::arch::x86_64::_mm_sfence() }
        }
        misfits.map_or(Ok(()), Err)
    }

    /// Composes an ID for each row. `load` copies the values of a block from a column's memory, beginning with a row.
    ///
    /// Every row is written if all values fit the layout, and some are otherwise.
    ///
    /// # Errors
    /// That of [`Layout::compose`] for the first bad row, with the number of the bad rows.
    pub fn compose(&self, layout: &Layout, mut load: impl FnMut(usize, usize, &mut [u64]), ids: &mut [MaybeUninit<i64>]) -> Result<()> {
        let mut blocks = vec![[0; COMPOSED]; self.parts.len()];
        let (mut first, mut misfits) = (None, None);
        for (at, ids) in ids.chunks_mut(COMPOSED).enumerate() {
            let mut composed = [0; COMPOSED];
            let mut fits = true;
            for (column, (part, block)) in self.parts.iter().zip(&mut blocks).enumerate() {
                load(column, at * COMPOSED, &mut block[..ids.len()]);
                fits &= part.add(&block[..ids.len()], &mut composed);
            }
            if fits {
                ids.iter_mut().zip(composed).for_each(|(id, bits)| _ = id.write(bits as i64));
                continue;
            }
            for row in 0..ids.len() {
                if let Some(column) = (0..blocks.len()).find(|column| !self.parts[*column].fits(blocks[*column][row])) {
                    first.get_or_insert_with(|| self.refusal(layout, column, blocks[column][row]));
                    misfits = Misfits::and(misfits, at * COMPOSED + row, 0, 1);
                }
            }
        }
        first.zip(misfits).map_or(Ok(()), |(error, misfits)| Err(misfits.noted(&error, "parts")))
    }

    /// The error of a value that does not fit its column.
    fn refusal(&self, layout: &Layout, column: usize, value: u64) -> Error {
        let (name, most) = (&self.names[column], self.parts[column].mask);
        if name == "time" {
            return layout.min_id(value as i64).expect_err("the layout does not have the instant");
        }
        // The text of `compose`, for numbers of i64.
        let why = format!("{name}={} is out of range: {} bits allow 0 to {most}", value as i64, most.count_ones());
        Error::new(ErrorKind::OutOfRange, why)
    }
}

impl Part {
    /// Adds the value of each row of a block to the row's ID. Returns whether all fit.
    fn add(self, block: &[u64], ids: &mut [u64; COMPOSED]) -> bool {
        let Part { shift, mask, factor, offset } = self;
        let mut over = 0;
        for (id, value) in ids.iter_mut().zip(block) {
            let value = value.wrapping_sub(offset);
            over |= mask.wrapping_sub(value) | value;
            *id |= (if factor == 1 { value } else { value / factor }) << shift;
        }
        // A value above the mask has the sign bit in one of the two, because the mask has not.
        over >> 63 == 0
    }

    fn fits(self, value: u64) -> bool {
        value.wrapping_sub(self.offset) <= self.mask
    }

    /// Writes the part of each ID of a block. The compiler makes vectors of each loop.
    fn write(self, block: &[u64], column: &mut [MaybeUninit<i64>]) {
        let Part { shift, mask, factor, offset } = self;
        let rows = column.iter_mut().zip(block);
        if factor == 1 {
            rows.for_each(|(row, bits)| _ = row.write((bits >> shift & mask).wrapping_add(offset) as i64));
        } else {
            rows.for_each(|(row, bits)| _ = row.write((bits >> shift & mask).wrapping_mul(factor).wrapping_add(offset) as i64));
        }
    }
}

/// Other processors write columns through the caches.
#[cfg(not(target_arch = "x86_64"))]
impl Part {
    fn stream(self, block: &[u64], column: &mut [MaybeUninit<i64>]) {
        self.write(block, column);
    }
}

#[cfg(target_arch = "x86_64")]
impl Part {
    /// Writes like [`write`](Part::write), past the caches. A fence must follow.
    fn stream(self, block: &[u64], column: &mut [MaybeUninit<i64>]) {
        use std::arch::x86_64::*;
        if self.factor != 1 {
            return self.write(block, column);
        }
        // A pair of rows begins at a multiple of 16 bytes.
        let first = usize::from(!column.as_ptr().addr().is_multiple_of(16)).min(block.len());
        let (before, block) = block.split_at(first);
        let (rows_before, column) = column.split_at_mut(first);
        let ((pairs, after), (row_pairs, rows_after)) = (block.as_chunks::<2>(), column.as_chunks_mut::<2>());
        self.write(before, rows_before);
        self.write(after, rows_after);
        // SAFETY: every processor of x86-64 has these instructions. Each pair is read and written within its memory, which is aligned
        // for writing. `decode` ends with a fence.
        unsafe {
            let shift = _mm_cvtsi32_si128(self.shift as i32);
            let (mask, offset) = (_mm_set1_epi64x(self.mask as i64), _mm_set1_epi64x(self.offset as i64));
            for (pair, rows) in pairs.iter().zip(row_pairs) {
                let bits = _mm_loadu_si128(pair.as_ptr().cast());
                let values = _mm_add_epi64(_mm_and_si128(_mm_srl_epi64(bits, shift), mask), offset);
                _mm_stream_si128(rows.as_mut_ptr().cast(), values);
            }
        }
    }
}

/// Returns whether some of these places in memory share bytes.
pub fn overlap(mut places: Vec<Range<usize>>) -> bool {
    places.retain(|place| !place.is_empty());
    places.sort_unstable_by_key(|place| place.start);
    places.windows(2).any(|two| two[0].end > two[1].start)
}

/// Reads a column of decimal texts. A missing value is `None`, and becomes 0.
///
/// # Errors
/// The rows that [`Id::parse`](crate::Id::parse) refuses.
pub fn parse_texts<'a>(
    texts: impl IntoIterator<Item = Option<&'a [u8]>>,
    column: &mut [MaybeUninit<i64>],
) -> std::result::Result<(), Misfits> {
    let mut misfits = None;
    let mut rows = 0;
    for (row, text) in texts.into_iter().enumerate() {
        let number = text.map_or(Some(0), decimal::parse);
        if number.is_none() {
            misfits = Misfits::and(misfits, row, 0, 1);
        }
        column[row].write(number.unwrap_or(0) as i64);
        rows += 1;
    }
    assert_eq!(rows, column.len(), "a text for each row");
    misfits.map_or(Ok(()), Err)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::id::TextFormat;
    use proptest::prelude::*;

    fn filled(columns: &Columns, ids: &[u64]) -> std::result::Result<Vec<Vec<i64>>, Misfits> {
        let mut memory = vec![vec![MaybeUninit::new(-1); ids.len()]; columns.names().len()];
        let mut views: Vec<_> = memory.iter_mut().map(Vec::as_mut_slice).collect();
        columns.decode(ids.len(), |row, block| block.copy_from_slice(&ids[row..row + block.len()]), &mut views)?;
        // SAFETY: every element was initialised above.
        Ok(memory.into_iter().map(|column| column.into_iter().map(|row| unsafe { row.assume_init() }).collect()).collect())
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        let tick = prop_oneof![Just("1ms".to_owned()), (1u64..2000).prop_map(|n| format!("{n}ms")), Just("1h".to_owned())];
        let widths = (1u32..=41, prop::collection::vec(1u32..=7, 1..3), 1u32..=8, any::<prop::sample::Index>());
        (widths, tick, -10_000_000_000_000i64..10_000_000_000_000).prop_map(|((time, nodes, sequence, at), tick, epoch)| {
            let mut fields: Vec<_> = nodes.iter().enumerate().map(|(i, bits)| format!("f{i}:{bits}")).collect();
            fields.insert(at.index(fields.len() + 1), format!("sequence:{sequence}"));
            let text = format!("time:{time}@{tick} {} epoch:{}", fields.join(" "), frazil_base::time::show_epoch(epoch));
            Layout::parse(&text).expect("the layout is valid")
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Each row equals the result of `decode` for its ID, or `decode` refuses it.
        #[test]
        fn a_row_equals_its_decoded_id(layout in layouts(), bits in prop::collection::vec(any::<u64>(), 0..2100), wide in any::<bool>()) {
            let width = layout.time_shift() + layout.time_bits();
            let ids: Vec<_> = bits.iter().map(|bits| bits >> if wide && bits % 64 == 0 { 0 } else { 64 - width }).collect();
            let parts: Vec<_> = ids.iter().map(|id| Id::new(*id as i64).and_then(|id| layout.decode(id))).collect();
            let columns = Columns::of(&layout, None).unwrap();
            let bad = parts.iter().filter(|parts| parts.is_err()).count();
            match filled(&columns, &ids) {
                Err(misfits) => {
                    let row = parts.iter().position(std::result::Result::is_err).unwrap();
                    prop_assert_eq!(misfits, Misfits { row, bits: ids[row], count: bad });
                }
                Ok(filled) => {
                    prop_assert_eq!(bad, 0);
                    for (row, parts) in parts.iter().map(|parts| parts.as_ref().unwrap()).enumerate() {
                        let fields = parts.fields().map(|(_, value)| value as i64);
                        let expected = [parts.unix_ms()].into_iter().chain(fields).chain([parts.sequence() as i64, parts.tick() as i64]);
                        prop_assert!(filled.iter().map(|column| column[row]).eq(expected), "row {}", row);
                    }
                }
            }
        }

        /// Each row equals the result of `compose` for its values, or `compose` refuses it.
        #[test]
        fn a_row_equals_its_composed_id(
            layout in layouts(),
            rows in prop::collection::vec(any::<(u64, u64, bool)>(), 0..1100),
            beyond in any::<bool>(),
            order in any::<prop::sample::Index>(),
        ) {
            let mut names: Vec<_> = Columns::of(&layout, None).unwrap().names().to_vec();
            names.pop();
            let by = order.index(names.len());
            names.rotate_left(by);
            let columns = Columns::of_parts(&layout, &names).unwrap();
            let last = (layout.tick_start_ms(layout.last_tick()) + layout.tick_ms() as i64 - 1).min(LAST_MS);
            let values: Vec<Vec<u64>> = (names.iter().zip(&columns.parts).enumerate())
                .map(|(column, (name, part))| {
                    rows.iter().map(|(bits, seed, ends)| {
                        let bits = bits.rotate_left(11 * column as u32);
                        let (first, end) = if name == "time" { (layout.epoch_ms(), last) } else { (0, part.mask as i64) };
                        let span = (end - first) as u64 + 1;
                        match seed % 64 {
                            // One of the values around the ends, or any.
                            7 if beyond => bits,
                            8 if beyond => (first as u64).wrapping_sub(1 + bits % 2),
                            9 if beyond => (end as u64).wrapping_add(1 + bits % 2),
                            _ if *ends => if bits % 2 == 0 { first as u64 } else { end as u64 },
                            _ => (first as u64).wrapping_add(bits % span),
                        }
                    }).collect()
                })
                .collect();
            let one_by_one: Vec<_> = (0..rows.len()).map(|row| {
                let value = |name: &str| values[names.iter().position(|other| other == name).unwrap()][row];
                let fields: Vec<_> = layout.node_fields().iter().map(|field| (field.name(), value(field.name()))).collect();
                layout.compose(value("time") as i64, &fields, value("sequence"))
            }).collect();
            let mut ids = vec![MaybeUninit::new(-1); rows.len()];
            let composed = columns.compose(&layout, |column, row, block| block.copy_from_slice(&values[column][row..row + block.len()]), &mut ids);
            let bad = one_by_one.iter().filter(|id| id.is_err()).count();
            match (composed, one_by_one.iter().position(std::result::Result::is_err)) {
                (Ok(()), None) => for (id, one) in ids.iter().zip(one_by_one) {
                    // SAFETY: every element was initialised above.
                    prop_assert_eq!(unsafe { id.assume_init() }, one.unwrap().get());
                },
                (Err(error), Some(row)) => {
                    // The first value in the order of the columns that alone does not fit.
                    let alone = names.iter().zip(&values).find_map(|(name, values)| {
                        let of = |other: &str, fits| if other == name { values[row] } else { fits };
                        let fields: Vec<_> = layout.node_fields().iter().map(|field| (field.name(), of(field.name(), 0))).collect();
                        layout.compose(of("time", layout.epoch_ms() as u64) as i64, &fields, of("sequence", 0)).err()
                    });
                    prop_assert_eq!(error.kind(), alone.unwrap().kind());
                    let note = if bad == 1 { "the only bad row".to_owned() } else { format!("the first of {bad} bad rows") };
                    prop_assert!(error.to_string().ends_with(&format!("; parts[{row}] is {note}")), "{} {} {}", error, row, bad);
                }
                (composed, row) => prop_assert!(false, "{:?} {:?}", composed, row),
            }
        }

        /// A text of a column is an ID exactly when the parser of a single ID accepts it.
        #[test]
        fn a_text_is_parsed_as_a_single_one(text in r"[0-9]{0,21}|[ -~]{0,20}|-?[0-9]{1,9}[^0-9][0-9]{0,9}") {
            let one = Id::parse(&text, TextFormat::Decimal).ok().map(Id::get);
            let mut column = [MaybeUninit::uninit()];
            let many = parse_texts([Some(text.as_bytes())], &mut column).ok();
            prop_assert_eq!(many.is_some(), one.is_some());
            // SAFETY: parse_texts writes each row.
            prop_assert_eq!(many.map(|()| unsafe { column[0].assume_init() }), one);
        }
    }

    /// Columns that are too long for the caches, at each alignment, have the same values.
    #[test]
    fn a_long_column_equals_its_parts() {
        for text in ["twitter", "sonyflake"] {
            let columns = Columns::of(&Layout::parse(text).unwrap(), None).unwrap();
            let ids: Vec<_> = (0..STREAMED as u64 + 7).map(|row| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1).collect();
            let short: Vec<_> = ids.chunks(5000).map(|ids| filled(&columns, ids).unwrap()).collect();
            for start in 0..2 {
                let long = filled(&columns, &ids[start..]).unwrap();
                for (at, column) in long.iter().enumerate() {
                    assert!(short.iter().flat_map(|short| &short[at]).skip(start).eq(column), "{text} {at}");
                }
            }
        }
        let part = Part { shift: 12, mask: 1023, factor: 1, offset: 5 };
        let ids: Vec<_> = (0..40).map(|row: u64| row << 12 | 7).collect();
        for (first, last) in (0..4).flat_map(|first| (first..8).map(move |last| (first, last))) {
            let mut column = [MaybeUninit::new(-1); 40];
            part.stream(&ids[first..last], &mut column[first..last]);
            // SAFETY: each row was initialised, and the thread that streamed reads.
            let read = column.map(|row| unsafe { row.assume_init() });
            assert!((0..40).all(|row| read[row] == if (first..last).contains(&row) { row as i64 + 5 } else { -1 }));
        }
    }

    #[test]
    fn parts_that_make_no_id_are_refused() {
        let layout = Layout::parse("twitter").unwrap();
        let of = |names: &[&str]| Columns::of_parts(&layout, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        for (names, kind) in [
            (&["time", "datacenter", "worker", "sequence", "tick"][..], ErrorKind::UnknownKey),
            (&["time", "datacenter", "worker"], ErrorKind::NodeMissing),
            (&["datacenter", "worker", "sequence"], ErrorKind::NodeMissing),
            (&["time", "time", "datacenter", "worker", "sequence"], ErrorKind::Spec),
        ] {
            assert_eq!(of(names).err().unwrap().kind(), kind, "{names:?}");
        }
        let columns = of(&["sequence", "worker", "datacenter", "time"]).unwrap();
        let refused = |row: [u64; 4]| {
            let load = |column: usize, _, block: &mut [u64]| block[0] = row[column];
            columns.compose(&layout, load, &mut [MaybeUninit::uninit()]).unwrap_err().to_string()
        };
        assert_eq!(refused([0, 32, 0, 1656432460105]), "worker=32 is out of range: 5 bits allow 0 to 31; parts[0] is the only bad row");
        assert_eq!(
            refused([-1i64 as u64, 0, 0, 1656432460105]),
            "sequence=-1 is out of range: 12 bits allow 0 to 4095; parts[0] is the only bad row"
        );
        assert!(refused([0, 0, 0, i64::MIN as u64]).contains("before the layout's epoch"));
        assert!(refused([0, 0, 0, i64::MAX as u64]).contains("after the layout's last instant"));
    }

    #[test]
    fn places_overlap_if_they_share_a_byte() {
        assert!(!overlap(vec![8..16, 0..8, 16..16, 16..24, 16..16]));
        assert!(overlap(vec![8..16, 0..9]));
        assert!(overlap(vec![0..24, 8..16, 30..40]));
    }

    #[test]
    fn some_columns_in_another_order() {
        let layout = Layout::parse("twitter").unwrap();
        let columns = |names: &[&str]| Columns::of(&layout, Some(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()));
        assert_eq!(filled(&columns(&["worker", "time"]).unwrap(), &[1541815603606036480]).unwrap(), [[26], [1656432460105]]);
        assert!(columns(&["workers"]).err().unwrap().to_string().contains("worker"));
        assert_eq!(columns(&["tick", "tick"]).err().unwrap().kind(), ErrorKind::Spec);
        assert_eq!(filled(&Columns::of_ids(), &[7, u64::MAX, 1 << 63]), Err(Misfits { row: 1, bits: u64::MAX, count: 2 }));
    }
}
