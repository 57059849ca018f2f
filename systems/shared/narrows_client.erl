%% The common part of the client drivers on the BEAM: it reads and writes the JSON lines, keeps the callers and their counters, and
%% checks every answer. It implements docs/contracts.md, "A client driver". A client only has to provide a module with the
%% callbacks below.
%%
%% usage: erl -noshell ... -run narrows_client main MODULE [ARG ...]
-module(narrows_client).
-export([main/1, answer/3, bounded/2, class/1, deadline/1, left/1, versions/1]).

%% Starts one pool of Size connections to Host:Port. Number distinguishes the pools of this process. Args are the rest of the command line.
-callback start_pool(Number :: pos_integer(), Size :: pos_integer(), Url :: map(), Args :: [string()]) -> Pool :: term().
%% The same for a client that has one pool per server, or chooses among its pools itself: starts all of them as one.
-callback start_pools(Pools :: pos_integer(), Size :: pos_integer(), Url :: map(), Args :: [string()]) -> Pool :: term().
-optional_callbacks([start_pool/4, start_pools/4]).
%% Makes one GET of the URL within Timeout milliseconds, including the wait for the pool. Header names are in lower case. Waited is how
%% many microseconds passed until a connection of the pool was the request's own, if the client can tell.
-callback get(Pool :: term(), Url :: map(), Id :: binary(), Timeout :: pos_integer()) ->
    {ok, Status :: integer(), Id :: binary() | undefined, Body :: binary(), Waited :: non_neg_integer() | unknown} |
    {error, class(), Reason :: term()} |
    {error, class(), Reason :: term(), Ordinal :: pos_integer()}. % which request of its connection failed, if the client can tell
%% The libraries under test. Their versions are read from their applications.
-callback version() -> iodata().

-type class() :: connect_refused | connect_timeout | pool_wait | busy | request_timeout | timeout | reset | closed_early | protocol | other.

-record(caller, {client, pools, url, timeout, window_start, window_end, number,
                 schedule,             % the process that says when requests are due, or `closed` for a closed loop
                 late = 0,             % requests that ended inside the window and were sent more than a millisecond after they were due
                 sent = 0,             % requests so far; also the id of the next, and all attempts
                 ages = #{},           % bucket => 1, for a request that was open when the window closed
                 inside = #{},         % outcome => count, for requests that ended inside the window
                 total = #{},          % outcome => count, for all requests
                 latency = #{},        % bucket => count, for successes inside the window; in an open loop for those that were due in it
                 unanswered = #{},     % bucket => count, in an open loop for requests that failed and were due in the window
                 waits = #{},          % bucket => count, for their waits for the pool, if known
                 service = #{},        % bucket => count, for the rest of their times
                 failed = #{},         % bucket => count, for errors inside the window
                 ordinals = #{},       % which request of its connection => count, for those errors, if known
                 firsts = #{}}).       % class => {microseconds into the window, reason}

main([Module | Args]) ->
    %% Standard output belongs to the contract. The class of an error says what matters.
    ok = logger:set_primary_config(level, none),
    ok = io:setopts(standard_io, [binary]),
    spawn(fun() ->
        %% A pool that ends takes the process with it that started it.
        {_, Monitor} = spawn_monitor(fun() -> run(list_to_atom(Module), Args) end),
        receive {'DOWN', Monitor, process, _, Why} ->
            io:format(standard_error, "~0p~n", [Why]),
            fail(io_lib:format("~0p", [reason(Why)]))
        end
    end).

%% Why a process ended, without where.
reason({Reason, Stack}) when is_list(Stack) -> Reason;
reason(Reason) -> Reason.

run(Client, Args) ->
    #{<<"url">> := Text, <<"pools">> := Pools, <<"pool_size">> := Size, <<"concurrency">> := Concurrency,
      <<"timeout_ms">> := Timeout, <<"warmup_ms">> := Warmup, <<"duration_ms">> := Duration} = Config = read_line(),
    #{host := Host, port := Port, path := Path} = uri_string:parse(Text),
    Url = #{text => Text, host => Host, port => Port, path => Path},
    persistent_term:put(?MODULE, counters:new(1, [])),
    {module, Client} = code:ensure_loaded(Client),
    AllPools = case erlang:function_exported(Client, start_pools, 4) of
                   true -> {Client:start_pools(Pools, Size, Url, Args)};
                   false -> list_to_tuple([Client:start_pool(N, Size, Url, Args) || N <- lists:seq(1, Pools)])
               end,
    %% What formats a reason is loaded now. When the connections have taken all files, no module can be.
    [_ = first({0, Answer}) || Answer <- [{error, other, {reason, "text"}}, {ok, 200, <<>>, <<>>, unknown}]],
    write_line({[{event, <<"ready">>}]}),
    #{<<"go">> := true} = read_line(),

    Begin = now_us(),
    WindowStart = Begin + 1000 * Warmup,
    WindowEnd = WindowStart + 1000 * Duration,
    Schedule = schedule(Config, Begin, WindowStart, WindowEnd),
    Caller = #caller{client = Client, pools = AllPools, url = Url, timeout = Timeout, schedule = Schedule,
                     window_start = WindowStart, window_end = WindowEnd},
    Callers = [spawn_monitor(fun() -> call(Caller#caller{number = integer_to_binary(N)}) end) || N <- lists:seq(1, Concurrency)],
    Ended = [receive {'DOWN', Ref, process, Pid, {ended, C}} -> C;
                     {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
             end || {Pid, Ref} <- Callers],

    Inside = sum([C#caller.inside || C <- Ended]),
    Total = sum([C#caller.total || C <- Ended]),
    Sent = lists:sum([C#caller.sent || C <- Ended]),
    InFlight = lists:sum([maps:size(C#caller.ages) || C <- Ended]),
    Pairs = fun(Field) ->
        Counts = sum([element(Field, C) || C <- Ended]),
        [[Bucket, Count] || {Bucket, Count} <- lists:sort(maps:to_list(Counts))]
    end,
    {Dropped, Ages} = dropped(Schedule, Sent),
    Firsts = lists:foldl(fun(C, Known) -> maps:merge_with(fun(_, A, B) -> min(A, B) end, C#caller.firsts, Known) end, #{}, Ended),
    write_line({[
                {event, <<"done">>},
                {elapsed_us, 1000 * Duration},
                {attempts, lists:sum(maps:values(Inside)) + InFlight},
                {successes, maps:get(ok, Inside, 0)},
                {errors, {maps:to_list(maps:remove(ok, Inside))}},
                {in_flight, InFlight},
                {in_flight_us, Pairs(#caller.ages)},
                {latency_us, Pairs(#caller.latency)},
                {unanswered_us, Pairs(#caller.unanswered) ++ Ages},
                {pool_wait_us, Pairs(#caller.waits)},
                {service_us, Pairs(#caller.service)},
                {failed_us, Pairs(#caller.failed)},
                {failed_ordinals, lists:sublist(Pairs(#caller.ordinals), 32)},
                {late, lists:sum([C#caller.late || C <- Ended])},
                {dropped, Dropped},
                {first_errors, {[{Class, first(First)} || {Class, First} <- maps:to_list(Firsts)]}},
                {total, {[
                    {attempts, Sent},
                    {successes, maps:get(ok, Total, 0)},
                    {errors, {maps:to_list(maps:remove(ok, Total))}}]}},
                {version, iolist_to_binary(Client:version())}]}),
    halt(0).

%% One caller, which sends request after request. Requests that end inside the window count.
call(Caller = #caller{window_end = End}) ->
    case due(Caller) of
        {_, Start} when Start >= End -> exit({ended, Caller});
        {Due, Start} -> call(request(Due, Start, Caller))
    end.

request(Due, Start, Caller = #caller{client = Client, pools = Pools, url = Url, timeout = Timeout, number = Number, sent = Sent,
                                     total = Total}) ->
    Id = <<Number/binary, $-, (integer_to_binary(Sent))/binary>>,
    Pool = element(rand:uniform(tuple_size(Pools)), Pools),
    %% The wait for a free caller is part of the request's time.
    Answer = Client:get(Pool, Url, Id, max(1, Timeout - (Start - Due) div 1000)),
    End = now_us(),
    Outcome = outcome(Answer, Id, End - Due, 1000 * Timeout),
    Next = Caller#caller{sent = Sent + 1, total = add(Outcome, Total)},
    if
        End >= Caller#caller.window_end ->
            timed(Outcome, Due, End, Next#caller{ages = #{bucket(Caller#caller.window_end - Due) => 1}});
        End < Caller#caller.window_start -> Next;
        Start - Due > 1000 -> inside(Outcome, Answer, {Due, Start, End}, Next#caller{late = Next#caller.late + 1});
        true -> inside(Outcome, Answer, {Due, Start, End}, Next)
    end.

%% In an open loop, records the time of a request that ended after the window, if it was due in it.
timed(_, _, _, Caller = #caller{schedule = closed}) -> Caller;
timed(_, Due, _, Caller = #caller{window_start = Start}) when Due < Start -> Caller;
timed(ok, Due, End, Caller = #caller{latency = Latency}) -> Caller#caller{latency = add(bucket(End - Due), Latency)};
timed(_, Due, End, Caller) -> unanswered(Due, End, Caller).

%% In an open loop, records the age of a request that failed.
unanswered(Due, End, Caller = #caller{unanswered = Ages, window_start = Start}) when
        Caller#caller.schedule =/= closed, Due >= Start ->
    Caller#caller{unanswered = add(bucket(End - Due), Ages)};
unanswered(_, _, Caller) -> Caller.

%% Counts a request that ended inside the window.
inside(ok, {ok, _, _, _, Waited}, {Due, Start, End}, Caller = #caller{inside = Inside, latency = Latency}) ->
    Times = case Caller of
        #caller{schedule = Schedule, window_start = From} when Schedule =/= closed, Due < From -> Latency;
        _ -> add(bucket(End - Due), Latency)
    end,
    Known = Caller#caller{inside = add(ok, Inside), latency = Times},
    case Waited of
        unknown -> Known;
        _ -> Known#caller{waits = add(bucket(Start - Due + Waited), Known#caller.waits),
                          service = add(bucket(max(0, End - Start - Waited)), Known#caller.service)}
    end;
inside(Class, Answer, {Due, Start, End}, Before = #caller{inside = Inside, failed = Failed, firsts = Firsts}) ->
    Caller = unanswered(Due, End, Before),
    First = {End - Caller#caller.window_start, Answer},
    Ordinals = case Answer of {error, _, _, Ordinal} -> add(Ordinal, Caller#caller.ordinals); _ -> Caller#caller.ordinals end,
    Caller#caller{inside = add(Class, Inside), failed = add(bucket(End - Start), Failed), ordinals = Ordinals,
                  firsts = case Firsts of #{Class := _} -> Firsts; _ -> Firsts#{Class => First} end}.

%% Open loop: hands out the arrivals one by one, in order, to idle callers. The schedule does not depend on answers: if every caller is
%% busy, an arrival waits for one, and is given up when its time is over.
-record(schedule, {start, gap, random,   % microseconds; `constant`, or the state of the random numbers
                   mass = 0,             % when the next arrival is due, in gaps
                   window_start, window_end, timeout,
                   handed = 0, dropped = 0,
                   ages = []}).           % how long dropped arrivals waited

%% No client on the BEAM sends more requests per second.
-define(MOST, 1.0e6).

schedule(#{<<"rate">> := Rate, <<"timeout_ms">> := Timeout} = Config, Begin, WindowStart, WindowEnd) when is_number(Rate) ->
    Rate > 0 andalso Rate =< ?MOST orelse fail(io_lib:format("rate is ~w; this driver supports rates above 0 and up to ~w", [Rate, ?MOST])),
    Random = case maps:get(<<"gaps">>, Config, <<"constant">>) of
                 <<"constant">> -> constant;
                 <<"poisson">> -> rand:seed_s(exsss, maps:get(<<"seed">>, Config, 0));
                 Other -> fail(["gaps must be constant or poisson, not ", Other])
             end,
    Schedule = #schedule{start = Begin, gap = 1.0e6 / Rate, random = Random, window_start = WindowStart, window_end = WindowEnd,
                         timeout = 1000 * Timeout},
    spawn_link(fun() -> hand_out(if Random =:= constant -> Schedule; true -> later(Schedule) end) end);
schedule(_, _, _, _) -> closed.

hand_out(Schedule) ->
    receive
        {next, Caller, Ref} ->
            {Due, Next} = next(Schedule, now_us()),
            Caller ! {Ref, Due},
            hand_out(Next);
        {over, Caller, Ref, Sent} ->
            %% Arrivals that nobody took, and arrivals that a caller took too late to send.
            #schedule{handed = Handed, dropped = Dropped, ages = Ages} = rest(Schedule),
            Caller ! {Ref, {Dropped + Handed - Sent, Ages}}
    end.

%% After the last arrival of the window, answers the end of the window.
next(Schedule = #schedule{window_end = End, timeout = Timeout, window_start = Start}, Now) ->
    case arrival(Schedule) of
        Due when Due >= End -> {End, Schedule};
        Due when Due + Timeout > Now -> {Due, (later(Schedule))#schedule{handed = Schedule#schedule.handed + 1}};
        _ when Now < Start -> next(later(Schedule), Now);
        Due -> next(drop(Schedule, Now - Due), Now)
    end.

rest(Schedule = #schedule{window_end = End}) ->
    case arrival(Schedule) of
        Due when Due < End -> rest(drop(Schedule, End - Due));
        _ -> Schedule
    end.

%% Drops the next arrival, which has waited so long.
drop(Schedule = #schedule{dropped = Dropped, ages = Ages}, Age) ->
    (later(Schedule))#schedule{dropped = Dropped + 1, ages = [[bucket(Age), 1] | Ages]}.

arrival(#schedule{start = Start, gap = Gap, mass = Mass}) -> Start + trunc(Gap * Mass).

later(Schedule = #schedule{mass = Mass, random = constant}) -> Schedule#schedule{mass = Mass + 1};
later(Schedule = #schedule{mass = Mass, random = Random}) ->
    {Uniform, Next} = rand:uniform_real_s(Random),
    Schedule#schedule{mass = Mass - math:log(Uniform), random = Next}.

%% The number of arrivals that were given up, and their ages.
dropped(closed, _) -> {0, []};
dropped(Schedule, Sent) -> ask(Schedule, fun(Ref) -> {over, self(), Ref, Sent} end).

%% Waits until the next request is due. Returns when it was due, and the time now.
due(#caller{schedule = closed}) ->
    Now = now_us(),
    {Now, Now};
due(#caller{schedule = Schedule}) ->
    Due = ask(Schedule, fun(Ref) -> {next, self(), Ref} end),
    wait_until(Due),
    {Due, now_us()}.

ask(Schedule, Question) ->
    Ref = make_ref(),
    Schedule ! Question(Ref),
    receive {Ref, Answer} -> Answer end.

%% The runtime's timers have a resolution of a millisecond. During the last millisecond the caller yields instead of sleeping.
wait_until(Due) ->
    case Due - now_us() of
        Left when Left > 2000 ->
            receive after Left div 1000 - 1 -> wait_until(Due) end;
        Left when Left > 0 ->
            erlang:yield(),
            wait_until(Due);
        _ -> ok
    end.

%% Describes an error for first_errors: what was seen, and when. Long reasons are cut.
first({Into, Answer}) -> iolist_to_binary([seen(Answer), io_lib:format("~.3f s into the window)", [Into / 1.0e6])]).

seen({error, _, Reason}) -> [term(Reason), " ("];
seen({error, _, Reason, Nth}) -> [term(Reason), io_lib:format(" (exchange ~b of its connection, ", [Nth])];
seen({ok, Status, Id, Body, _}) ->
    Bytes = binary:part(Body, 0, min(48, byte_size(Body))),
    Known = case Id of undefined -> <<"none">>; _ -> Id end,
    [io_lib:format("status ~w, id ", [Status]), Known, ", body \"", [visible(C) || <<C>> <= Bytes], "\" ("].

term(Reason) -> io_lib:format("~0p", [Reason], [{chars_limit, 300}]).

visible(C) when C < $\s; C > $~; C =:= $"; C =:= $\\ -> io_lib:format("\\x~2.16.0b", [C]);
visible(C) -> C.

outcome({error, Class, Reason}, _, _, _) -> failed(Class, Reason);
outcome({error, Class, Reason, _}, _, _, _) -> failed(Class, Reason);
outcome({ok, _, _, _, _}, _, Took, Most) when Took > Most -> request_timeout;
outcome({ok, 200, Id, <<"ok">>, _}, Id, _, _) -> ok;
outcome({ok, 200, _, <<"ok">>, _}, _, _, _) -> wrong_id;
outcome({ok, 200, _, Body, _}, _, _, _) when byte_size(Body) =:= 2 -> wrong_content;
outcome({ok, 200, _, _, _}, _, _, _) -> length;
outcome({ok, _, _, _, _}, _, _, _) -> status.

failed(other, Reason) ->
    report(Reason),
    other;
failed(Class, _) -> Class.

%% For clients whose timeouts do not bound a whole request including the wait for the pool: runs Get in a separate process, and gives
%% up in time. It waits slightly longer than the timeout, so that the client can report first what it waited for. An answer in that
%% time is still late. Whether a given-up request had been sent is unknown; it counts as timeout.
bounded(Timeout, Get) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({answer, Get()}) end),
    receive
        {'DOWN', Ref, process, Pid, {answer, Answer}} -> Answer;
        {'DOWN', Ref, process, Pid, Reason} -> {error, other, Reason}
    after Timeout + 20 ->
        exit(Pid, kill),
        demonitor(Ref, [flush]),
        {error, timeout, timeout}
    end.

%% The deadline of a request, and the milliseconds left until a deadline.
deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout.

left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

%% An answer whose headers are strings or binaries in any case, from a client that does not tell its wait for the pool.
answer(Status, Headers, Body) ->
    Ids = [iolist_to_binary(Id) || {Name, Id} <- Headers, iolist_size(Name) =:= 12, string:equal(Name, "x-request-id", true)],
    {ok, Status, case Ids of [Id] -> Id; _ -> undefined end, iolist_to_binary(Body), unknown}.

%% "gun 1.3.3, poolboy 1.5.2"
versions(Applications) ->
    [application:load(A) || A <- Applications],
    lists:join(", ", [[atom_to_list(A), " ", element(2, {ok, _} = application:get_key(A, vsn))] || A <- Applications]).

%% The class of an error. It is a socket's error, or a term that several clients use, possibly wrapped in other terms. A client whose
%% `timeout' means that the request was sent says so itself.
class(R) when R =:= econnrefused; R =:= emfile; R =:= enfile -> connect_refused; % by the peer, or by the kernel: too many open files
class(R) when R =:= etimedout; R =:= connect_timeout -> connect_timeout;
class(R) when R =:= checkout_timeout; R =:= pool_timeout -> pool_wait;
class(timeout) -> timeout;
class(R) when R =:= econnreset; R =:= epipe -> reset;
class(R) when R =:= closed; R =:= closing; R =:= connection_closed; R =:= normal; R =:= noproc -> closed_early;
class(busy) -> busy;
class({R, _}) when R =:= closed; R =:= goaway -> closed_early;
class({Around, R}) when Around =:= error; Around =:= shutdown; Around =:= down; Around =:= stream_error; Around =:= connection_error -> class(R);
class(_) -> other.

%% Reports the first few unknown errors. More of them would only fill the pipe. A report that fails must not end a caller.
report(Reason) ->
    Counter = persistent_term:get(?MODULE),
    counters:add(Counter, 1, 1),
    counters:get(Counter, 1) > 20 orelse catch io:format(standard_error, "other: ~0p~n", [Reason]).

bucket(V) when V < 1024 -> V;
bucket(V) -> bucket(V bsr 1, 1).
bucket(V, S) when V < 1024 -> V bsl S;
bucket(V, S) -> bucket(V bsr 1, S + 1).

now_us() -> erlang:monotonic_time(microsecond).

add(Key, Map) -> maps:update_with(Key, fun(N) -> N + 1 end, 1, Map).

sum(Maps) -> lists:foldl(fun(M, Sum) -> maps:merge_with(fun(_, A, B) -> A + B end, M, Sum) end, #{}, Maps).

%% JSON: reads a flat object and writes an object. Supports only what the contract needs.
read_line() ->
    case io:get_line(standard_io, "") of
        Line when is_binary(Line) ->
            Pair = <<"\"(\\w+)\"\\s*:\\s*(?:\"([^\"]*)\"|([^\\s,}]+))">>,
            case re:run(Line, Pair, [global, {capture, all_but_first, binary}]) of
                {match, Pairs} -> maps:from_list([pair(P) || P <- Pairs]);
                nomatch -> fail(["not a JSON object: ", Line])
            end;
        _EndOfInput -> halt(1)
    end.

pair([Key, Text]) -> {Key, Text};
pair([Key, _, <<"true">>]) -> {Key, true};
pair([Key, _, <<"false">>]) -> {Key, false};
pair([Key, _, <<"null">>]) -> {Key, null};
pair([Key, _, Number]) ->
    {Key, try binary_to_integer(Number) catch error:badarg -> binary_to_float(Number) end}.

write_line(Object) -> ok = io:put_chars(standard_io, [json(Object), $\n]).

json(N) when is_integer(N) -> integer_to_list(N);
json(Text) when is_binary(Text) -> [$", [escape(C) || <<C>> <= Text], $"];
json({Pairs}) -> ["{", lists:join(",", [[json(atom_to_binary(Key)), $:, json(V)] || {Key, V} <- Pairs]), "}"];
json(Array) -> ["[", lists:join(",", [json(V) || V <- Array]), "]"].

escape(C) when C =:= $"; C =:= $\\ -> [$\\, C];
escape(C) when C < 32; C > 126 -> io_lib:format("\\u~4.16.0b", [C]);
escape(C) -> C.

fail(Message) ->
    write_line({[{event, <<"error">>}, {message, iolist_to_binary(Message)}]}),
    halt(1).
