// SPDX-License-Identifier: Apache-2.0
//
// The seeds are small machines, since a fuzzer's time depends on the size of its inputs.
#include "tests/fuzz/machine_seeds.h"

#include "tests/fuzz/topology_targets.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"
#include "topology/write/nccl_xml.h"

namespace beeline::fuzz {
namespace {

using namespace beeline::topology;

constexpr const char* kByHand = R"(<?xml version="1.0"?>
<!-- two seats -->
<system version="1" name="two &lt;seats&gt; of &quot;one&quot;">
  <cpu host_hash="0x12" numaid="0" affinity="0000ffff,00000000,0000ffff" arch="x86_64">
    <pci busid="0000:17:00.0" class="0x060400" vendor="0x1000" device="0xc030"
         link_speed="32.0 GT/s PCIe" link_width="16">
      <pci link_width="16" link_speed="16.0 GT/s PCIe" class="0x030200" busid="0000:1A:00.0">
        <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:90:00.0" count="2"/>
          <nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/><c2c bw="44712" count="5"/>
          <xgmi target="0000:81:00.0" gcn="gfx942"/></gpu>
      </pci>
      <pci busid="0000:1b:00.0" class="0x020700" vendor="0X15B3" link_speed="32 GT/s" link_width="8">
        <nic>
          <net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" maxconn="1" gdr="1"/>
          <net name="mlx5_0" port="2"/><net name="mlx5_9"/>
        </nic>
      </pci>
      <pci busid="0000:1c:00.0" class="0x010802"/>
    </pci>
  </cpu>
  <cpu host_hash="0x12" numaid="1" affinity="16-23">
    <pci busid="0000:80:00.0" class="0x060000">
      <pci busid="0000:81:00.0" class="0x12"/>
      <pci busid="0000:82:00.0" class="0x0207"><net name="a&amp;b" port="1"/></pci>
    </pci>
    <pci busid="0000:90:00.0" class="0x03"><pci busid="0000:91:00.0" class="0x02"/></pci>
    <nic><net name="mlx5_0+a&amp;b" port="1" speed="800000"/><net name="eth0" port="0"/></nic>
  </cpu>
  <cpu host_hash="0x13" numaid="0"><pci busid="0000:1a:00.0" class="0x030200"/></cpu>
</system>
)";

constexpr const char* kUnsaid =
    "<system version=\"3\"><cpu numaid=\"0\"/><cpu numaid=\"1\"/><cpu numaid=\"1\"/><grace/>"
    "<cpu><pci><pci class=\"0x02\"><nic><net name=\"a\" port=\"1\"/></nic></pci>"
    "<pci busid=\"01:00.0\"><gpu/></pci></pci><gpu/>"
    "<pci><pci busid=\"02:00.0\" class=\"0x03\"/><pci class=\"0x03\"/></pci>"
    "<nic><net name=\"rxe0\"/><net name=\"rxe1\" port=\"1\" speed=\"10\"/></nic></cpu>"
    "<net name=\"siw0\"/><pci busid=\"03:00.0\" class=\"0x020000\"/></system>";

// One change makes two addresses or two names equal.
constexpr const char* kAlike =
    "<system version=\"1\"><pci busid=\"01:00.0\" class=\"02\"><net name=\"a\"/></pci>"
    "<pci busid=\"01:00.1\" class=\"02\"><net name=\"b\"/></pci></system>";

}  // namespace

std::vector<Bytes> machine_seeds() {
  std::string remarkable = "<system version=\"1\">";
  for (int i = 0; i < 30; ++i) remarkable += "<cpu numaid=\"x\"/>\n";
  std::string linked = "<system version=\"1\"><pci busid=\"01:00.0\" class=\"03\"><gpu>";
  for (int i = 0; i < 130; ++i) linked += "<c2c/>";
  std::vector<Bytes> seeds = {bytes_of("<system version=\"1\"/>"),
                              bytes_of(kByHand),
                              bytes_of(kUnsaid),
                              bytes_of(kAlike),
                              bytes_of(linked + "</gpu></pci></system>"),
                              bytes_of(remarkable + "</system>")};
  for (const std::string& machine :
       {machines::tied_in_pairs(), machines::one_root_port(), machines::far_socket(),
        machines::dual_port(), machines::flat_virtual_machine()}) {
    seeds.push_back(bytes_of(write_nccl_xml(make_machine(machine))));
  }
  return seeds;
}

}  // namespace beeline::fuzz
