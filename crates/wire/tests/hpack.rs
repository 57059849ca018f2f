//! HPACK beside independent implementations: what our templates mean to loona-hpack, and what httlib-hpack's encoder means to us.

use httlib_hpack::Encoder;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::h2::{Decoder, RequestHeads, ResponseHeads, Templates, put_field};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Names of both tables and others, and values with which Huffman's code is shorter or longer.
fn fields() -> impl Strategy<Value = Fields> {
    let known = prop::sample::select(vec![
        ":status",
        ":path",
        "content-length",
        "cookie",
        "authorization",
        "x-a",
        "via",
    ]);
    let name = prop_oneof![
        known.prop_map(|name| name.as_bytes().to_vec()),
        "[a-z]{1,8}".prop_map(String::into_bytes)
    ];
    let value = prop_oneof![
        Just(b"200".to_vec()),
        "[a-z0-9/]{0,40}".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..40),
        (1000..3000_usize).prop_map(|length| vec![b'v'; length])
    ];
    vec((name, value), 0..8)
}

fn read(decoder: &mut Decoder, block: &[u8]) -> Fields {
    let mut list = Vec::new();
    decoder.decode(block, |name, value| list.push((name.to_vec(), value.to_vec()))).expect("a right block");
    list
}

fn independent(decoder: &mut loona_hpack::Decoder<'_>, block: &[u8]) -> Fields {
    decoder.decode(block).expect("a right block")
}

proptest! {
    #[test]
    fn templates_mean_the_same_to_another_decoder(list in fields(), others in vec(0..3_usize, 0..6)) {
        let pairs = list.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
        let templates = Templates::new(pairs);
        let (mut theirs, mut ours) = (loona_hpack::Decoder::new(), Decoder::default());
        let mut plain = Vec::new();
        list.iter().for_each(|(name, value)| put_field(&mut plain, name, value));
        let after = [&templates.repeat, &templates.plain, &plain];
        let blocks = std::iter::once(&templates.first).chain(others.iter().map(|other| after[*other]));
        for block in blocks {
            prop_assert_eq!(&independent(&mut theirs, block), &list);
            prop_assert_eq!(&read(&mut ours, block), &list);
        }
    }

    #[test]
    fn what_another_encoder_writes_is_read(lists in vec(vec((fields(), 0..8_u8), 1..3), 1..20)) {
        let (mut encoder, mut decoder, mut theirs) =
            (Encoder::default(), Decoder::default(), loona_hpack::Decoder::new());
        for list in lists {
            let (mut block, mut wanted) = (Vec::new(), Fields::new());
            for (fields, flags) in list {
                for (name, value) in fields {
                    // Bits: the value and the name in Huffman's code, and inserted or not.
                    let field = (name.clone(), value.clone(), flags & 0b111);
                    encoder.encode(field, &mut block).expect("it writes");
                    wanted.push((name, value));
                }
            }
            prop_assert_eq!(&read(&mut decoder, &block), &wanted);
            prop_assert_eq!(&independent(&mut theirs, &block), &wanted);
        }
    }

    /// Whether a block is remembered or not changes nothing.
    #[test]
    fn heads_that_are_remembered_are_those_that_are_decoded(
        list in vec((fields(), 0..8_u8), 1..4), order in vec((0..4_usize, 1..100_u32), 1..8),
    ) {
        let mut encoder = Encoder::default();
        let mut heads = ResponseHeads::watching("");
        let mut decoder = Decoder::default();
        for (which, times) in order {
            let (fields, flags) = &list[which % list.len()];
            let mut block = vec![0x88];
            for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
                encoder.encode((name.clone(), value.clone(), flags & 0b111), &mut block).expect("it writes");
            }
            for _ in 0..times {
                let mut text = Vec::new();
                let decoded = decoder.decode(&block, |name, value| {
                    if name != b":status" { text.push((name.to_vec(), value.to_vec())) }
                });
                // What was sent before may not be in the table any more when it is sent again.
                match (heads.response(&block), decoded) {
                    (Ok(Ok(head)), Ok(_)) => {
                        let lines: Vec<u8> = text.iter()
                            .flat_map(|(name, value)| [name, &b": "[..], value, b"\r\n"].concat()).collect();
                        prop_assert_eq!(&head.text[12..head.text.len() - 2], &lines[..]);
                    }
                    (Ok(Err(_)), Ok(_)) => {}
                    (Err(ours), Err(other)) => {
                        prop_assert_eq!(ours, other);
                        return Ok(());
                    }
                    (ours, other) => prop_assert!(false, "{:?} {:?}", ours, other),
                }
            }
        }
    }

    /// Our decoder is as strict as the independent one, or stricter.
    #[test]
    fn arbitrary_blocks_are_refused_or_mean_the_same(blocks in vec(vec(any::<u8>(), 0..40), 1..6)) {
        let (mut ours, mut theirs) = (Decoder::default(), loona_hpack::Decoder::new());
        theirs.set_max_allowed_table_size(4096);
        let mut requests = RequestHeads::watching("");
        for block in blocks {
            let mut list = Fields::new();
            let result = ours.decode(&block, |name, value| list.push((name.to_vec(), value.to_vec())));
            prop_assert_eq!(requests.request(&block).is_ok(), result.is_ok());
            if result.is_err() {
                return Ok(());
            }
            prop_assert_eq!(independent(&mut theirs, &block), list);
        }
    }
}
