//! Drawings of plain numbers: well-formed, named, and with everything in their data.
