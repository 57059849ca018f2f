package main

// makeText returns a text of made-up words, which gzip makes some three times smaller: the same as
// systems/shared/text.awk.
func makeText(size int) []byte {
	state := 1
	random := func(n int) int {
		state = state * 16807 % 2147483647
		return state % n
	}
	var words [256][]byte
	for i := range words {
		for left := 3 + random(8); left > 0; left-- {
			words[i] = append(words[i], byte('a'+random(26)))
		}
		words[i] = append(words[i], ' ')
	}
	text := make([]byte, 0, size+16)
	for len(text) < size {
		text = append(text, words[random(len(words))]...)
	}
	return text[:size]
}
