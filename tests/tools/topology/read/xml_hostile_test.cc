// SPDX-License-Identifier: Apache-2.0
//
// Tests with files that are not machines: truncated, endless, or malicious.
#include <sys/stat.h>

#include "tests/tools/topology/read/reading.h"
#include "tests/tools/topology/scratch_folder.h"
#include "topology/read/nccl_xml.h"

using namespace beeline::topology;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

const std::string kSmall =
    "<?xml version=\"1.0\"?>\n<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"ff\">\n"
    "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"8\"/>\n"
    "<pci busid=\"0000:02:00.0\" class=\"0x020700\"><nic><net name=\"m&amp;m\" port=\"1\"/></nic>"
    "</pci>\n</cpu>\n</system>";

std::string error(const std::string& text) { return error_of(read_nccl_xml(text, "x.xml")); }

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("hostile xml: a file cut off anywhere is an error that says where") {
  REQUIRE(read_nccl_xml(kSmall, "x.xml"));
  for (std::size_t size = 0; size < kSmall.size(); ++size) {
    CAPTURE(size);
    const std::string said = error(kSmall.substr(0, size));
    CHECK_THAT(said, StartsWith("x.xml:") && Contains("not valid XML: ") &&
                         Contains("write the file again"));
  }
}

TEST_CASE("hostile xml: no changed byte breaks the reader") {
  std::size_t taken = 0;
  for (std::size_t at = 0; at < kSmall.size(); ++at) {
    for (const char byte : {'\0', '<', '"', '&', 'A', '9', '-', '\xff'}) {
      std::string text = kSmall;
      text[at] = byte;
      auto parts = read_nccl_xml(text, "x.xml");
      if (!parts) {
        CHECK_THAT(parts.error().text, StartsWith("x.xml:"));
        continue;
      }
      ++taken;
      const auto graph = Graph::make(*std::move(parts));
      if (!graph) CHECK(!graph.error().text.empty());
    }
  }
  CHECK(taken > 100);  // names and numbers may be others
}

TEST_CASE("hostile xml: entities are refused before they grow") {
  const std::string laughs =
      "<!DOCTYPE system [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>\n" +
      kSmall.substr(kSmall.find("<system"));
  CHECK_THAT(error(laughs), Contains("x.xml:1: a DTD") && Contains("remove it"));
  const std::string external =
      "<!DOCTYPE system SYSTEM \"file:///etc/passwd\">\n" + kSmall.substr(kSmall.find("<system"));
  CHECK_THAT(error(external), Contains("a DTD"));
  std::string undefined = kSmall;
  undefined.replace(undefined.find("&amp;"), 5, "&more;");
  CHECK_THAT(error(undefined), Contains("undefined entity"));
}

TEST_CASE("hostile xml: a doctype without a DTD is allowed on request") {
  XmlLimits limits;
  limits.doctype = Doctype::kNameOnly;
  CHECK(parse_xml("<!DOCTYPE a SYSTEM \"a.dtd\"><a/>", "x.xml", limits));
  CHECK_THAT(error_of(parse_xml("<!DOCTYPE a [<!ENTITY b \"c\">]><a/>", "x.xml", limits)),
             Contains("a DTD"));
}

TEST_CASE("hostile xml: a million elements are too many") {
  const std::string text = "<system version=\"1\">" + repeated("<cpu/>\n", 1'000'000) + "</system>";
  CHECK_THAT(error(text), Contains("x.xml:200000: more than 200000 elements") &&
                              Contains("is it the right file?"));
}

TEST_CASE("hostile xml: a depth beyond that of a bus is refused") {
  const std::string pci = "<pci class=\"0x060400\">";
  CHECK_THAT(error("<system version=\"1\">" + repeated(pci, 100'000)),
             Contains("elements more than 400 deep"));
  const auto nested = [&pci](std::size_t depth) {
    return "<system version=\"1\">" + repeated(pci + "\n", depth) + repeated("</pci>", depth) +
           "</system>";
  };
  CHECK(error(nested(398)) ==
        "x.xml:257: more than 256 bridges one below another; is it the right file?");
  CHECK(made(read_nccl_xml(nested(256), "x.xml")).size() == 257);
}

TEST_CASE("hostile xml: a device within itself is refused") {
  CHECK(error("<system version=\"1\"><cpu numaid=\"0\">\n"
              "<pci busid=\"0000:01:00.0\" class=\"0x0604\">\n"
              "<pci busid=\"0000:02:00.0\" class=\"0x0604\">\n"
              "<pci busid=\"0000:01:00.0\" class=\"0x0604\"/></pci></pci></cpu></system>") ==
        "x.xml:4: busid \"0000:01:00.0\" appears twice, first in line 2; give each "
        "device its own address");
}

TEST_CASE("hostile xml: impossible numbers are unknown, or refused with their line") {
  const auto with = [](const std::string& what, const std::string& by) {
    std::string text = kSmall;
    text.replace(text.find(what), what.size(), by);
    return text;
  };
  const auto remarks_of = [](const std::string& text) {
    return made(read_nccl_xml(text, "x.xml")).remarks();
  };
  for (const char* numa : {"99999999999999999999", "1048577", "0x0", "1.5", " ", "\xc2\xb2"}) {
    CAPTURE(numa);
    const std::vector<std::string> remarks =
        remarks_of(with("numaid=\"0\"", "numaid=\"" + std::string(numa) + "\""));
    REQUIRE(remarks.size() == 2);
    CHECK(remarks[0] == "line 3: numaid=\"" + std::string(numa) + "\" cannot be read");
    CHECK_THAT(remarks[1], Contains("without a NUMA node"));
  }
  for (const auto& [what, by] : std::vector<std::pair<std::string, std::string>>{
           {"affinity=\"ff\"", "affinity=\"0-99999999\""},
           {"affinity=\"ff\"", "affinity=\"" + std::string(100'000, 'f') + "\""},
           {"class=\"0x020700\"", "class=\"0x1020700\""},
           {"port=\"1\"", "port=\"4294967297\""},
           {"port=\"1\"", "port=\"1\" speed=\"99999999999\""}}) {
    CAPTURE(by.substr(0, 60));
    const std::vector<std::string> remarks = remarks_of(with(what, by));
    REQUIRE(remarks.size() == 1);
    CHECK_THAT(remarks[0], StartsWith("line ") && Contains("cannot be read"));
  }
  for (const char* link : {"link_width=\"4294967312\"", "link_width=\"64\"", "link_width=\"-8\""}) {
    CAPTURE(link);
    const Graph graph = made(read_nccl_xml(with("link_width=\"8\"", link), "x.xml"));
    CHECK(graph[graph.gpus()[0]].link_now.lanes == 0);
  }
  for (const char* address :
       {"0000:01:20.0", "0000:01:00.8", "100000000:01:00.0", "0000:01:-1.0"}) {
    CAPTURE(address);
    CHECK_THAT(error(with("0000:01:00.0", address)), StartsWith("x.xml:4: busid"));
  }
}

TEST_CASE("hostile xml: a file larger than any description is not parsed") {
  CHECK_THAT(error(std::string((std::size_t{32} << 20) + 1, ' ')), Contains("larger than 32 MiB"));
}

TEST_CASE("hostile xml: the names of one device are limited") {
  std::string nets;
  for (int i = 0; i < 150'000; ++i) nets += "<net name=\"n" + std::to_string(i) + "\" port=\"0\"/>";
  CHECK_THAT(error("<system version=\"1\"><cpu numaid=\"0\"><pci class=\"0x02\"><nic>" + nets +
                   "</nic></pci></cpu></system>"),
             Contains("more network ports than a device has"));
}

TEST_CASE("hostile xml: remarks are limited") {
  const std::string text =
      "<system version=\"1\">" + repeated("<cpu numaid=\"x\"/>\n", 100'000) + "</system>";
  const auto parts = read_nccl_xml(text, "x.xml");
  REQUIRE(parts);
  CHECK(parts->remarks.size() == 21);
  CHECK(parts->remarks.back() == "and 199980 more");
}

TEST_CASE("hostile xml: the error for a missing file names it and the cause") {
  CHECK(error_of(beeline::read_whole_file("/nonexistent/x.xml", 1)) ==
        "/nonexistent/x.xml: cannot be opened: No such file or directory");
  CHECK_THAT(error_of(beeline::read_whole_file("/", 1)),
             Contains("cannot be read: Is a directory"));
  CHECK_THAT(error_of(beeline::read_whole_file("/dev/zero", std::size_t{1} << 20)),
             Contains("larger than 1 MiB"));
}

TEST_CASE("hostile xml: the wait for a pipe without a writer is limited") {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(error_of(beeline::read_whole_file(path, 1, std::chrono::milliseconds(20))) ==
        path + ": no data arrived for 20 ms; check that a program writes to it");
}
