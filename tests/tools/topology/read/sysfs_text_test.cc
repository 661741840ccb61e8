// SPDX-License-Identifier: Apache-2.0
#include "topology/read/sysfs_text.h"

#include "tests/support/catch.h"

using namespace beeline::topology;

TEST_CASE("sysfs text: classes of two, four and six digits") {
  CHECK(parse_pci_class("0x030200") == 0x030200);
  CHECK(parse_pci_class("0302") == 0x030200);
  CHECK(parse_pci_class("0x03") == 0x030000);
  CHECK(parse_pci_class("0X0207") == 0x020700);
  for (const char* text : {"", "0x", "0x0302000", "0x0x03", "0x 03", "gpu", "-3", "0x03 02"}) {
    CAPTURE(text);
    CHECK(!parse_pci_class(text));
  }
}

TEST_CASE("sysfs text: rates as all kernels write them") {
  CHECK(parse_link_rate("2.5 GT/s") == 2'500);
  CHECK(parse_link_rate("8 GT/s") == 8'000);
  CHECK(parse_link_rate("16.0 GT/s PCIe") == 16'000);
  CHECK(parse_link_rate(" 64.0GT/s PCIe\n") == 64'000);
  for (const char* text :
       {"", "Unknown", "16", "GT/s", "0 GT/s", "inf GT/s", "1e5 GT/s", "9999 GT/s"}) {
    CAPTURE(text);
    CHECK(!parse_link_rate(text));
  }
  for (const std::uint32_t rate :
       {2'500U, 5'000U, 8'000U, 16'000U, 32'000U, 64'000U, 128'000U, 12'345U}) {
    CHECK(parse_link_rate(link_rate_text(rate)) == rate);
  }
  CHECK(link_rate_text(2'500) == "2.5 GT/s PCIe");
  CHECK(link_rate_text(0).empty());
}

TEST_CASE("sysfs text: masks and lists of processors") {
  CHECK(list_of_mask("0000ffff,00000000,0000ffff") == "0-15,64-79");
  CHECK(list_of_mask("ff") == "0-7");
  CHECK(list_of_mask("0x1ffffffff") == "0-32");
  CHECK(list_of_mask("80000001") == "0,31");
  CHECK(list_of_mask("0") == "");
  CHECK(list_of_mask("1,00000000") == "32");
  for (const char* text : {"", ",", "0-3", "xyz", "ff,,ff"}) {
    CAPTURE(text);
    CHECK(!list_of_mask(text));
  }
  CHECK(!list_of_mask(std::string(100'000, 'f')));
  CHECK(mask_of_list("0-15,64-79") == "0000ffff,00000000,0000ffff");
  CHECK(mask_of_list("3") == "00000008");
  for (const char* list : {"0", "0-31", "32", "5-7,9,40-80,1000"}) {
    CHECK(list_of_mask(mask_of_list(list)) == list);
  }
  for (const char* text : {"", "7-3", "0-99999999", "a", "1,,2", "-1"}) {
    CAPTURE(text);
    CHECK(!is_cpu_list(text));
    CHECK(mask_of_list(text).empty());
  }
  CHECK(!is_cpu_list("0" + std::string(40'000, ',')));
}
