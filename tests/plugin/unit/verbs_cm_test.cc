// SPDX-License-Identifier: Apache-2.0
//
// Loading librdmacm.
#include "plugin/verbs/cm_api.h"
#include "tests/support/catch.h"

using namespace beeline;

TEST_CASE("verbs cm: a library that is not there is an error that says what to do",
          "[unit][verbs]") {
  const auto loaded = verbs::load_cm("/nonesuch/librdmacm.so");
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().text.find("/nonesuch/librdmacm.so") != std::string::npos);
  CHECK(loaded.error().text.find("install the package librdmacm1") != std::string::npos);
  CHECK(loaded.error().text.find("BEELINE_RDMACM_LIB") != std::string::npos);
}

TEST_CASE("verbs cm: a library without its functions is named, with the first that is missing",
          "[unit][verbs]") {
  const auto loaded = verbs::load_cm("libm.so.6");
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().text.find("libm.so.6 has no rdma_create_event_channel") !=
        std::string::npos);
}

TEST_CASE("verbs cm: it is looked for once", "[unit][verbs]") {
  verbs::CmLibrary library("/nonesuch/librdmacm.so");
  const auto first = library.get();
  const auto second = library.get();
  REQUIRE_FALSE(first);
  CHECK(first.error().text == second.error().text);
  verbs::CmApi api;
  verbs::CmLibrary given(api);
  REQUIRE(given.get());
  CHECK(*given.get() == *given.get());
}
