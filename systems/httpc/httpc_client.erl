%% A client with pools: Erlang's own HTTP client (httpc of inets). A pool is a profile with max_sessions kept connections.
%%
%% Contract: systems/shared/narrows_client.erl. httpc has no hard limit: it sends what its sessions cannot take on further
%% connections. Its own timeout starts only when its manager takes the request, which is late under load. A request that waits
%% unsent behind another one of its session ends with the same error as one that was sent, so the class is timeout.
-module(httpc_client).
-behaviour(narrows_client).
-export([start_pool/4, get/4, version/0]).

start_pool(Number, Size, _Url, [Pipelining]) ->
    {ok, _} = application:ensure_all_started(inets),
    Profile = list_to_atom("pool_" ++ integer_to_list(Number)),
    {ok, _} = inets:start(httpc, [{profile, Profile}]),
    Options = case list_to_integer(Pipelining) of
                  0 -> [{pipeline_timeout, 0}];
                  Length -> [{pipeline_timeout, 120000}, {max_pipeline_length, Length}]
              end,
    ok = httpc:set_options([{max_sessions, Size} | Options], Profile),
    Profile.

get(Profile, #{text := Url}, Id, Timeout) ->
    Request = {binary_to_list(Url), [{"x-request-id", binary_to_list(Id)}]},
    Options = [{timeout, Timeout}, {connect_timeout, Timeout}, {autoredirect, false}],
    narrows_client:bounded(Timeout, fun() -> answer(httpc:request(get, Request, Options, [{body_format, binary}], Profile)) end).

answer({ok, {{_, Status, _}, Headers, Body}}) -> narrows_client:answer(Status, Headers, Body);
answer({error, {failed_connect, [_, {inet, _, timeout}]} = R}) -> {error, connect_timeout, R};
answer({error, {failed_connect, [_, {inet, _, Reason}]} = R}) -> {error, narrows_client:class(Reason), R};
answer({error, socket_closed_remotely = R}) -> {error, closed_early, R};
answer({error, session_remotely_closed = R}) -> {error, closed_early, R};
answer({error, {could_not_parse_as_http, _} = R}) -> {error, protocol, R};
answer({error, R}) -> {error, narrows_client:class(R), R}.

version() -> narrows_client:versions([inets]).
