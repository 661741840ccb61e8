# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The kernel of the emulated machine: Debian's, unpacked into a folder and never installed. Sourced
# by scripts/vm after scripts/lib.sh.
#
# A folder has vmlinuz, vmlinux (the same, unpacked), initrd, lib/modules, the files `release` and
# `version` (of the package), and siw.ko if that was requested once. It is created under a lock and
# renamed when it is complete, so several callers may start at once, and a killed one leaves no
# incomplete folder.

init=$PWD/tests/vm/machine/init
kernel_cache=${BEELINE_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/beeline/vm}

kernel_dir() { printf '%s/%s' "$kernel_cache" "$1"; } # SERIES

vm_tools=(qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio modprobe:kmod)
siw_tools=(make:make gcc-12:gcc-12 xz:xz-utils)

# need_tools COMMAND:PACKAGE...
need_tools() {
  local tool missing=()
  for tool in "$@"; do
    command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
  done
  ((${#missing[@]} == 0)) ||
    stop "scripts/vm: not installed here: ${missing[*]} (as root: apt-get install ${missing[*]})"
}

# locked SERIES COMMAND...
locked() (
  mkdir -p "$kernel_cache" || stop "scripts/vm: cannot write to $kernel_cache (BEELINE_VM_CACHE)"
  exec {lock}>"$kernel_cache/$1.lock" || exit
  flock "$lock"
  "${@:2}"
)

prepare_kernel() { # SERIES
  PATH=$PATH:/usr/sbin:/sbin # modprobe is there, and ordinary users may lack these folders
  need_tools "${vm_tools[@]}"
  local dir
  dir=$(kernel_dir "$1")
  [[ -e $dir/release ]] || locked "$1" make_kernel "$1" || return
  [[ $dir/initrd -nt $init ]] || locked "$1" renew_initrd "$dir" || return
  [[ -e $dir/vmlinux ]] || locked "$1" unpack_kernel "$dir"
}

prepare_siw() { # SERIES
  [[ ! -e $(kernel_dir "$1")/siw.ko ]] || return 0
  need_tools "${siw_tools[@]}"
  locked "$1" make_siw "$1"
}

# --- Packages -------------------------------------------------------------------------------------

# download PACKAGE...: downloads into the current directory.
download() {
  local log
  log=$(apt-get --quiet -o Acquire::Retries=1 -o Acquire::http::Timeout=20 download "$@" 2>&1) &&
    return
  grep -E '^E:' <<<"$log" | head -n 3
  stop "scripts/vm: cannot download $*: no network, or the lists of apt are old (apt-get update)"
}

# newest_image SERIES: the package name of its newest kernel that apt knows.
newest_image() {
  apt-cache pkgnames "linux-image-$1." |
    grep -E "^linux-image-${1//./\\.}\.[0-9.]+[-+][a-z0-9]+-amd64$" | sort -V | tail -n 1
}

candidate() { apt-cache policy "$1" | sed -n 's/^ *Candidate: //p'; } # PACKAGE

# --- The kernel -----------------------------------------------------------------------------------

make_kernel() { # SERIES
  local dir work image release size start=$SECONDS
  dir=$(kernel_dir "$1")
  [[ ! -e $dir/release ]] || return 0 # another process made it during the wait for the lock
  image=$(newest_image "$1")
  [[ -n $image ]] || stop "scripts/vm: apt knows no kernel $1 for amd64 (as root: apt-get update)"
  release=${image#linux-image-}
  work=$dir.making
  rm -rf "$work" "$dir"
  mkdir -p "$work/lib/modules" && cd "$work" || exit

  download "$image"
  size=$(du --total --block-size=1M ./*.deb | tail -n 1 | cut -f 1)
  printf 'kernel %s: %s MB in %d s' "$release" "$size" $((SECONDS - start))
  start=$SECONDS
  # Modules for sound, television, wireless and graphics are half of all.
  dpkg-deb --fsys-tarfile ./*.deb | tar -x --exclude='*/kernel/sound' --exclude='*/drivers/media' \
    --exclude='*/drivers/net/wireless' --exclude='*/drivers/gpu/drm/[a-u]*' \
    ./boot "./lib/modules" || exit
  mv "boot/vmlinuz-$release" vmlinuz || exit
  rm -rf ./*.deb boot
  depmod -b . "$release" || exit
  make_initrd "$release" >initrd || exit
  unpack_kernel . || exit
  candidate "$image" >version
  echo "$release" >release
  cd "$kernel_cache" && mv -T "$work" "$dir" || exit
  size=$(du -sh "$dir" | cut -f 1)
  printf ', ready after %d s more, in %s (%s)\n' $((SECONDS - start)) "$dir" "$size"
}

# Makes the initrd again, since its script has changed.
renew_initrd() { # FOLDER
  cd "$1" && make_initrd "$(<release)" >initrd.new && mv initrd.new initrd
}

# make_initrd RELEASE: called in the kernel's folder. The initrd has busybox and the modules to mount the
# host's file system. It is not compressed, since the machine would take long to unpack it.
make_initrd() (
  local root=initrd.root module path
  mkdir -p "$root"/{bin,dev,proc,sys,modules,host,top,new} || exit
  cp "$(command -v busybox)" "$root/bin/" || exit
  install -m 755 "$init" "$root/init" || exit
  for module in virtio_pci 9pnet_virtio 9p overlay; do
    modprobe -d . -S "$1" --show-depends "$module" || exit
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >needed
  while read -r path; do
    unpack_module "$path" >"$root/modules/$(basename "${path%.ko*}").ko" || exit
    echo "$(basename "${path%.ko*}").ko"
  done <needed >"$root/modules/order"
  (cd "$root" && find . | cpio --quiet -o -H newc) || exit
  rm -rf "$root" needed
)

# unpack_kernel FOLDER: makes vmlinux, which QEMU can start at once. A vmlinuz would unpack itself in the
# emulated machine, for several seconds. Documentation/arch/x86/boot.rst describes where its payload is.
unpack_kernel() {
  local setup start size tool
  setup=$(od -An -tu1 -j $((0x1f1)) -N 1 "$1/vmlinuz") &&
    read -r start size < <(od -An -tu4 -j $((0x248)) -N 8 "$1/vmlinuz") || return
  for tool in 'xz -dc' 'zstd -qdc'; do
    # The four bytes after the payload are its unpacked size.
    tail -c +$(((setup + 1) * 512 + start + 1)) "$1/vmlinuz" 2>/dev/null | head -c $((size - 4)) |
      $tool >"$1/vmlinux.new" 2>/dev/null && break
  done
  # A kernel with another compression is started as a vmlinuz.
  [[ $(head -c 4 "$1/vmlinux.new") == $'\x7fELF' ]] || cp "$1/vmlinuz" "$1/vmlinux.new" || return
  mv "$1/vmlinux.new" "$1/vmlinux"
}

unpack_module() { # FILE
  case $1 in
    *.xz) xz -dc "$1" ;;
    *.zst) zstd -qdc "$1" ;;
    *) cat "$1" ;;
  esac
}

# --- Soft iWARP -----------------------------------------------------------------------------------

# Built from the sources of the same package version, since a module works with no other kernel.
make_siw() { # SERIES
  local dir work release version headers parts size start=$SECONDS
  dir=$(kernel_dir "$1")
  [[ ! -e $dir/siw.ko ]] || return 0
  release=$(<"$dir/release") version=$(<"$dir/version")
  work=$dir/siw.making
  rm -rf "$work"
  mkdir -p "$work/source" && cd "$work" || exit

  # The package of headers depends on the others. The image and the compiler are installed already.
  parts=$(apt-cache depends "linux-headers-$release" |
    sed -nE 's/.*Depends: (linux-(headers|kbuild)-.*)/\1/p')
  # shellcheck disable=SC2086  # a list of words
  download "linux-source-$1=$version" "linux-headers-$release" $parts
  size=$(du --total --block-size=1M ./*.deb | tail -n 1 | cut -f 1)
  printf 'siw for %s: sources and headers, %s MB in %d s' "$release" "$size" $((SECONDS - start))
  start=$SECONDS

  dpkg-deb --fsys-tarfile "linux-source-$1"_*.deb | tar -xO "./usr/src/linux-source-$1.tar.xz" |
    tar -xJ -C source --strip-components=5 "linux-source-$1/drivers/infiniband/sw/siw" || exit
  rm "linux-source-$1"_*.deb
  for parts in ./*.deb; do dpkg-deb -x "$parts" . || exit; done
  headers=$work/usr/src/linux-headers-$release
  sed -i "s# /usr/src/# $work/usr/src/#" "$headers/Makefile" # as if it were installed
  # Without BTF, which needs another program and is not used here.
  if ! make -s -j"$(nproc)" -C "$headers" M="$work/source" CONFIG_RDMA_SIW=m \
    CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$work/log" 2>&1; then
    tail -n 20 "$work/log"
    stop "scripts/vm: siw does not build for $release"
  fi
  strip --strip-debug source/siw.ko # otherwise it has 5 MB
  mv source/siw.ko "$dir/siw.ko" && cd "$dir" && rm -rf "$work" || exit
  printf ', built after %d s more\n' $((SECONDS - start))
}
