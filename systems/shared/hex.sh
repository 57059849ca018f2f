#!/bin/sh
# Packages from hex, for the systems of the BEAM that take theirs from there with rebar3 (rebar.config) or mix (mix.exs). Runs in
# the system's folder, where each package stands on a line of its own with its exact version: {name, "1.2.3"} or {:name, "1.2.3"}.
#
# usage: hex.sh have               are the packages here, or does the registry offer the first of them? Ends within a second or two
#        hex.sh build OUT FILE...  gets and compiles them into OUT/lib, an ERL_LIBS folder, with our own FILEs as one more
#                                  library in it; the version of the first package goes into OUT/VERSION
#
# What `have` prints is part of what a build is made of, so that it must not change when the packages have been fetched.
#
# The packages lie where rebar3 and mix put them: _checkouts and _build for the one, _build/deps, or else MIX_DEPS_PATH, for the other.
set -eu

if [ -f mix.exs ]; then
    tool=mix
    theirs=${MIX_DEPS_PATH:+yes}
    folders=${MIX_DEPS_PATH:=_build/deps}
else
    tool=rebar3
    folders="_checkouts _build/default/lib"
fi
packages=$(sed -n 's/^[^%#]*{:\{0,1\}\([a-z_0-9]*\), *"\([0-9][^"]*\)".*/\1 \2/p' rebar.config mix.exs 2>/dev/null || true)
first=$(echo "$packages" | head -n 1)

# All packages are in the folders; and mix reads none of them without its archive Hex.
here() {
    if [ $tool = mix ]; then
        set -- "${MIX_ARCHIVES:-${MIX_HOME:-${HOME:-}/.mix}/archives}"/hex*
        [ -e "$1" ] || return 1
    fi
    echo "$packages" | while read -r name _; do
        found=
        for folder in $folders; do [ ! -d "$folder/$name" ] || found=yes; done
        [ "$found" ] || exit 1
    done
}

# The registry answers, and has the version. Silence is kept in mind for a minute, so that many systems do not wait for it one by one.
offered() {
    name=${first% *} version=${first#* }
    if ! command -v rebar3 >/dev/null; then
        echo "without rebar3 the registry cannot be asked"
        return 1
    fi
    silence=../../target/systems/hex-is-silent
    if [ -n "$(find "$silence" -mmin -1 2>/dev/null)" ]; then
        echo "the registry did not answer a moment ago"
        return 1
    fi
    answer=$(rebar3 pkgs "$name" 2>&1 </dev/null) || true
    case $answer in
        *"Error fetching"*)
            mkdir -p "${silence%/*}" && touch "$silence" || true
            echo "the registry does not answer"
            return 1 ;;
        *[!0-9.]"$version"[!0-9.-]* | *[!0-9.]"$version") return 0 ;;
        *) echo "the registry has no $name $version"; return 1 ;;
    esac
}

compile() {
    if [ $tool = mix ]; then
        export MIX_ENV=prod MIX_DEPS_PATH MIX_REBAR3="$(command -v rebar3)"
        # What lies in a folder of the user's own is never fetched over; what was fetched once will do without a registry.
        [ "$theirs" ] || { mix local.hex --force --if-missing && mix deps.get; } || here
        # mix goes by the times of files: of another folder's sources, or older ones, it would keep what it compiled before.
        rm -rf _build/prod
        mix deps.compile
        set -- _build/prod/lib/*
    else
        # In a folder of its own: rebar3 would leave its lock file among the sources.
        mkdir "$out/rebar3"
        cp rebar.config "$out/rebar3"
        [ ! -d _checkouts ] || ln -s "$PWD/_checkouts" "$out/rebar3/_checkouts"
        base=$PWD/_build
        # A variant compiles the same packages for a runtime of its own.
        case ${out##*/} in *@*) base=$out/rebar3/_build ;; esac
        # rebar3 keeps what an earlier runtime compiled, and what is no longer in _checkouts.
        rm -rf "$base/default/checkouts" "$base"/default/lib/*/ebin/*.beam
        (cd "$out/rebar3" && REBAR_BASE_DIR=$base rebar3 compile)
        set -- "$base"/default/lib/* "$base"/default/checkouts/*
    fi
    mkdir "$out/lib"
    for library; do
        [ -d "$library/ebin" ] || continue
        name=${library##*/}
        rm -rf "${out:?}/lib/$name" # from _checkouts: instead of what was fetched
        mkdir "$out/lib/$name"
        for part in ebin include priv; do
            for from in "$library" "_checkouts/$name"; do
                [ ! -d "$from/$part" ] || { cp -RL "$from/$part" "$out/lib/$name"; break; }
            done
        done
    done
}

case $1 in
    have)
        if here || offered; then echo "in reach"; else exit 1; fi ;;
    build)
        out=$2
        shift 2
        compile >&2
        # OUT itself is no place for them: its name may be a package's, and the code server goes by names.
        ours=$out/lib/narrows/ebin
        mkdir -p "$ours"
        ERL_LIBS=$out/lib
        export ERL_LIBS
        for file; do
            case $file in
                *.erl) erlc -Werror -o "$ours" "$file" ;;
                *.ex) elixirc --warnings-as-errors -o "$ours" "$file" ;;
            esac
        done
        name=${first% *}
        erl -noshell -eval "ok = application:load($name), {ok, V} = application:get_key($name, vsn), io:put_chars([\"$name \", V, \$\\n]), halt()." > "$out/VERSION" ;;
esac
