# Writes a text of made-up words, which gzip makes some three times smaller: awk -v size=BYTES -f text.awk
# It is always the same text; a shorter one is the beginning of a longer one. go-http/text.go makes the same.
function random(n) {
    state = state * 16807 % 2147483647 # Park and Miller's generator: exact in the numbers of every awk
    return state % n
}

BEGIN {
    state = 1
    letters = "abcdefghijklmnopqrstuvwxyz"
    for (i = 0; i < 256; i++) {
        word = ""
        for (left = 3 + random(8); left > 0; left--) word = word substr(letters, 1 + random(26), 1)
        words[i] = word " "
    }
    for (written = 0; written < size; written += length(word)) {
        word = substr(words[random(256)], 1, size - written)
        printf "%s", word
    }
}
