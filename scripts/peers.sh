#!/bin/sh
# peers.sh: installs the frameworks that `make bench` compares with, as virtual environments below .venv/. Does nothing
# if they are there. A peer that cannot be installed is left out, and a line names it. Arguments: which peers; none: torch
# and jax. mlx is for bench/python_overhead.py.
set -u
cd "$(dirname "$0")/.."
wanted=${*:-torch jax}
peer() { # folder, package...
    case " $wanted " in *" $1 "*) ;; *) return ;; esac
    dir=.venv/$1
    shift
    [ -f "$dir/ready" ] && return
    echo "installing $* (once; PyTorch takes some 5 GB with its dependencies)"
    if { python3 -m venv "$dir" || { echo "(Debian: apt-get install python3-venv)"; false; }; } &&
        "$dir/bin/pip" install --quiet --disable-pip-version-check "$@"; then
        touch "$dir/ready"
    else
        echo "left out: $* could not be installed"
        rm -rf "$dir"
    fi
}
peer torch torch numpy setuptools hypothesis
peer jax jax optax
peer mlx "mlx[cpu]"
