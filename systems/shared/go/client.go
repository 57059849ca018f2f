// Package client is the common part of the Go client drivers: it reads and writes the JSON lines, keeps the callers and their
// counters, and checks every answer. It implements docs/contracts.md, "A client driver". A client only has to provide the
// interface Pool.
package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/bits"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"sync/atomic"
	"time"
)

// Answer is an answer, and when a connection of the pool became the request's own; zero if the client does not tell.
type Answer struct {
	Status int
	ID     string
	Body   []byte
	Own    time.Time
}

// Failure says why there was no answer: a class of the contract, and the client's error.
type Failure struct {
	Class  string
	Reason error
}

func (failure *Failure) Error() string { return failure.Class + ": " + failure.Reason.Error() }

// Pool is what a client provides.
type Pool interface {
	// Get makes one GET of the URL, with an end-to-end timeout.
	Get(url, id string) (Answer, *Failure)
}

type orders struct {
	URL         string `json:"url"`
	Pools       int    `json:"pools"`
	PoolSize    int    `json:"pool_size"`
	Concurrency int    `json:"concurrency"`
	TimeoutMS   int64  `json:"timeout_ms"`
	WarmupMS    int64  `json:"warmup_ms"`
	DurationMS  int64  `json:"duration_ms"`
	Rate        any    `json:"rate"`
}

// How often each outcome occurred: a class, or "ok".
type counts map[string]uint64

// How many times are in each bucket of microseconds.
type times map[uint64]uint64

// The first error of a class: what was seen, and how far into the window.
type example struct {
	seen string
	into time.Duration
}

type account struct {
	inside, total                   counts
	latency, waits, service, failed times
	// How long the requests that were open when the window closed had taken by then.
	ages   times
	firsts map[string]example
}

func newAccount() account {
	return account{counts{}, counts{}, times{}, times{}, times{}, times{}, times{}, map[string]example{}}
}

type plan struct {
	pools                  []Pool
	url                    string
	timeout                time.Duration
	windowStart, windowEnd time.Time
}

// Run carries out one trial.
func Run(startPool func(size int, timeout time.Duration) Pool) {
	input := bufio.NewReader(os.Stdin)
	var told orders
	readLine(input, &told)
	if told.Rate != nil {
		fail("this driver does not support rate")
	}
	timeout := time.Duration(told.TimeoutMS) * time.Millisecond
	plan := &plan{url: told.URL, timeout: timeout}
	for n := 0; n < told.Pools; n++ {
		plan.pools = append(plan.pools, startPool(told.PoolSize, timeout))
	}
	say(map[string]any{"event": "ready"})
	readLine(input, &struct{}{})

	plan.windowStart = time.Now().Add(time.Duration(told.WarmupMS) * time.Millisecond)
	plan.windowEnd = plan.windowStart.Add(time.Duration(told.DurationMS) * time.Millisecond)
	ended := make(chan account)
	for n := 0; n < told.Concurrency; n++ {
		go func(number int) { ended <- call(plan, number) }(n)
	}
	sum := newAccount()
	for n := 0; n < told.Concurrency; n++ {
		sum.merge(<-ended)
	}
	say(sum.done(told.DurationMS))
}

func (sum *account) merge(one account) {
	add(sum.inside, one.inside)
	add(sum.total, one.total)
	add(sum.latency, one.latency)
	add(sum.waits, one.waits)
	add(sum.service, one.service)
	add(sum.failed, one.failed)
	add(sum.ages, one.ages)
	for class, first := range one.firsts {
		if known, has := sum.firsts[class]; !has || first.into < known.into {
			sum.firsts[class] = first
		}
	}
}

// Prints the last line.
func (sum *account) done(durationMS int64) map[string]any {
	inside, total := summary(sum.inside), summary(sum.total)
	inFlight := uint64(0)
	for _, count := range sum.ages {
		inFlight += count
	}
	inside["attempts"] = inside["attempts"].(uint64) + inFlight
	inside["event"] = "done"
	inside["elapsed_us"] = durationMS * 1000
	inside["in_flight"] = inFlight
	inside["in_flight_us"] = pairs(sum.ages)
	inside["latency_us"] = pairs(sum.latency)
	inside["pool_wait_us"] = pairs(sum.waits)
	inside["service_us"] = pairs(sum.service)
	inside["failed_us"] = pairs(sum.failed)
	firsts := map[string]string{}
	for class, first := range sum.firsts {
		firsts[class] = fmt.Sprintf("%s (%.3f s into the window)", first.seen, first.into.Seconds())
	}
	inside["first_errors"] = firsts
	inside["total"] = total
	return inside
}

// One caller, which sends request after request. Requests that end inside the window count.
func call(plan *plan, number int) account {
	account := newAccount()
	prefix := strconv.Itoa(number) + "-"
	for sent := 0; ; sent++ {
		begin := time.Now()
		if !begin.Before(plan.windowEnd) {
			return account
		}
		id := prefix + strconv.Itoa(sent)
		answer, failure := plan.pools[rand.Intn(len(plan.pools))].Get(plan.url, id)
		end := time.Now()
		outcome := outcome(answer, failure, id, end.Sub(begin) > plan.timeout)
		account.total[outcome]++
		if !end.Before(plan.windowEnd) {
			account.ages[bucket(plan.windowEnd.Sub(begin))]++
		} else if !end.Before(plan.windowStart) {
			account.inside[outcome]++
			if outcome == "ok" {
				account.succeed(begin, answer.Own, end)
				continue
			}
			account.failed[bucket(end.Sub(begin))]++
			if _, known := account.firsts[outcome]; !known {
				account.firsts[outcome] = example{seen(answer, failure), end.Sub(plan.windowStart)}
			}
		}
	}
}

func (account *account) succeed(begin, own, end time.Time) {
	account.latency[bucket(end.Sub(begin))]++
	if !own.IsZero() {
		account.waits[bucket(own.Sub(begin))]++
		account.service[bucket(end.Sub(own))]++
	}
}

// Describes an error for first_errors. Long reasons are cut.
func seen(answer Answer, failure *Failure) string {
	if failure != nil {
		return fmt.Sprintf("%.300s", failure.Reason)
	}
	id := answer.ID
	if id == "" {
		id = "none"
	}
	return fmt.Sprintf("status %d, id %s, body %+.48q", answer.Status, id, answer.Body)
}

func outcome(answer Answer, failure *Failure, id string, late bool) string {
	switch {
	case failure != nil:
		if failure.Class == "other" {
			report(failure.Reason)
		}
		return failure.Class
	case late:
		return "request_timeout"
	case answer.Status != 200:
		return "status"
	case len(answer.Body) != 2:
		return "length"
	case string(answer.Body) != "ok":
		return "wrong_content"
	case answer.ID != id:
		return "wrong_id"
	}
	return "ok"
}

var reported int32

// Reports the first few unknown errors. More of them would only fill the pipe.
func report(reason error) {
	if atomic.AddInt32(&reported, 1) <= 20 {
		fmt.Fprintf(os.Stderr, "other: %v\n", reason)
	}
}

// Keeps the ten highest bits of a time in microseconds.
func bucket(took time.Duration) uint64 {
	v := uint64(took.Microseconds())
	shift := bits.Len64(v) - 10
	if shift <= 0 {
		return v
	}
	return v >> shift << shift
}

func add[K comparable](sum, more map[K]uint64) {
	for key, count := range more {
		sum[key] += count
	}
}

func summary(outcomes counts) map[string]any {
	errors, attempts := counts{}, uint64(0)
	for outcome, count := range outcomes {
		attempts += count
		if outcome != "ok" {
			errors[outcome] = count
		}
	}
	return map[string]any{"attempts": attempts, "successes": outcomes["ok"], "errors": errors}
}

func pairs(of times) [][2]uint64 {
	all := make([][2]uint64, 0, len(of))
	for bucket, count := range of {
		all = append(all, [2]uint64{bucket, count})
	}
	sort.Slice(all, func(i, j int) bool { return all[i][0] < all[j][0] })
	return all
}

func readLine(input *bufio.Reader, into any) {
	line, err := input.ReadBytes('\n')
	if err != nil {
		os.Exit(1) // Narrows has exited
	}
	if err := json.Unmarshal(line, into); err != nil {
		fail(err.Error())
	}
}

func say(event map[string]any) {
	if json.NewEncoder(os.Stdout).Encode(event) != nil {
		os.Exit(1)
	}
}

func fail(message string) {
	say(map[string]any{"event": "error", "message": message})
	os.Exit(1)
}
