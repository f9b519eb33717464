# Common to all findings, which source it. Makes a temporary folder, which is removed at the end, and compares outputs.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Installs npm packages without running their scripts.
npm_packages() { # NAME@VERSION...
    printf '{"type": "module"}\n' > package.json
    npm install --silent --no-audit --no-fund --ignore-scripts "$@" > /dev/null
    cat > show.mjs <<'JS'
// Prints what each reader makes of its input.
export function show(readers) {
  for (const [name, read] of Object.entries(readers)) {
    try {
      const value = read()
      console.log(`${name}: ${typeof value} ${value}`)
    } catch {
      console.log(`${name}: an error`)
    }
  }
}
JS
}

# Makes an environment with Python packages; $python runs it.
python_packages() { # NAME==VERSION...
    python3 -m venv environment
    python=$work/environment/bin/python
    "$python" -m pip install --quiet --disable-pip-version-check "$@"
}

# Unpacks Debian packages into a folder, without installing them; their commands are in $unpacked/usr/bin.
debian_packages() { # NAME=VERSION...
    apt-get download --quiet=2 "$@" 2> /dev/null
    unpacked=$work/unpacked
    for package in *.deb; do dpkg -x "$package" "$unpacked"; done
}

# Compares the output with the expected text, and prints both if they differ.
expect() { # FILE WITH WHAT WAS SEEN; the expected text on standard input
    cat > expected
    cat "$1"
    cmp -s "$1" expected || { printf '\nThe behaviour has changed. It was:\n' && cat expected && exit 1; }
}
