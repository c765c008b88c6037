#!/bin/sh
# gpu.sh: installs software GPUs below build/gpu/, from packages and without root. Does nothing if they are there.
#   lib/     wgpu-native (PyPI: wgpu) and Dawn (npm: bun-webgpu-linux-x64)
#   driver/  lavapipe and SwiftShader, Vulkan on the CPU (Debian: mesa-vulkan-drivers, chromium-common), and a Vulkan
#            loader
#   shaders/ shaders that lavapipe has compiled, so that they do not go to the user's cache
#   env.sh   a function for each combination:  . build/gpu/env.sh; gpu_wgpu_lavapipe COMMAND; gpu_each COMMAND
# A part that cannot be installed is left out, and a line names it. Exit status 1: no combination is left.
set -u
cd "$(dirname "$0")/.."
mkdir -p build/gpu/lib build/gpu/driver
top=$(cd build/gpu && pwd)
log=$top/log

left_out() { echo "gpu.sh: left out: $*" >&2; return 1; }
has() { command -v "$1" >/dev/null; }

get_wgpu() {
    [ -f "$top/lib/libwgpu_native.so" ] && return
    python3 -m pip --version >/dev/null 2>&1 || left_out "wgpu-native: pip is not installed (package python3-pip)" || return
    echo "fetching the PyPI package wgpu (once, 4 MB)"
    (cd "$work" && python3 -m pip download --quiet --no-deps --disable-pip-version-check wgpu==0.32.0 >>"$log" 2>&1 &&
        python3 -m zipfile -e wgpu-*.whl wheel && mv wheel/wgpu/resources/libwgpu_native-release.so "$top/lib/libwgpu_native.so") ||
        left_out "wgpu-native: pip could not fetch wgpu (see build/gpu/log)"
}

get_dawn() {
    [ -f "$top/lib/libwebgpu_dawn.so" ] && return
    [ "$(uname -sm)" = "Linux x86_64" ] || left_out "Dawn: no package for $(uname -sm)" || return
    has npm || left_out "Dawn: npm is not installed (package npm)" || return
    echo "fetching the npm package bun-webgpu-linux-x64 (once, 7 MB)"
    (cd "$work" && npm pack --silent bun-webgpu-linux-x64@0.1.7 >>"$log" 2>&1 && tar xzof bun-webgpu-*.tgz &&
        mv package/libwebgpu_wrapper.so "$top/lib/libwebgpu_dawn.so") ||
        left_out "Dawn: npm could not fetch bun-webgpu-linux-x64 (see build/gpu/log)"
}

# Configures a private apt with the sources of the system, on Debian 12 with backports as well: its own Mesa 22 ends
# loops after 65,535 iterations. Sets APT_CONFIG and $suite.
private_apt() {
    apt=$work/apt
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources"
    cp /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list "$apt/sources/" 2>/dev/null
    if [ "$suite" = bookworm ]; then
        backports >"$apt/sources/backports.list"
        suite=bookworm-backports
    fi
    cat >"$apt/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
Debug::NoLocking "true";
Acquire::Languages "none";
END
    export APT_CONFIG="$apt/apt.conf"
}

# Prints "deb [signed-by=KEY] MIRROR bookworm-backports main", with the mirror that the system uses for bookworm.
backports() {
    cat /dev/null "$apt"/sources/*.sources 2>/dev/null | awk '
        BEGIN { RS = ""; FS = "\n" }
        {
            mirror = key = ""; main = 0
            for (i = 1; i <= NF; i++) {
                n = split($i, word, " ")
                if (word[1] == "URIs:") mirror = word[2]
                if (word[1] == "Signed-By:") key = word[2]
                if (word[1] == "Suites:") for (k = 2; k <= n; k++) if (word[k] == "bookworm") main = 1
            }
            if (main && mirror != "") { print "deb " (key ~ /^\// ? "[signed-by=" key "] " : "") mirror " bookworm-backports main"; exit }
        }'
    cat /dev/null "$apt"/sources/*.list 2>/dev/null | awk '
        $1 == "deb" {
            i = 2; options = ""
            if ($2 ~ /^\[/) { while ($i !~ /\]$/) options = options $(i++) " "; options = options $(i++) " " }
            if ($(i + 1) == "bookworm") { print "deb " options $i " bookworm-backports main"; exit }
        }'
}

fetch_debs() {
    apt-get update -qq || return
    # With all libraries it needs that are missing here, or too old.
    apt-get install -y -qq --download-only --no-install-recommends -t "$suite" mesa-vulkan-drivers libvulkan1 || return
    cd "$apt/cache/archives" || return
    for package in "mesa-vulkan-drivers/$suite" libvulkan1 chromium-common; do
        ls "${package%/*}"_*.deb >/dev/null 2>&1 || apt-get download -qq "$package" || return
    done
}

unpack_debs() {
    for deb in "$apt"/cache/archives/*.deb; do
        case ${deb##*/} in
            libgl* | libegl* | libgbm* | libglx* | mesa-libgallium*) ;; # OpenGL
            chromium-common_*)
                dpkg-deb --fsys-tarfile "$deb" |
                    tar -x -C "$work/root" ./usr/lib/chromium/libvk_swiftshader.so ./usr/lib/chromium/vk_swiftshader_icd.json
                ;;
            *) dpkg-deb -x "$deb" "$work/root" ;;
        esac || return
    done
}

get_drivers() {
    [ -f "$top/driver/lavapipe.json" ] && [ -f "$top/driver/swiftshader.json" ] && return
    has apt-get && has dpkg-deb || left_out "lavapipe and SwiftShader: they come as Debian packages, and there is no apt-get" || return
    echo "fetching the Debian packages mesa-vulkan-drivers, libvulkan1, chromium-common (once, 70 MB)"
    mkdir -p "$work/root"
    private_apt
    { (fetch_debs) && unpack_debs; } >>"$log" 2>&1 || left_out "lavapipe and SwiftShader: apt-get could not fetch them (see build/gpu/log)" || return
    rm -rf "$top/driver"
    mv "$work/root" "$top/driver"
    describe_driver lavapipe libvulkan_lvp.so
    describe_driver swiftshader libvk_swiftshader.so
}

describe_driver() { # name, library: writes the file that tells the Vulkan loader where the library is
    library=$(find "$top/driver" -name "$2" | head -n 1)
    [ -n "$library" ] || left_out "$1: no $2 in its package" || return
    printf '{ "file_format_version": "1.0.0", "ICD": { "library_path": "%s", "api_version": "1.3.0" } }\n' "$library" >"$top/driver/$1.json"
}

# Writes the functions of env.sh, and prints the combinations.
combine() {
    loader=$(find "$top/driver" -name libvulkan.so.1 | head -n 1)
    each=
    {
        echo "# Written by scripts/gpu.sh. gpu_LIBRARY_DRIVER COMMAND runs it with them; gpu_each COMMAND with all in turn."
        for library in wgpu:libwgpu_native.so dawn:libwebgpu_dawn.so; do
            for driver in lavapipe swiftshader; do
                name=gpu_${library%%:*}_$driver
                [ -f "$top/lib/${library#*:}" ] && [ -f "$top/driver/$driver.json" ] && [ -n "$loader" ] || continue
                icd=$top/driver/$driver.json
                echo "$name() { CAIRN_WEBGPU_LIB='$top/lib/${library#*:}' VK_DRIVER_FILES='$icd' VK_ICD_FILENAMES='$icd' MESA_SHADER_CACHE_DIR=\"\${MESA_SHADER_CACHE_DIR:-$top/shaders}\" LD_LIBRARY_PATH=\"${loader%/*}\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\" \"\$@\"; }"
                each="$each    echo '$name' && $name \"\$@\" || gpu_bad=1
"
                echo "  ${library%%:*} with $driver: $name" >&2
            done
        done
        printf 'gpu_each() {\n    gpu_bad=0\n%s    return $gpu_bad\n}\n' "$each"
    } >"$top/env.sh"
    [ -n "$each" ]
}

work=$(mktemp -d "$top/part.XXXXXX")
trap 'rm -rf "$work"' EXIT
: >"$log"
get_wgpu
get_dawn
get_drivers
echo "build/gpu/env.sh has:"
combine 2>&1 || { echo "  nothing"; exit 1; }
