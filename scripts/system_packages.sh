#!/bin/sh
# Installs the Debian packages that tests use, if packages are missing and apt can be used.
#   gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm: build and run firmware
#   gcc-riscv64-unknown-elf, picolibc-riscv64-unknown-elf, qemu-system-misc: the same for RISC-V
#   gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user: link and run kernels for AArch64
#   clang: compile generated C with a second compiler
#   ccache: reuse compiled objects in the next run
#   chromium, chromium-driver: open the HTML report in a browser
set -eu
packages="gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm clang chromium chromium-driver"
packages="$packages gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc"
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
    echo "system_packages.sh: these packages are missing; install them as root:$missing" >&2
    exit 0
fi
command -v apt-get >/dev/null || { echo "system_packages.sh: apt-get is not available; install these packages:$missing" >&2; exit 0; }
$run apt-get update -qq || true # The installation below reports failures.
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends $missing ||
    echo "system_packages.sh: these packages could not be installed:$missing" >&2
