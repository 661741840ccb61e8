#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Puts the precompiled header that meson made for a library where every program finds it: beside a
# header of the same name, which is empty.
#
# Usage: link_parsed.sh LIBRARY HEADER HEADER.gch
set -e
library=$1 header=$2 parsed=$3
: >"$header"
ln -f "$library.p/parsed_once.h.gch" "$parsed"
