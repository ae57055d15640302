#!/bin/sh
# Debian packages that tests use, installed where they are missing and apt may be used.
#   gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm: firmware, built and run
#   gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user: kernels for AArch64, linked and run
#   clang: generated C, compiled by a second compiler
#   ccache: what compilers made is kept for the next run
#   chromium, chromium-driver: the HTML report in a browser
set -eu
packages="gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm clang chromium chromium-driver"
packages="$packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ccache"

missing=""
for package in $packages; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    run=""
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    run="sudo"
else
    echo "system_packages.sh: missing, and only root can install them:$missing" >&2
    exit 0
fi
command -v apt-get >/dev/null || { echo "system_packages.sh: no apt-get for:$missing" >&2; exit 0; }
$run apt-get update -qq || true # what is missing is said below
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends $missing ||
    echo "system_packages.sh: could not be installed:$missing" >&2
