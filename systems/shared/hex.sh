#!/bin/sh
# Compiles packages of the hex registry for systems on the BEAM, with rebar3 (rebar.config) or mix (mix.exs). Runs in the system's
# folder. Its rebar.config or mix.exs names each package on a separate line with its exact version: {name, "1.2.3"} or
# {:name, "1.2.3"}.
#
# A package is the folder of its name in _checkouts, where the user puts sources. What is not there is fetched, to where the tools put
# it: _build/default/lib for rebar3, _build/deps for mix. If all are there, neither the registry nor mix's Hex is needed.
#
# usage: hex.sh have               checks whether the packages are here or the registry has the first that is not, in a second or two
#        hex.sh build OUT FILE...  fetches and compiles them into OUT/lib, an ERL_LIBS folder, and adds the system's FILEs to it as
#                                  another library; writes the version of the first package to OUT/VERSION
#
# The output of `have` is an input of the build, so it must be the same before and after the packages are fetched.
set -eu
export TERM=dumb # the output is kept in a file

if [ -f mix.exs ]; then
    tool=mix list=mix.exs fetched=_build/deps
else
    tool=rebar3 list=rebar.config fetched=_build/default/lib
fi
packages=$(sed -n 's/^[^%#]*{:\{0,1\}\([a-z_0-9]*\), *"\([0-9][^"]*\)".*/\1 \2/p' $list)

# version_in FOLDER NAME: the version that the files of a library say; nothing if they leave it to git.
version_in() {
    for file in "$1/src/$2.app.src" "$1/mix.exs" "$1/ebin/$2.app"; do
        [ ! -f "$file" ] || { cat "$file"; echo; }
    done | sed -n 's/.*{ *vsn *, *"\([0-9][^"]*\)".*/\1/p; s/.*@version *"\([0-9][^"]*\)".*/\1/p; s/.*[ (]version: *"\([0-9][^"]*\)".*/\1/p' |
        head -n 1
}

# others FOLDER: the packages in the folder that have another version, in words.
others() {
    echo "$packages" | while read -r name version; do
        found=$(version_in "$1/$name" "$name")
        [ "${found:-$version}" = "$version" ] || printf '%s' ", $name $found instead of $version"
    done | cut -c 3-
}

# The packages that must be fetched, in words.
lacking() {
    echo "$packages" | while read -r name version; do
        [ ! -d "_checkouts/$name" ] || continue
        found=$(version_in "$fetched/$name" "$name")
        { [ -d "$fetched/$name" ] && [ "${found:-$version}" = "$version" ]; } || printf '%s' ", $name $version"
    done | cut -c 3-
}

# offered NAME VERSION: whether the registry answers and has the version. If it does not answer, that is remembered for a minute, so
# that not every system waits for it.
offered() {
    if ! command -v rebar3 >/dev/null; then
        echo "rebar3 is missing, so the registry cannot be asked"
        return 1
    fi
    silence=../../target/systems/hex-is-silent
    if [ -n "$(find "$silence" -mmin -1 2>/dev/null)" ]; then
        echo "the registry did not answer a moment ago"
        return 1
    fi
    answer=$(rebar3 pkgs "$1" 2>&1 </dev/null) || true
    case $answer in
        *"Error fetching"*)
            mkdir -p "${silence%/*}" && touch "$silence" || true
            echo "the registry does not answer"
            return 1 ;;
        *[!0-9.]"$2"[!0-9.-]* | *[!0-9.]"$2") return 0 ;;
        *) echo "the registry has no $1 $2"; return 1 ;;
    esac
}

have() {
    others=$(others _checkouts)
    if [ "$others" ]; then
        echo "_checkouts has $others"
        return 1
    fi
    lacking=$(lacking)
    next=${lacking%%,*}
    if [ "$lacking" ] && ! why=$(offered "${next% *}" "${next#* }"); then
        [ ! -d _checkouts ] || why="_checkouts lacks $lacking, and $why"
        echo "$why"
        return 1
    fi
    echo "available"
}

compile() {
    if [ $tool = mix ]; then
        export MIX_ENV=prod MIX_REBAR3="$(command -v rebar3)"
        unset MIX_DEPS_PATH MIX_BUILD_PATH MIX_BUILD_ROOT
        if [ "$(lacking)" ]; then
            mix local.hex --force --if-missing
            NARROWS_FOLDERS=_checkouts elixir -r ../shared/checkouts.exs -S mix deps.get
        fi
        # mix compares the times of files. For sources from another folder, or older ones, it would keep the old compiled files.
        rm -rf _build/prod
        NARROWS_FOLDERS="_checkouts $fetched" elixir -r ../shared/checkouts.exs -S mix deps.compile
        set -- _build/prod/lib/*
    else
        # Work in a separate folder, because rebar3 would leave its lock file among the sources.
        mkdir "$out/rebar3"
        cp rebar.config "$out/rebar3"
        [ ! -d _checkouts ] || ln -s "$PWD/_checkouts" "$out/rebar3/_checkouts"
        base=$PWD/_build
        # A variant compiles the same packages for its own runtime.
        case ${out##*/} in *@*) base=$out/rebar3/_build ;; esac
        # rebar3 would keep files that an earlier runtime compiled, and libraries that are no longer in _checkouts.
        rm -rf "$base/default/checkouts" "$base"/default/lib/*/ebin/*.beam
        (cd "$out/rebar3" && REBAR_BASE_DIR=$base rebar3 compile)
        set -- "$base"/default/lib/* "$base"/default/checkouts/*
    fi
    mkdir "$out/lib"
    for library; do
        [ -d "$library/ebin" ] || continue
        name=${library##*/}
        rm -rf "${out:?}/lib/$name" # a library in _checkouts replaces the fetched one
        mkdir "$out/lib/$name"
        for part in ebin include priv; do
            for from in "$library" "_checkouts/$name"; do
                [ ! -d "$from/$part" ] || { cp -RL "$from/$part" "$out/lib/$name"; break; }
            done
        done
    done
    others=$(others "$out/lib")
    [ -z "$others" ] || { echo "it was built with $others; if a library leaves its version to git, it needs its .git"; exit 1; }
}

case $1 in
    have) have ;;
    build)
        out=$2
        shift 2
        compile >&2
        # Do not put them into OUT itself: it may have the name of a package, and the code server searches by name.
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
        echo "$packages" | head -n 1 | {
            read -r name _
            erl -noshell -eval "ok = application:load($name), {ok, V} = application:get_key($name, vsn), io:put_chars([\"$name \", V, \$\\n]), halt()."
        } > "$out/VERSION" ;;
esac
