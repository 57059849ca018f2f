%% A client with pools: Gun with Poolboy, as in MachineGun. A pool is a Poolboy pool without overflow, which hands out the worker that
%% was returned last (lifo). Each worker has one Gun connection with one request at a time.
%%
%% Contract: systems/shared/narrows_client.erl. A worker opens its connection when it is first needed, and again after a
%% loss. A request that is given up closes its connection, because HTTP/1.1 cannot cancel a request. So no late answer can be taken
%% for the next request's. Nothing is sent twice.
-module(gun_poolboy_client).
-behaviour(narrows_client).
-behaviour(gen_server).
-export([start_pool/4, get/4, version/0]).
-export([start_link/1, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start_pool(_Number, Size, Url, []) ->
    {ok, _} = application:ensure_all_started(gun),
    {ok, _} = application:ensure_all_started(poolboy),
    {ok, Pool} = poolboy:start_link([{worker_module, ?MODULE}, {size, Size}, {max_overflow, 0}, {strategy, lifo}], Url),
    Pool.

get(Pool, #{path := Path}, Id, Timeout) ->
    Deadline = narrows_client:deadline(Timeout),
    Start = erlang:monotonic_time(microsecond),
    try poolboy:checkout(Pool, true, Timeout) of
        Worker ->
            Waited = erlang:monotonic_time(microsecond) - Start,
            try narrows_client:left(Deadline) > 0 andalso gen_server:call(Worker, {get, Path, Id, Deadline}, infinity) of
                false -> {error, pool_wait, timeout};
                {ok, Status, Answered, Body} -> {ok, Status, Answered, Body, Waited};
                Error -> Error
            catch exit:Reason -> {error, other, Reason}
            after poolboy:checkin(Pool, Worker)
            end
    catch exit:{timeout, _} -> {error, pool_wait, timeout}
    end.

version() -> narrows_client:versions([gun, poolboy]).

%% The worker. Its state: {Url, none} or {Url, {Pid of the connection, its monitor, the requests it has carried}}.
start_link(Url) -> gen_server:start_link(?MODULE, Url, []).

init(Url) -> {ok, {Url, none}}.

handle_call({get, Path, Id, Deadline}, _From, {Url, Known}) ->
    case connect(Url, still_up(Known), Deadline) of
        {error, Class, Reason} ->
            {reply, {error, Class, Reason}, {Url, none}};
        {Pid, Monitor, Carried} = Connection ->
            Stream = gun:get(Pid, Path, [{<<"x-request-id">>, Id}]),
            case await(Pid, Stream, Monitor, Deadline) of
                {ok, Status, Headers, Body} ->
                    Answer = {ok, Status, proplists:get_value(<<"x-request-id">>, Headers), Body},
                    case proplists:get_value(<<"connection">>, Headers) of
                        <<"close">> -> forget(Connection), {reply, Answer, {Url, none}};
                        _ -> {reply, Answer, {Url, {Pid, Monitor, Carried + 1}}}
                    end;
                {error, Reason} ->
                    Class = class(Reason, Monitor),
                    drop(Connection),
                    {reply, {error, Class, Reason, Carried + 1}, {Url, none}}
            end
    end.

handle_cast(_, State) -> {noreply, State}.

handle_info({'DOWN', Monitor, process, Pid, _}, {Url, {Pid, Monitor, _} = Connection}) ->
    forget(Connection),
    {noreply, {Url, none}};
handle_info(_GunUpOrDown, State) ->
    {noreply, State}.

%% The connection may have been lost between two requests.
still_up(none) -> none;
still_up({_, Monitor, _} = Connection) ->
    receive {'DOWN', Monitor, process, _, _} -> forget(Connection), none
    after 0 -> Connection
    end.

connect(#{host := Host, port := Port}, none, Deadline) ->
    {ok, Pid} = gun:open(binary_to_list(Host), Port, #{retry => 0, http_opts => #{keepalive => infinity},
                                                       transport_opts => [{show_econnreset, true}]}),
    Monitor = monitor(process, Pid),
    case gun:await_up(Pid, narrows_client:left(Deadline), Monitor) of
        {ok, http} -> {Pid, Monitor, 0};
        {error, Reason} ->
            drop({Pid, Monitor, 0}),
            case Reason of
                timeout -> {error, connect_timeout, Reason};
                noproc -> {error, connect_refused, Reason}; % it ended before it could be monitored
                _ -> {error, narrows_client:class(Reason), Reason}
            end
    end;
connect(_Url, Connection, _Deadline) -> Connection.

await(Pid, Stream, Monitor, Deadline) ->
    case gun:await(Pid, Stream, narrows_client:left(Deadline), Monitor) of
        {response, fin, Status, Headers} -> {ok, Status, Headers, <<>>};
        {response, nofin, Status, Headers} ->
            case gun:await_body(Pid, Stream, narrows_client:left(Deadline), Monitor) of
                {ok, Body} -> {ok, Status, Headers, Body};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason};
        Other -> {error, {unexpected, Other}}
    end.

%% The request was sent, because its connection was up. Gun only reports that the connection was lost. The reason is in the exit of
%% its process, which follows immediately. If Gun cannot parse what it reads, it crashes.
class(timeout, _) -> request_timeout;
class({closed, _}, Monitor) ->
    receive {'DOWN', Monitor, process, _, Reason} -> class(Reason, Monitor)
    after 1000 -> closed_early
    end;
class(Reason, _) when is_atom(Reason); element(1, Reason) =:= shutdown -> narrows_client:class(Reason);
class(_, _) -> protocol.

%% Gun closes a connection itself if the server has announced a close, or has closed.
forget({Pid, Monitor, _}) ->
    demonitor(Monitor, [flush]),
    gun:flush(Pid).

drop({Pid, _, _} = Connection) ->
    _ = gun:close(Pid),
    forget(Connection).
