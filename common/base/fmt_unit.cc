// SPDX-License-Identifier: Apache-2.0
//
// libfmt's functions, compiled once for every program of this repository that formats with it. They
// are inside those programs, since Debian's libfmt is a shared library that a cluster node may not
// have. The plugin does not use them.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
// format.h declares these templates and leaves them to this file.
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
